"""metabo: Bayesian optimisation with learned Gaussian-process priors.

Importing the package only asks JAX for 64-bit floats (GP algebra is float64 throughout); it does not import JAX
itself, so that a stage can still choose its device and pin its cores first (`metabo.runtime`).
"""

import os
import sys

__version__ = "0.1.0"

os.environ.setdefault("JAX_ENABLE_X64", "true")
if "jax" in sys.modules:
    sys.modules["jax"].config.update("jax_enable_x64", True)
