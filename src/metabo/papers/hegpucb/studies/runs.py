"""Study of HE-GP-UCB on the paper's four problems, against the methods it compares (hegpucb §7, Figure 2)."""

from time import perf_counter

import pandas as pd

from metabo.compute import progress
from metabo.papers.engine.studies import StudySpec
from metabo.papers.engine.studies.files import Frames
from metabo.papers.hegpucb import problems
from metabo.papers.hegpucb.studies.profiles import BESIDE, COMPARED, PROFILES, ProblemGrid, case, execute, run_table

STUDIES = {"hegpucb_runs": {}}


class EliminationSpec(StudySpec):
    """δ, `norm` B (of profile `plain`), `beta` (of `figure`) and `noise` λ of all problems; sizes and seeds of each."""

    delta: float
    norm: float
    beta: float
    noise: float
    problems: dict[str, ProblemGrid]
    seeds: dict[str, int]


def run(spec: EliminationSpec) -> Frames:
    """Return every query of every run, and the candidates.

    "run": problem, profile and the columns of `profiles.run_table`; "candidate": problem, profile, u, label, truth.
    Prints the time of a query.
    """
    frames, candidates = [], []
    for name in progress.loop((name for name in problems.VARIANTS if name in spec["problems"]), "problems"):
        sizes, rules, seeds = spec["problems"][name], (*COMPARED[name], *BESIDE[name]), spec["seeds"][name]
        for profile in progress.loop(PROFILES, "profiles"):
            one = case(
                name, sizes, seeds, spec["seed"], profile=profile, delta=spec["delta"], norm=spec["norm"],
                beta=spec["beta"], noise=spec["noise"],
            )  # fmt: skip
            begin = perf_counter()
            trace = execute(one, rules, seeds, spec["seed"], f"study hegpucb_runs, problem {name}, {profile}")
            spent = (perf_counter() - begin) / trace.point.size
            print(f"problem {name}, {profile}: {1e3 * spent:.2f} ms a query, compilation included", flush=True)
            keys = {"problem": name, "profile": profile}
            frames.append(run_table(one, trace, rules, **keys))
            labels = problems.labels(name, "code" if profile == "successor" else "paper")
            table = pd.DataFrame({"u": range(len(labels)), "label": labels})
            candidates.append(table.assign(**keys))
    return {"run": pd.concat(frames, ignore_index=True), "candidate": pd.concat(candidates, ignore_index=True)}
