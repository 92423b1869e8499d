"""BoTorch on the common work: SingleTaskGP with an analytic acquisition over the same candidates, on one CPU core.

Its kernel acts on the 4 raw inputs, where metabo's acts on 32 features: less work for BoTorch.
"""

import warnings
from collections.abc import Callable

import numpy as np
import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim.fit import fit_gpytorch_mll_scipy
from case import Case
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.mlls import ExactMarginalLogLikelihood
from problem import Sizes, candidates, observed


def setting(sizes: Sizes) -> tuple[torch.Tensor, torch.Tensor]:
    """Use one thread and 64-bit floats; return the pool."""
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    warnings.filterwarnings("ignore", module="botorch|gpytorch|linear_operator")
    x, y = candidates(sizes)
    return torch.from_numpy(x), torch.from_numpy(y)


def parts(dim: int) -> tuple[ScaleKernel, GaussianLikelihood]:
    """Return a Matérn-5/2 kernel and a noise with the values of metabo's untrained prior."""
    kernel = ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=dim))
    kernel.outputscale = kernel.base_kernel.lengthscale = float(np.log(2.0))
    likelihood = GaussianLikelihood(noise_constraint=GreaterThan(1e-8))
    likelihood.noise = float(np.log1p(np.exp(-4.0)))
    return kernel, likelihood


def model(x: torch.Tensor, y: torch.Tensor, kernel: ScaleKernel, likelihood: GaussianLikelihood) -> SingleTaskGP:
    return SingleTaskGP(x, y[:, None], likelihood=likelihood, covar_module=kernel, outcome_transform=None)


def choose(gp: SingleTaskGP, pool: torch.Tensor, best: torch.Tensor) -> int:
    """Return the candidate of the highest log expected improvement."""
    gp.eval()
    with torch.no_grad():
        return int(LogExpectedImprovement(gp, best)(pool[:, None, :]).argmax())


def bo(sizes: Sizes) -> Case:
    x, y = setting(sizes)
    kernel, likelihood = parts(sizes.dim)

    def repeat() -> int:
        chosen = [int(observed(sizes, 1)[0])]
        for _ in range(sizes.budget):
            gp = model(x[chosen], y[chosen], kernel, likelihood)
            chosen.append(choose(gp, x, y[chosen].max()))
        return sizes.budget

    return Case(repeat)


def refit(sizes: Sizes, fit: Callable[[ExactMarginalLogLikelihood], object]) -> Case:
    x, y = setting(sizes)

    def repeat() -> int:
        for number in sizes.refit_sizes:
            chosen = observed(sizes, number)
            gp = model(x[chosen], y[chosen], *parts(sizes.dim))
            fit(ExactMarginalLogLikelihood(gp.likelihood, gp))
            choose(gp, x, y[chosen].max())
        return len(sizes.refit_sizes)

    return Case(repeat)


def refit_limited(sizes: Sizes) -> Case:
    """Fit by as many L-BFGS iterations as metabo makes."""
    return refit(sizes, lambda mll: fit_gpytorch_mll_scipy(mll, options={"maxiter": sizes.refit_steps}))


def refit_default(sizes: Sizes) -> Case:
    """Fit as BoTorch does by default, until it has converged."""
    return refit(sizes, fit_gpytorch_mll)


CASES: dict[str, dict[str, Callable[[Sizes], Case]]] = {
    "bo": {"botorch": bo},
    "refit": {"botorch": refit_limited, "botorch_default": refit_default},
}
