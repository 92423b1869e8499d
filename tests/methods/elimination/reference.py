"""HE-GP-UCB, HE-StableOpt and their baselines again, in NumPy: a matrix inversion for every candidate and query."""

import jax
import numpy as np


def posterior(gram, mean, noise, points, y):
    """Mean and variance on the whole pool, exactly."""
    if not points:
        return mean.copy(), np.diagonal(gram).copy()
    inverse = np.linalg.inv(gram[np.ix_(points, points)] + noise * np.eye(len(points)))
    cross = gram[:, points]
    return mean + cross @ inverse @ (y - mean[points]), np.diagonal(gram) - np.einsum(
        "ij,jk,ik->i", cross, inverse, cross
    )


def evidence(gram, mean, noise, points, y):
    """Log likelihood of the observations."""
    covariance = gram[np.ix_(points, points)] + noise * np.eye(len(points))
    off = y - mean[points]
    return -0.5 * (off @ np.linalg.solve(covariance, off) + np.linalg.slogdet(2 * np.pi * covariance)[1])


def beta_of(kind, settings, count, t, gain):
    root = np.sqrt(2 * (gain + 1 + np.log(2 / settings.delta)))
    if kind == "frequentist":
        return settings.B + root
    if kind == "frequentist_printed":
        return settings.B + settings.R * root
    if kind == "bayes_finite":
        return np.sqrt(2 * np.log(count * np.pi**2 * t**2 / (3 * settings.delta)))
    assert kind == "bayes_successor"
    return np.sqrt(2 * np.log(t**2 / settings.delta))


def run(problem, rule, settings, key):
    """Return one dictionary per iteration. Supports every rule, both σ, standardised outputs, predictive deviations."""
    kernels, means, f = (np.asarray(a) for a in (problem.kernels, problem.means, problem.f))
    many, pool = means.shape
    place, noise_key, random_key = jax.random.split(key, 3)
    points = np.asarray(jax.random.randint(place, (problem.initial,), 0, pool)).tolist()
    random = np.asarray(jax.random.randint(random_key, (settings.T,), 0, pool))
    errors = problem.noise_std * np.asarray(jax.random.normal(noise_key, (problem.initial + settings.T,)))
    y = [f[p] + e for p, e in zip(points, errors, strict=False)]
    near = np.arange(pool)[:, None] if problem.neighbours is None else np.asarray(problem.neighbours)
    level = (settings.R if settings.noise is None else settings.noise) ** 2
    alive = set(range(many))
    sums = {s: {u: [0.0, 0.0, 0] for u in range(many)} for s in ("chosen", "rival")}
    constant = {"printed": np.pi, "pi2": np.pi**2, "corrected": 2 * np.pi**2}[settings.xi]
    records = []
    for t in range(1, settings.T + 1):
        seen = np.array(y)
        shift, spread, prior = 0.0, 1.0, means
        if settings.standardise and len(seen):
            shift = seen.mean()
            spread = seen.std(ddof=1) if len(seen) > 1 and seen.std() > 0 else 1.0
            prior = (means - shift) / spread if means.any() else means
        z = (seen - shift) / spread
        pairs = [posterior(kernels[u], prior[u], level, points, z) for u in range(many)]
        mu = np.array([shift + spread * m for m, _ in pairs])
        sd = np.array([spread * np.sqrt(np.maximum(v, 0) + (level if settings.predictive else 0)) for _, v in pairs])
        logs = [evidence(kernels[u], prior[u], level, points, z) if points else 0.0 for u in range(many)]
        gains = [
            np.linalg.slogdet(np.eye(len(points)) + kernels[u][np.ix_(points, points)] / level)[1] / 2
            for u in range(many)
        ]
        given = gains if problem.gains is None else np.asarray(problem.gains)[:, len(points)]
        betas = np.array([beta_of(settings.beta, settings, pool, t, gain) for gain in given])
        up, down = mu + betas[:, None] * sd, mu - betas[:, None] * sd
        likeliest = int(np.argmax(logs))
        centre, index, u, v = choose(rule, problem, up, down, sorted(alive), likeliest, logs, t, random[t - 1], near)
        value = f[index] + errors[problem.initial + t - 1]
        after = [
            posterior(kernels[w], prior[w], level, [*points, index], (np.array([*y, value]) - shift) / spread)
            for w in (u, v)
        ]
        fired = {}
        for name, w, (_, late) in (("chosen", u, after[0]), ("rival", v, after[1])):
            width = sd[w, index]
            if settings.sigma == "after":
                width = spread * np.sqrt(late[index] + (level if settings.predictive else 0))
            total = sums[name][w]
            total[0] += (value - mu[w, index]) / spread
            total[1] += betas[w] * width / spread
            total[2] += 1
            xi = 2 * settings.R**2 * np.log(many * constant * t**2 / (3 * settings.delta))
            fired[name] = abs(total[0]) > np.sqrt(xi * total[2]) + total[1]
        if rule == "he_stable_opt" and fired["rival"] and len(alive) > 1:
            alive.discard(v)
        if rule in ("he_stable_opt", "he_gp_ucb") and fired["chosen"] and len(alive - {u}):
            alive.discard(u)
        robust = "stable" in rule
        goal = f[near].min(axis=1) if robust else f
        records.append(
            {
                "point": index, "centre": centre, "u": u, "v": v, "y": value, "mean": mu[u, index],
                "sigma": sd[u, index], "beta": betas[u], "rejected": fired["chosen"],
                "error": abs(sums["chosen"][u][0]),
                "alive": [w in alive for w in range(many)], "evidence": logs, "gain": gains,
                "regret": goal.max() - goal[centre],
            }
        )  # fmt: skip
        points.append(int(index))
        y.append(value)
    return records


def choose(rule, problem, up, down, alive, likeliest, logs, t, random, near):
    weights = np.exp(np.array(logs) - max(logs))
    weights /= weights.sum()
    if rule == "he_gp_ucb":
        best = max((up[u].max(), -u) for u in alive)
        u = -best[1]
        return int(up[u].argmax()), int(up[u].argmax()), u, u
    single = {"mle": likeliest, "gp_ucb": int(problem.truth)}
    if rule == "a_gp_ucb":
        scales = np.asarray(problem.scales)
        single["a_gp_ucb"] = int(np.argmin((scales - scales[likeliest] / max(1, t**0.9)) ** 2))
    if rule in single:
        u = single[rule]
        return int(up[u].argmax()), int(up[u].argmax()), u, u
    if rule == "expected_ucb":
        point = int((weights @ up).argmax())
        return point, point, likeliest, likeliest
    if rule == "uniform":
        return int(random), int(random), likeliest, likeliest
    allowed = {"he_stable_opt": alive, "stable_opt": [int(problem.truth)], "mle_stable_opt": [likeliest]}[rule]
    value, _, centre, u = max((up[u][near[x]].min(), -u, x, u) for u in allowed for x in range(len(near)))
    centre = min(x for x in range(len(near)) if up[u][near[x]].min() == value)
    _, v, _, index = min((down[v][p], v, place, int(p)) for v in allowed for place, p in enumerate(near[centre]))
    return centre, index, u, v
