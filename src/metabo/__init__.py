"""metabo: Bayesian optimisation with learned Gaussian-process priors.

Importing the package only asks JAX for 64-bit floats (GP algebra is float64 throughout) and for one thread per process
on a CPU; it does not import JAX itself, so that a stage can still choose its device and pin its cores first
(`metabo.compute.cores`). Import it before JAX computes anything.
"""

import os
import sys

__version__ = "0.1.0"

os.environ.setdefault("JAX_ENABLE_X64", "true")
# jaxlib 0.10 waits forever when independent batched factorisations of one program meet in a pool of several threads:
# each holds a thread and waits for others of the same pool. Runs are spread over processes here, not over threads.
os.environ.setdefault("PJRT_NPROC", "1")
if "jax" in sys.modules:
    sys.modules["jax"].config.update("jax_enable_x64", True)
