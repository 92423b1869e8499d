"""Finished trials of one collection job, one line each, so that a killed job repeats only what it had not finished."""

import hashlib
import json
import os
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Generic, TypeVar

from metabo.records.files import unwritable, write_text

Result = TypeVar("Result", bound=Mapping[str, object])
"""What a trial gave, ready for JSON."""


class Journal(Generic[Result]):
    """Append-only record of finished trials. `key` says what they depend on (settings and code): a journal that was
    begun under another key is set aside as ``.old`` (``.old1``, ...), not mixed in. Each line has a checksum of the key
    and itself; a line that is damaged, or torn by a kill, is dropped, and its trial runs again."""

    def __init__(self, path: str | Path, key: str) -> None:
        self.path = Path(path)
        self.key = key
        lines = self.path.read_bytes().splitlines() if self.path.is_file() else []
        kept = [record for record in map(self._parse, lines) if record is not None]
        self.records: dict[str, Result] = dict(kept)
        if lines and not kept:
            names = (self.path.with_suffix(f".old{number or ''}") for number in count())
            self.path.replace(next(name for name in names if not name.exists()))
        # Rewritten whole, so that a torn line never stands in the middle.
        write_text(self.path, "".join(map(self._line, self.records.items())))

    def add(self, results: Mapping[str, Result]) -> None:
        """Record finished trials (name -> JSON-ready result); they are on disk when this returns."""
        try:
            with open(self.path, "a") as stream:
                stream.writelines(map(self._line, results.items()))
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise unwritable(self.path, error) or error from error
        self.records |= results

    def remove(self) -> None:
        """Delete the record: its trials are in the finished table now."""
        self.path.unlink(missing_ok=True)

    def _line(self, item: tuple[str, Result]) -> str:
        record = {"trial": item[0], "result": item[1]}
        return json.dumps(record | {"check": self._check(record)}, sort_keys=True) + "\n"

    def _check(self, record: Mapping[str, object]) -> str:
        text = json.dumps(record, sort_keys=True)
        return hashlib.sha256(f"{self.key}\n{text}".encode()).hexdigest()[:16]

    def _parse(self, line: bytes) -> tuple[str, Result] | None:
        try:
            record = json.loads(line)
            check = record.pop("check")
        except (ValueError, KeyError, AttributeError, TypeError):
            return None
        return (record["trial"], record["result"]) if check == self._check(record) else None
