"""Errors for modules of the package that cannot be imported. Such a module was edited, so the error names the edit
instead of showing a traceback."""

import traceback
from pathlib import Path

from metabo.errors import ConfigError

PACKAGE_ROOT = Path(__file__).parents[1]  # not from `metabo.plan.parts`, which an edit may have broken


def told(error: Exception) -> ConfigError | None:
    """Return an error with file, line and remedy if `error` stopped the import of one of our modules, or None if it
    came from elsewhere."""
    if isinstance(error, SyntaxError) and _ours(error.filename or ""):
        return _said(error.filename or "", error.lineno, error.msg)
    frames = traceback.extract_tb(error.__traceback__)
    first = next((i for i, frame in enumerate(frames) if frame.name == "<module>" and _ours(frame.filename)), None)
    if first is None:
        return None
    last = [frame for frame in frames[first:] if _ours(frame.filename)][-1]
    return _said(last.filename, last.lineno, f"{type(error).__name__}: {error}".splitlines()[0])


def _ours(file: str) -> bool:
    return Path(file).is_relative_to(PACKAGE_ROOT)


def _said(file: str, line: int | None, what: str) -> ConfigError:
    return ConfigError(f"{file}:{line}: {what}; mend this file and run the same command")
