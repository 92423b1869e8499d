"""Identities between the objectives (HyperBO §5.5.1, §5.5.2): K1, K2, K3 of the sheet, §8.2."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from metabo.gp.objectives import degenerate_ekl, ekl_training, gaussian_kl, nll
from metabo.papers.engine.theory.records import Cell, Statement, StatementPart, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator
from metabo.papers.engine.theory.verdicts import IDENTITY, identity, inequality
from metabo.papers.hyperbo.theory.memory import estimate, inputs, model
from metabo.tasks.rows import Moments, sample_moments

CHECKS = {"identities": "EKL and NLL: K1, K2, K3"}


def random_models(rng: np.random.Generator, size: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw means (number, size) and well-conditioned covariances (number, size, size)."""
    root = rng.standard_normal((number, size, size + 2))
    return rng.standard_normal((number, size)), root @ root.transpose(0, 2, 1) / size + 0.1 * np.eye(size)


def random_outputs(rng: np.random.Generator, size: int, number: int) -> np.ndarray:
    """Draw correlated outputs (size, number) of `number` functions at `size` shared inputs."""
    return rng.standard_normal((size, size)) @ rng.standard_normal((size, number)) + 1.0


def model_nll(mean: Float[Array, " m"], covariance: Float[Array, "m m"], y: Float[Array, "m n"]) -> Float[Array, ""]:
    """Return the package's NLL (Eq. 13) of matched data Y under N(mean, covariance)."""
    size, number = y.shape
    x = jnp.broadcast_to(inputs(jnp.arange(size)), (number, size, 1))
    return nll(model(mean, covariance, 0.0), x, y.T, jnp.ones((number, size), bool))


def model_ekl_training(
    mean: Float[Array, " m"],
    covariance: Float[Array, "m m"],
    sample_mean: Float[Array, " m"],
    root: Float[Array, "m n"],
) -> Float[Array, ""]:
    """Return the package's H-EKL training loss (sheet §2.6) of one matched block with moments `sample_mean`, `root`."""
    x = inputs(jnp.arange(mean.shape[0]))
    block = Moments(x[None], sample_mean[None], root[None], jnp.ones((1, mean.shape[0]), bool))
    return ekl_training(model(mean, covariance, 0.0), block)


def projected_ekl(
    mean: Float[Array, " m"], covariance: Float[Array, "m m"], sample_mean: Float[Array, " m"], a: Float[Array, "m r"]
) -> Float[Array, ""]:
    """Return Eq. 6 as printed, for a factor A of the sample covariance with r independent columns."""
    inverse = jnp.linalg.solve(a.T @ a, a.T)
    projected, shift = inverse @ covariance @ inverse.T, inverse @ (mean - sample_mean)
    both = jnp.linalg.solve(projected, jnp.concatenate([jnp.eye(a.shape[1]), shift[:, None]], axis=1))
    return 0.5 * (jnp.trace(both[:, :-1]) + shift @ both[:, -1] + jnp.linalg.slogdet(projected)[1] - a.shape[1])


def identities(key: Key[Array, ""], _share: float) -> list[Statement]:
    """Check K1, K2 and K3, and the two remarks of §5.5 that the same numbers contradict."""
    rng = generator(key)
    return [*_nondegenerate(rng), _training_loss(rng), *_projected(rng)]


