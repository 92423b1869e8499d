"""What type checkers see of the public names, which `__init__.py` imports when they are first asked for."""

from metabo.gp.process import GaussianProcess as GP
from metabo.public import list_methods as list_methods
from metabo.public import load_benchmark as load_benchmark
from metabo.public import run_bo as run_bo
from metabo.tasks.benchmark import Benchmark as Benchmark
from metabo.tuner.drafts import draft_space as draft_space
from metabo.tuner.samplers import PriorSampler as PriorSampler
from metabo.tuner.study import Study as Study
from metabo.tuner.study import pretrain as pretrain

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

__version__: str
