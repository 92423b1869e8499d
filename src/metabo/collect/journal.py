"""Finished trials of one collection job, one line each, so that a killed job repeats only what it had not finished."""

import json
import os
from pathlib import Path
from typing import Any


class Journal:
    """Append-only record of finished trials. `key` says what they depend on (settings and code): a journal that was
    begun under another key is set aside as ``.old``, not mixed in. A line torn by a kill is dropped and its trial runs
    again."""

    def __init__(self, path: str | Path, key: str) -> None:
        self.path = Path(path)
        self.records: dict[str, dict[str, Any]] = {}
        lines = self.path.read_text().splitlines() if self.path.is_file() else []
        parsed = [record for record in map(_parse, lines) if record is not None]
        if parsed and parsed[0] == {"key": key}:
            self.records = {record["trial"]: record["result"] for record in parsed[1:]}
        elif lines:
            self.path.replace(self.path.with_suffix(".old"))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Rewritten whole, so that a torn line never stands in the middle.
        scratch = self.path.with_suffix(".new")
        scratch.write_text("".join(_line(r) for r in [{"key": key}, *map(_entry, self.records.items())]))
        scratch.replace(self.path)

    def add(self, results: dict[str, dict[str, Any]]) -> None:
        """Record finished trials (name -> JSON-ready result); they are on disk when this returns."""
        with open(self.path, "a") as stream:
            stream.writelines(_line(_entry(item)) for item in results.items())
            stream.flush()
            os.fsync(stream.fileno())
        self.records |= results

    def remove(self) -> None:
        """Delete the record: its trials are in the finished table now."""
        self.path.unlink(missing_ok=True)


def _entry(item: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"trial": item[0], "result": item[1]}


def _line(record: dict[str, Any]) -> str:
    return json.dumps(record, sort_keys=True) + "\n"


def _parse(line: str) -> dict[str, Any] | None:
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None
