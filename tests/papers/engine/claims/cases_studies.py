"""Cases of checks of online tuning, theory and studies, as in `cases_bo`."""

from tests.papers.engine.claims.made import HALVES, either, numbers, over


def finals(good):
    rows = [
        {
            "task": t,
            "metric": "error",
            "method": m,
            "mean": v,
            "std": 0.0,
            "median": v,
            "with_value": 3,
            "repetitions": 3,
        }
        for m, own in (("h_nll_online", [1, 1, 1, either(good, 9, 1)]), ("stboh_online", [2, 2, either(good, 2, 1), 1]))
        for t, v in zip(HALVES, own, strict=True)
    ]
    return numbers(final=rows)


def infeasible(good):
    rows = [
        {"task": task, "method": m, "queries": 10, "infeasible": n, "share": n / 10}
        for m, own in (("mimo_online", [10, either(good, 10, 0)]), ("h_nll_online", [2, 10]))
        for task, n in zip(("WMT 64", "LM1B 2048"), own, strict=True)
    ]
    return numbers(infeasible=rows)


def theory(good, verdict=None, no_power=0):
    names = ["Theorem 5, printed: bounds", "Theorem 5, probability, printed: bounds"]
    verdicts = ["SUPPORTED", verdict or either(good, "SUPPORTED", "REFUTED")]
    return numbers(verdict=over("statement", statement=names, verdict=verdicts, no_power=[0, no_power]))


def kl(good):
    rows = []
    for model, level in (("mle", 0.4), ("unbiased", either(good, 0.2, 0.4)), ("pretrained", 0.01)):
        for t in range(5):
            rows.append(
                {"model": model, "functions": 10, "observations": t, "median": level + either(good, 0.1, -0.05) * t}
            )
            rows.append({"model": model, "functions": 50, "observations": t, "median": either(good, 0.005, 0.5)})
    return numbers(keys=["functions", "observations"], kl=rows)


STUDIES = {
    "ends_lower": lambda good: (
        finals(good),
        {"methods": ["h_nll_online"], "reference": "stboh_online", "least": 0.75},
    ),
    "only_infeasible": lambda good: (infeasible(good), {"method": "mimo_online", "tasks": ["WMT", "LM1B"]}),
    "more_infeasible": lambda good: (infeasible(good), {"more": ["mimo_online"], "than": ["h_nll_online", "rand"]}),
    "statements": lambda good: (theory(good), {"names": ["Theorem 5, printed", "Theorem 5, probability, printed"]}),
    "minima_differ": lambda good: (
        numbers(
            differ=over(
                "parameter", parameter=["constant", "amplitude"], share=[0.9, either(good, 0.9, 0.4)], of=[200, 200]
            )
        ),
        {},
    ),
    "drifts": lambda good: (kl(good), {"models": ["mle"], "functions": 10}),
    "more_functions_help": lambda good: (kl(good), {"few": 10, "many": 50}),
    "variance_ratios": lambda good: (
        numbers(
            keys=["functions", "observations"],
            variance=over(
                "model",
                model=["mle", "unbiased"],
                functions=[10, 10],
                observations=[1, 1],
                ratio=[0.9, 1.0],
                error=[0.01, 0.01],
                expected=[0.9, 1.0],
                z=[0.5, either(good, -2.0, -5.0)],
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
                share=[0.95, either(good, 0.9, 0.85)],
                of=[400, 400],
            ),
        ),
        {"least": 0.9},
    ),
    "exponents": lambda good: (
        numbers(
            exponent=over(
                "row",
                row=["loss", "GD"],
                axis=["M", "K"],
                resource=["time", "time"],
                objective=["ekl", "nll"],
                slope=[either(good, 2.7, 3.4), 1.0],
                low=[2.2, 0.9],
                high=[3.5, 1.1],
                lowest=[2.3, float("nan")],
                highest=[3.3, float("nan")],
                agrees=[1.0, float("nan")],
            )
        ),
        {},
    ),
    "model_orders": lambda good: (
        numbers(
            order=over(
                "comparison",
                comparison=["truth < pretrained < single_task", "truth < pretrained"],
                metric=["nll", "nll"],
                share=[either(good, 1.0, 0.6), 0.1],
                of=[50, 50],
            )
        ),
        {"least": 0.9},
    ),
    "covers_better": lambda good: (
        numbers(
            coverage=over(
                "metric",
                metric=["coverage_95", "coverage_99"] * 2,
                model=["pretrained"] * 2 + ["single_task"] * 2,
                mean=[0.9, either(good, 0.95, 0.5), 0.6, 0.7],
            )
        ),
        {"model": "pretrained", "other": "single_task"},
    ),
    "stays_constant": lambda good: (
        numbers(moved=over("kind", kind=["one_block", "eq6"], largest=[either(good, 1e-14, 0.1), 6.0])),
        {},
    ),
}
