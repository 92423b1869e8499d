"""metabo: Bayesian optimisation with learned Gaussian-process priors.

    import metabo

    study = metabo.pretrain(["history.csv"], ["space.yaml"], "my_study")     # a prior of your past tuning runs
    for suggestion in study.suggest(3):
        study.tell(suggestion.configuration, train(**suggestion.configuration))

The public names are those of `__all__` (docs/python.md); each is imported on first access. Importing the package, or
any of them, changes no environment variable and no JAX setting: calls compute in float64 and leave the rest of the
process as it is (`metabo.compute.guest`). Types are in the stub next to this file.
"""

import importlib
import importlib.util

__all__ = [
    "GP",
    "Benchmark",
    "PriorSampler",
    "Study",
    "__version__",
    "draft_space",
    "list_methods",
    "load_benchmark",
    "pretrain",
    "run_bo",
]

_PLACES = {
    "GP": "metabo.gp.process.GaussianProcess",
    "Benchmark": "metabo.tasks.benchmark.Benchmark",
    "PriorSampler": "metabo.tuner.samplers.PriorSampler",
    "Study": "metabo.tuner.study.Study",
    "__version__": "metabo.records.provenance.VERSION",
    "draft_space": "metabo.tuner.drafts.draft_space",
    "list_methods": "metabo.public.list_methods",
    "load_benchmark": "metabo.public.load_benchmark",
    "pretrain": "metabo.tuner.study.pretrain",
    "run_bo": "metabo.public.run_bo",
}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module 'metabo' has no attribute '{name}'; it has {', '.join(__all__)}")
    module, _, attribute = _PLACES[name].rpartition(".")
    value = getattr(importlib.import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    lacking = set() if importlib.util.find_spec("optuna") else {"PriorSampler"}  # help(metabo) works without Optuna
    return sorted({*globals(), *__all__} - lacking)
