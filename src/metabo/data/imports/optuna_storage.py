"""The studies of an Optuna storage: an SQLite file or another database that Optuna reads, or a journal file.

An SQLite file is opened for reading only. A file that is not a storage is refused before Optuna sees it, since Optuna
would turn it into one.
"""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from metabo.data.imports.draft import Goal
from metabo.errors import ConfigError, DataError, unknown

if TYPE_CHECKING:
    from optuna import Study as Tuned
    from optuna.storages import BaseStorage
    from optuna.trial import FrozenTrial
    from sqlalchemy.engine import URL as URLOfDatabase

SQLITE = b"SQLite format 3\0"
URL = "sqlite:///"


class OptunaStudy(NamedTuple):
    """A study with one objective: its name, the direction, what the outcome is called ("": nothing special), trials."""

    name: str
    goal: Goal
    outcome: str
    trials: "list[FrozenTrial]"


def read(storage: str, only: Sequence[str] = (), without: Sequence[str] = ()) -> list[OptunaStudy]:
    """Return the studies of a storage: those of `only`, if any are named, and none of `without`.

    Raises ConfigError if Optuna is not installed, and for a study that is not there; DataError for a storage that
    cannot be read, and for a study with several objectives.
    """
    _require_optuna()
    shown = called(storage)
    with _told(shown):
        import optuna

        opened = _opened(storage)
        names = optuna.get_all_study_names(opened)
        if not names:
            raise DataError(f"{shown}: no study in this storage; check that it is the right one")
        for name in (*only, *without):
            if name not in names:
                raise unknown(f"study of {shown}", name, names)
        chosen = [name for name in names if (not only or name in only) and name not in without]
        if not chosen:
            raise ConfigError(f"{shown}: --only and --without leave no study; it has {', '.join(names)}")
        found = [_study(optuna.load_study(study_name=name, storage=opened), shown) for name in chosen]
    plain = [one.name for one in found]
    if twins := [name for name in plain if plain.count(name) > 1]:
        raise DataError(f"{shown}: two studies are called '{twins[0]}' but for blanks; leave one out with --without")
    return found


def called(storage: str) -> str:
    """Return what to call a storage in messages and files: its path, or its URL without the password. Raises
    ConfigError for what is not a URL.
    """
    return _file(storage) or _url(storage).render_as_string(hide_password=True)


def _file(storage: str) -> str:
    """Return the path of a storage, "" for the URL of a database that is not a file. Raises ConfigError for what is not
    a URL, and for an SQLite database without a file."""
    if "://" not in storage:
        return storage
    if storage.startswith(URL) and storage != URL:
        return storage.removeprefix(URL).partition("?")[0]
    url = _url(storage)
    if url.get_backend_name().lower() != "sqlite":
        return ""
    if not url.database:
        raise ConfigError(f"storage: the URL of an SQLite database names its file; write e.g. {URL}past.db")
    return url.database


def _url(storage: str) -> "URLOfDatabase":
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        return make_url(storage)
    except (ArgumentError, ValueError) as error:
        raise ConfigError(f"storage: not the URL of a database; write e.g. {URL}past.db") from error


def _require_optuna() -> None:
    try:
        import optuna  # noqa: F401
    except ModuleNotFoundError as error:
        raise ConfigError(
            "metabo import optuna needs Optuna, which is not installed; install the extra: pip install 'metabo[optuna]'"
        ) from error


@contextmanager
def _told(shown: str) -> Iterator[None]:
    """Turn what Optuna or a database says of a storage into a DataError with its first line."""
    from optuna.exceptions import OptunaError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (
        OptunaError, SQLAlchemyError, RuntimeError, ImportError, LookupError, ValueError, TypeError, AssertionError
    ) as error:  # fmt: skip
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise DataError(f"{shown}: Optuna cannot read it ({said}); check the storage, or restore it") from error


def _study(study: "Tuned", shown: str) -> OptunaStudy:
    directions = [direction.name.lower() for direction in study.directions]
    if len(directions) > 1:
        raise DataError(
            f"{shown}: study '{study.study_name}' has {len(directions)} objectives ({', '.join(directions)}), and a "
            f"prior is of one outcome; leave it out with --without '{study.study_name}'"
        )
    goal: Goal = "maximise" if directions == ["maximize"] else "minimise"
    named = study.metric_names or [""]
    return OptunaStudy(" ".join(study.study_name.split()), goal, named[0], study.get_trials(deepcopy=False))


def _opened(storage: str) -> "BaseStorage":
    from optuna.storages import JournalStorage, RDBStorage
    from optuna.storages.journal import JournalFileBackend

    if not (file := _file(storage)):
        return RDBStorage(storage, skip_table_creation=True)
    path = Path(file)
    try:
        with path.open("rb") as stream:
            first = stream.read(len(SQLITE))
    except OSError as error:
        raise DataError(f"{path}: cannot read it ({error.strerror}); check the path of the storage") from error
    if first == SQLITE:
        _require_tables(path)
        return RDBStorage(f"{URL}file:{quote(str(path))}?mode=ro&uri=true", skip_table_creation=True)
    if "://" in storage:
        raise DataError(f"{path}: no SQLite file; give the path alone if it is a journal of Optuna")
    _require_journal(path)
    return JournalStorage(JournalFileBackend(str(path)))


def _require_tables(path: Path) -> None:
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as database:
            tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error as error:
        raise DataError(f"{path}: cannot be read as SQLite ({error}); restore the file") from error
    if not {"studies", "trials", "version_info"} <= tables:
        raise DataError(
            f"{path}: an SQLite file, but no storage of Optuna (tables: {', '.join(sorted(tables)) or 'none'}); give "
            "the file that was named in optuna.create_study(storage=...)"
        )


def _require_journal(path: Path) -> None:
    with path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            try:
                entry = json.loads(line)
            except ValueError:
                entry = None
            if entry is None and number > 1 and not line.endswith(b"\n"):
                return  # a process is writing it, and Optuna leaves it out too
            if not isinstance(entry, dict) or "op_code" not in entry:
                raise DataError(
                    f"{path}: row {number} is no entry of an Optuna journal; give an SQLite file, a journal file or "
                    "the URL of a database"
                )
