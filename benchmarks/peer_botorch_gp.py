"""BoTorch's GP on its own: a fit, a posterior, and the analytic log expected improvement over candidates."""

from collections.abc import Callable

import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from case import Case
from gpytorch.mlls import ExactMarginalLogLikelihood
from peer_botorch import model, parts, setting
from problem import Sizes, fit_rows, likelihood_per_point


def rows(sizes: Sizes, number: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return observations and pool, in the process set to one thread and 64-bit floats."""
    setting(sizes)
    return tuple(map(torch.from_numpy, fit_rows(sizes, number)))


def fitted(sizes: Sizes, x: torch.Tensor, y: torch.Tensor) -> SingleTaskGP:
    """Maximise the likelihood as BoTorch does by default; the model has no priors on its parameters."""
    gp = model(x, y, *parts(sizes.dim))
    fit_gpytorch_mll(ExactMarginalLogLikelihood(gp.likelihood, gp))
    return gp


def quality(gp: SingleTaskGP, x: torch.Tensor, y: torch.Tensor) -> float:
    """Return the log likelihood per point."""
    kernel = gp.covar_module
    scale = kernel.base_kernel.lengthscale.detach().numpy().ravel()
    values = (gp.mean_module.constant.item(), scale, kernel.outputscale.item(), gp.likelihood.noise.item())
    return likelihood_per_point(x.numpy(), y.numpy(), *values)


def fit(sizes: Sizes, number: int) -> Case:
    x, y, _ = rows(sizes, number)

    def repeat() -> int:
        for _ in range(sizes.fits):
            fitted(sizes, x, y)
        return sizes.fits

    return Case(repeat, facts={"log_likelihood": quality(fitted(sizes, x, y), x, y)})


def posterior(sizes: Sizes) -> Case:
    """Condition on the observations; mean and variance at the candidates.

    The candidates are a batch of single points, as BoTorch's acquisitions have them: their joint covariance, which is
    not asked for, would take longer.
    """
    x, y, pool = rows(sizes, sizes.fit_points)
    given = parts(sizes.dim)

    def repeat() -> int:
        with torch.no_grad():
            found = model(x, y, *given).eval().posterior(pool[:, None, :])
            _ = found.mean, found.variance
        return 1

    return Case(repeat)


def improvement(sizes: Sizes) -> Case:
    """Score the candidates; the model has its factorisation from a call before."""
    x, y, pool = rows(sizes, sizes.fit_points)
    acquisition = LogExpectedImprovement(model(x, y, *parts(sizes.dim)).eval(), y.max())

    def repeat() -> int:
        with torch.no_grad():
            acquisition(pool[:, None, :])
        return 1

    return Case(repeat)


CASES: dict[str, dict[str, Callable[[Sizes], Case]]] = {
    "gp_fit": {"botorch": lambda sizes: fit(sizes, sizes.fit_points)},
    "gp_fit_large": {"botorch": lambda sizes: fit(sizes, sizes.fit_points_large)},
    "gp_posterior": {"botorch": posterior},
    "gp_log_ei": {"botorch": improvement},
}