def _losses(means: np.ndarray, covariances: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the package's NLL of every model."""
    return np.asarray(jax.jit(jax.vmap(lambda m, c: model_nll(m, c, jnp.asarray(y))))(means, covariances))


def _full(means: np.ndarray, covariances: np.ndarray, y: np.ndarray, divisor: int | None = None) -> np.ndarray:
    """Return the package's EKL of every model, Eq. 7, to the sample moments of Y, with the divisor N or another."""
    fitted = estimate(jnp.asarray(y))
    sample = fitted.covariance * (y.shape[1] / (divisor or y.shape[1]))
    ekl = jax.jit(jax.vmap(lambda m, c: gaussian_kl(fitted.mean, sample, m, c)))
    return np.asarray(ekl(means, covariances))


def _degenerate(means: np.ndarray, covariances: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the package's EKL of every model, Eq. 6, to the sample moments of Y."""
    mean, root = sample_moments(y)
    return np.array([degenerate_ekl(m, c, mean, root) for m, c in zip(means, covariances, strict=True)])


def _nondegenerate(rng: np.random.Generator) -> list[Statement]:
    """K1: EKL is NLL less the NLL of the sample moments, for every model; and the wording of §5.5.1 (I16)."""
    y, few = random_outputs(rng, 6, 20), random_outputs(rng, 6, 4)
    means, covariances = random_models(rng, 6, 200)
    sample_mean, root = sample_moments(y)
    # the sample moments are the last model
    models = np.vstack([means, sample_mean]), np.concatenate([covariances, (root @ root.T)[None]])
    *losses, least = _losses(*models, y)
    losses, ekl = np.array(losses), _full(means, covariances, y)
    difference = _losses(means, covariances, few) - _degenerate(means, covariances, few)
    varies = identity(difference, difference.mean())
    varies.numbers["std"] = difference.std()

    against = control("the same with Eq. 6 on the left when N = 4 <= M = 6", [cell(varies, functions=4, points=6)])
    same = part(
        "difference", "KL(sample || model) = NLL(model) - NLL(sample moments)", "identity",
        [cell(identity(ekl, losses - least), functions=20, points=6)], against,
    )  # fmt: skip
    ratio = losses / ekl
    factor = part(
        "factor", "EKL and NLL agree up to a constant factor: their ratio does not depend on the model", "identity",
        [cell(identity(ratio, ratio.mean()), functions=20, points=6)],
        control("EKL = NLL, without any constant", [cell(identity(ekl, losses), functions=20, points=6)]),
    )  # fmt: skip
    return [
        statement("K1", "EKL = NLL + constant for matched, non-degenerate data", "§5.5.1", [same]),
        statement(
            "K1 wording", "'equivalent up to a constant factor': the constant is additive (I16)", "§5.5.1", [factor]
        ),
    ]


def _training_loss(rng: np.random.Generator) -> Statement:
    """K2: the H-EKL training loss is NLL plus a constant, whatever the rank of the sample covariance (I21)."""
    y = random_outputs(rng, 10, 3)
    means, covariances = random_models(rng, 10, 200)
    losses = _losses(means, covariances, y)
    mean, root = sample_moments(y)
    constant = 0.5 * y.shape[0] * np.log(2.0 * np.pi)
    setting = {"functions": 3, "points": 10}
    batched = jax.jit(jax.vmap(model_ekl_training, in_axes=(0, 0, None, None)))

    def training(factor: np.ndarray) -> np.ndarray:
        return np.asarray(batched(means, covariances, mean, factor))

    against = control(
        "the same with a sample covariance divided by N - 1",
        [cell(identity(training(root * np.sqrt(3.0 / 2.0)) + constant, losses), **setting)],
    )
    same = part(
        "training loss", "½[tr(Σ⁻¹Σ̃) + Mahalanobis + ln|Σ|] + (M/2) ln 2π = NLL on one matched block of rank 2 < 10",
        "identity", [cell(identity(training(root) + constant, losses), **setting)], against,
    )  # fmt: skip
    return statement(
        "K2", "The H-EKL training loss is NLL + constant, also for singular data (I21)", "§5.2.3", [same], "ours"
    )


def _projected(rng: np.random.Generator) -> list[Statement]:
    """K3: Eq. 6 does not depend on the factor A, reduces to Eq. 7 and is not negative; and §5.5.2's converse (I15)."""
    size, number = 10, 5
    y = random_outputs(rng, size, number)
    means, covariances = random_models(rng, size, 1000)
    mean, root = sample_moments(y)
    left, singular, _ = np.linalg.svd(root, full_matrices=False)
    a = left[:, : number - 1] * singular[: number - 1]
    rotation = np.linalg.qr(rng.standard_normal((number - 1, number - 1)))[0]
    batched = jax.jit(jax.vmap(projected_ekl, in_axes=(0, 0, None, None)))

    def printed(factor: np.ndarray) -> np.ndarray:
        return np.asarray(batched(means, covariances, mean, factor))

    ours = _degenerate(means, covariances, y)
    setting = {"functions": number, "points": size}
    invariant = part(
        "invariance", "A and AB with orthogonal B give one EKL, the package's (which takes an SVD)", "identity",
        [cell(identity(printed(a @ rotation), ours), **setting), cell(identity(printed(a), ours), **setting)],
        control("the same with 2A", [cell(identity(printed(2.0 * a), ours), **setting)]),
    )  # fmt: skip
    null = np.eye(size) - left[:, : number - 1] @ left[:, : number - 1].T
    other, whole = (degenerate_ekl(mean, root @ root.T + added, mean, root) for added in (null, np.eye(size)))
    zero = part(
        "zero", "Eq. 6 = 0 for Σ̃ plus the projector on its null space", "identity",
        [cell(identity(other, 0.0), **setting)],
        control("Eq. 6 = 0 for Σ̃ plus the identity", [cell(identity(whole, 0.0), **setting)]),
    )  # fmt: skip
    return [
        statement(
            "K3", "Eq. 6: invariant, reduces to Eq. 7, not negative", "§5.2.2",
            [invariant, _reduction(rng), _sign(rng, y, a, ours), zero],
        ),
        statement(
            "K3 converse", "'EKL = 0 iff the distributions are identical', degenerate data (I15)", "§5.5.2",
            [_converse(root @ root.T, null, other, setting)],
        ),
    ]  # fmt: skip


def _reduction(rng: np.random.Generator) -> StatementPart:
    """Eq. 6 is Eq. 7 when the sample covariance has full rank."""
    y, models = random_outputs(rng, 6, 20), random_models(rng, 6, 200)
    ours, setting = _degenerate(*models, y), {"functions": 20, "points": 6}
    return part(
        "reduction", "Eq. 6 = Eq. 7 when the sample covariance has full rank", "identity",
        [cell(identity(ours, _full(*models, y)), **setting)],
        control("Eq. 7 to the covariance with the divisor N - 1",
                [cell(identity(ours, _full(*models, y, divisor=19)), **setting)]),
    )  # fmt: skip


def _sign(rng: np.random.Generator, y: np.ndarray, a: np.ndarray, far: np.ndarray) -> StatementPart:
    """Eq. 6 is not negative: at random models, where it is `far`, and around a model where it is zero."""
    size, rank = a.shape
    mean, root = sample_moments(y)
    left = np.linalg.svd(a)[0][:, rank:]
    at = np.linalg.cholesky(root @ root.T + left @ left.T)
    scale = 10.0 ** rng.uniform(-3.0, 0.0, (1000, 1, 1))
    factor = at @ (np.eye(size) + scale * rng.standard_normal((1000, size, size)))
    covariances = factor @ factor.transpose(0, 2, 1)
    near = _degenerate(mean + scale[:, 0] * rng.standard_normal((1000, size)), covariances, y)
    inverse = np.linalg.pinv(a)
    without = near - 0.5 * np.linalg.slogdet(inverse @ covariances @ inverse.T)[1]
    setting = {"functions": y.shape[1], "points": size}
    return part(
        "sign", "Eq. 6 is never negative", "inequality",
        [cell(inequality(0.0, values), models=name, **setting) for name, values in (("random", far), ("near", near))],
        control("nor is it without ln|A⁺ΣA⁺ᵀ|", [cell(inequality(0.0, without), models="near", **setting)]),
    )  # fmt: skip


def _converse(sample: np.ndarray, null: np.ndarray, ekl: float, setting: dict[str, int]) -> StatementPart:
    """A model with EKL = 0 has the sample's covariance: `sample` + `null` has not, if its `ekl` is 0 to rounding."""

    def has(covariance: np.ndarray) -> list[Cell]:
        found = identity(sample + null, covariance)
        found.numbers["ekl"] = ekl
        return [cell(found, **setting)] if abs(ekl) <= IDENTITY else []

    return part(
        "converse", "a model with EKL = 0 has the sample's covariance", "identity", has(sample),
        control("it has the sample's covariance and variance 2 in its null space", has(sample + 2.0 * null)),
    )  # fmt: skip
