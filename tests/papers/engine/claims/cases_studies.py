"""Cases of checks of online tuning, theory and studies, as in `cases_bo`."""

import numpy as np
import pandas as pd

from tests.papers.engine.claims.made import TASKS, either, numbers, over


def asked(infeasible, queries=4, seeds=10):
    """Return an online table: `infeasible` has the method's first infeasible queries of every run, task by task."""
    rows = [
        {"task": task, "method": m, "prior_seed": 0, "seed": seed, "iteration": t, "feasible": t > first}
        for m, own in infeasible.items()
        for task, first in own.items()
        for seed in range(seeds)
        for t in range(1, queries + 1)
    ]
    return pd.DataFrame(rows)


def finals(good):
    """H-NLL ends lower on all 24 tasks, or on one."""
    won = either(good, TASKS, TASKS[:1])
    rows = [
        {"task": t, "metric": "error", "method": m, "median": v}
        for t in TASKS
        for m, v in (("h_nll_online", 1.0 if t in won else 3.0), ("stboh_online", 2.0))
    ]
    online = asked(dict.fromkeys(["h_nll_online", "stboh_online"], dict.fromkeys(TASKS, 0)))
    return numbers(final=rows, sources={"online": online})


def infeasible(good, seeds=10):
    """MIMO never asks for a feasible point, or always; H-NLL after one or two queries."""
    tasks = ["WMT 64", "LM1B 2048", *TASKS[:6]]
    mimo = dict.fromkeys(tasks, either(good, 4, 0))
    online = asked(
        {"mimo_online": mimo, "h_nll_online": {task: 1 + i % 2 for i, task in enumerate(tasks)}}, seeds=seeds
    )
    found = online.groupby(["task", "method", "seed"])["feasible"].any().groupby(["task", "method"])
    final = found.agg(with_value="sum", repetitions="count").reset_index()
    return numbers(final=final.to_dict("records"), sources={"online": online})


def theory(good, verdict=None, no_power=0):
    names = ["Theorem 5, printed: bounds", "Theorem 5, probability, printed: bounds"]
    verdicts = ["SUPPORTED", verdict or either(good, "SUPPORTED", "REFUTED")]
    return numbers(verdict=over("statement", statement=names, verdict=verdicts, no_power=[0, no_power]))


def estimates(good, **tables):
    """Forty draws: divergences grow with the observations and fall with the functions, or the other way round."""
    rows = [
        {"draw": draw, "functions": n, "observations": t, "model": model, "x": 1.0 + x, "kl": level * grown * times}
        for model, level in (("mle", 0.4), ("unbiased", 0.2), ("pretrained", 0.01))
        for draw in range(40)
        for n, times in ((10, 1.0), (50, either(good, 0.1, 10.0)))
        for t in range(5)
        for grown in [(1 + 0.5 * t) ** either(good, 1, -1) * np.exp(0.3 * np.cos(7 * draw + n))]
        for x in range(5 - t)
    ]
    frame = pd.DataFrame(rows)
    studies = {"estimates": {"marginal": frame}}
    return numbers(
        parameters={"functions": 10}, keys=["functions", "observations"], sources={"studies": studies}, **tables
    )


def coverage(good):
    """Forty draws of coverage."""
    rows = [
        {"seed": seed, "metric": metric, "model": model, "value": level + 0.02 * np.cos(7 * seed)}
        for metric in ("coverage_95", "coverage_99")
        for model, level in (("pretrained", either(good, 0.92, 0.5)), ("single_task", 0.6))
        for seed in range(40)
    ]
    return numbers(sources={"studies": {"transfer": {"loss": pd.DataFrame(rows)}}})


def whole(good):
    """Forty draws, in which the bands of one GP, or of the other, hold the whole function in thirty, else in five."""
    rows = [
        {"seed": seed, "metric": metric, "model": model, "value": 1.0 if seed < often else 0.995}
        for metric in ("coverage_95", "coverage_99")
        for model, often in (("pretrained", either(good, 30, 5)), ("single_task", either(good, 5, 30)))
        for seed in range(40)
    ]
    return numbers(sources={"studies": {"transfer": {"loss": pd.DataFrame(rows)}}})


def transfer_losses(extreme):
    """Of fifty draws, the single-task GP has the lowest NLL of its observations, and the highest of f, in `extreme`."""
    rows = [
        {"seed": seed, "metric": metric, "model": model, "value": value}
        for seed in range(50)
        for metric, own in (("nll_df", 0.0), ("nll_f", 9.0))
        for model, value in (("truth", 1.0), ("pretrained", 2.0), ("single_task", own if seed < extreme else 1.5))
    ]
    return numbers(sources={"studies": {"transfer": {"loss": pd.DataFrame(rows)}}})


STUDIES = {
    "ends_lower": lambda good: (
        finals(good),
        {"methods": ["h_nll_online"], "reference": "stboh_online", "least": 0.5, "strictly": True},
    ),
    "only_infeasible": lambda good: (infeasible(good), {"method": "mimo_online", "tasks": ["WMT", "LM1B"]}),
    "more_infeasible": lambda good: (infeasible(good), {"more": ["mimo_online"], "than": ["h_nll_online"]}),
    "statements": lambda good: (theory(good), {"names": ["Theorem 5, printed", "Theorem 5, probability, printed"]}),
    "minima_differ": lambda good: (
        numbers(
            differ=over(
                "parameter", parameter=["constant", "amplitude"], share=[0.9, either(good, 0.9, 0.4)], of=[200, 200]
            )
        ),
        {},
    ),
    "drifts": lambda good: (estimates(good), {"models": ["mle"], "functions": 10}),
    "more_functions_help": lambda good: (estimates(good), {"few": 10, "many": 50}),
    "variance_ratios": lambda good: (
        estimates(
            good,
            variance=over(
                "model",
                model=["mle", "unbiased", "mle"],
                functions=[10, 10, 50],
                observations=[0, 0, 0],
                ratio=[0.9, either(good, 1.0, 0.9), 0.0],
                error=[0.01, 0.01, 0.01],
                expected=[0.9, 1.0, 0.98],
                z=[0.0, 0.0, 0.0],
            ),
        ),
        {},
    ),
    "nearest_share": lambda good: (
        numbers(
            keys=["functions", "observations"],
            wins=over(
                "functions",
                functions=[10, 50],
                observations=[0, 4],
                share=[0.97, either(good, 0.6, 0.4)],
                of=[400, 400],
            ),
        ),
        {"least": 0.5},
    ),
    "exponents": lambda good: (
        numbers(
            exponent=over(
                "row",
                row=["loss", "GD"],
                axis=["M", "K"],
                resource=["time", "time"],
                objective=["ekl", "nll"],
                slope=[either(good, 2.7, 3.6), 1.0],
                low=[either(good, 2.6, 3.5), 0.9],
                high=[either(good, 2.8, 3.7), 1.1],
                sizes=[4, 4],
                lowest=[2.3, float("nan")],
                highest=[3.3, float("nan")],
                agrees=[1.0, float("nan")],
            )
        ),
        {},
    ),
    "extreme": lambda good: (
        transfer_losses(either(good, 40, 10)),
        {"model": "single_task", "lowest": ["nll_df"], "highest": ["nll_f"], "least": 0.5},
    ),
    "covers_all": lambda good: (whole(good), {"model": "pretrained", "other": "single_task"}),
    "covers_better": lambda good: (coverage(good), {"model": "pretrained", "other": "single_task"}),
    "stays_constant": lambda good: (
        numbers(moved=over("kind", kind=["one_block", "eq6"], largest=[either(good, 1e-14, 0.1), 6.0])),
        {},
    ),
}
