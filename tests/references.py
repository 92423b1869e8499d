"""Slow, obvious twins of the numeric code, in float64 NumPy and SciPy: what every clever routine is compared with.

Nothing here imports JAX or the package. A GP is a mean vector and a covariance matrix; parameters are constrained.
"""

import numpy as np
from scipy.linalg import solve
from scipy.spatial.distance import cdist
from scipy.stats import multivariate_normal, norm

JITTER = 1e-6  # the authors' code adds it to the noise variance in every covariance


def softplus(raw):
    return np.logaddexp(0.0, raw) + 1e-10


def mlp(layers, x):
    """tanh after every layer; `layers` is a list of (weight, bias)."""
    for weight, bias in layers:
        x = np.tanh(x @ np.asarray(weight) + np.asarray(bias))
    return x


def radial(shape, r):
    if shape == "matern12":
        return np.exp(-r)
    if shape == "matern32":
        return (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r)
    if shape == "matern52":
        return (1 + np.sqrt(5) * r + 5 * r**2 / 3) * np.exp(-np.sqrt(5) * r)
    return np.exp(-(r**2) / 2)


def stationary(shape, variance, lengthscale, a, b):
    """s_v k(‖(a - b)/ℓ‖) with SciPy's distances."""
    return variance * radial(shape, cdist(a / lengthscale, b / lengthscale))


def dot_product(scale, bias, a, b):
    return np.array([[bias**2 + np.dot(p, q) / scale**2 for q in b] for p in a]).reshape(len(a), len(b))


class DenseGP:
    """A GP of the package read leaf by leaf: `mean(x)`, `kernel(a, b)`, `noise`, on the raw inputs."""

    def __init__(self, gp):
        layers = getattr(gp.features, "weights", ())
        self.layers = list(zip(layers, getattr(gp.features, "biases", ()), strict=True))
        self.gp = gp
        self.noise = float(softplus(np.asarray(gp.raw_noise)))

    def features(self, x):
        return mlp(self.layers, np.asarray(x, dtype=np.float64))

    def mean(self, x):
        mean, phi = self.gp.mean, self.features(x)
        if hasattr(mean, "weight"):
            return phi @ np.asarray(mean.weight) + float(mean.bias)
        return np.full(len(phi), float(getattr(mean, "value", 0.0)))

    def kernel(self, a, b):
        k, a, b = self.gp.kernel, self.features(a), self.features(b)
        if hasattr(k, "raw_scale"):
            return dot_product(softplus(float(k.raw_scale)), float(k.bias), a, b)
        return stationary(k.shape, softplus(float(k.raw_variance)), softplus(np.asarray(k.raw_lengthscale)), a, b)

    def covariance(self, x):
        """k∘σ²(x): the noise is on the index, so repeated inputs stay distinct observations."""
        return self.kernel(x, x) + (self.noise + JITTER) * np.eye(len(x))

    def nll(self, x, y):
        return -multivariate_normal(self.mean(x), self.covariance(x)).logpdf(y)

    def posterior(self, x, y, new):
        """Mean and variance of f at `new` (Eq. 17-18) by one dense solve."""
        if len(x) == 0:
            return self.mean(new), np.diag(self.kernel(new, new)).copy()
        cross = self.kernel(x, new)
        solved = solve(self.covariance(x), np.column_stack([y - self.mean(x), cross]), assume_a="sym")
        variance = np.diag(self.kernel(new, new)) - np.sum(cross * solved[:, 1:], axis=0)
        return self.mean(new) + cross.T @ solved[:, 0], variance


def maximum_likelihood(y):
    """μ̃ and Σ̃ of the columns of y (m, N), divided by N (Eq. 4)."""
    mean = y.mean(axis=1)
    return mean, sum(np.outer(c - mean, c - mean) for c in y.T) / y.shape[1]


def gaussian_kl(mean0, cov0, mean1, cov1):
    """Eq. 7."""
    inverse = np.linalg.inv(cov1)
    shift = mean1 - mean0
    logdet = np.linalg.slogdet(cov1)[1] - np.linalg.slogdet(cov0)[1]
    return 0.5 * (np.trace(inverse @ cov0) + shift @ inverse @ shift + logdet - len(shift))


def projected_kl(mean, covariance, sample_mean, sample_covariance, rank, rotation=None):
    """Eq. 6 as printed: A = V Λ^½ from the `rank` largest eigenvalues, times an orthogonal matrix if given."""
    values, vectors = np.linalg.eigh(sample_covariance)
    root = vectors[:, -rank:] * np.sqrt(values[-rank:])
    if rotation is not None:
        root = root @ rotation
    pseudo = np.linalg.inv(root.T @ root) @ root.T
    projected = pseudo @ covariance @ pseudo.T
    shift = pseudo @ mean - pseudo @ sample_mean
    inverse = np.linalg.inv(projected)
    return 0.5 * (np.trace(inverse) + shift @ inverse @ shift + np.linalg.slogdet(projected)[1] - rank)


def score(acquisition, mean, std, best, count, threshold=0.1):
    """Acquisition values after `count` observations; `best` None before the first."""
    if acquisition == "pi":
        target = 0.0 if best is None else best + threshold
        return (mean - target) / std
    if acquisition == "ei":
        target = 0.0 if best is None else best
        gain = mean - target
        return gain * norm.cdf(gain / std) + std * norm.pdf(gain / std)
    coefficients = {"ucb18": 1.8, "ucb3": 3.0}
    assert acquisition in coefficients, f"add the formula of acquisition '{acquisition}' to tests/references.py: score"
    return mean + coefficients[acquisition] * std


def bayesian_optimisation(gp, x, y, acquisition, iterations, initial=(), threshold=0.1, priority=None):
    """Algorithm 1 on a finite pool with a dense solve per iteration; returns the selected rows and predictions."""
    chosen, moments = list(initial), []
    priority = np.zeros(len(x)) if priority is None else priority
    for _ in range(iterations):
        mean, variance = gp.posterior(x[chosen], y[chosen], x)
        std = np.sqrt(np.maximum(variance, 0) + gp.noise)
        values = score(acquisition, mean, std, y[chosen].max() if chosen else None, len(chosen), threshold)
        ties = np.flatnonzero(values == values.max())
        chosen.append(int(ties[np.argmax(priority[ties])]))
        moments.append((mean[chosen[-1]], std[chosen[-1]]))
    return chosen, moments


def central_difference(function, point, step=1e-6):
    """Gradient of a scalar function by central differences, entry by entry."""
    point = np.asarray(point, dtype=np.float64)
    gradient = np.zeros(point.size)
    for i in range(point.size):
        shift = np.zeros(point.size)
        shift[i] = step
        up, down = (function((point.ravel() + s * shift).reshape(point.shape)) for s in (1, -1))
        gradient[i] = (up - down) / (2 * step)
    return gradient.reshape(point.shape)
