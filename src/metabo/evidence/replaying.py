"""Replay a random sample of what is recorded: the choices of runs given the recorded history, and the losses of
priors."""

import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from metabo.bo.priors import widened
from metabo.bo.replay import replay
from metabo.errors import MetaboError
from metabo.evidence import losses
from metabo.evidence.manifest import LOSSES, below
from metabo.evidence.stored import Tables, benchmark_of, making, prior_path, trained
from metabo.plan import registry, typed
from metabo.plan.specs import BOSpec
from metabo.records import inventory
from metabo.records.flaws import DAMAGED, Flaw
from metabo.records.inventory import StoredSidecar
from metabo.records.results import read as read_trajectories
from metabo.tasks.benchmark import Benchmark

CHOICE, LOSS = 1e-9, 1e-6
"""How far below the maximum of its acquisition a recorded choice may be, and how far a loss may be from the recorded
one, relative to its size (to 1, for smaller ones)."""
REFIT = "refit_steps"
"""The setting of policies that fit their parameters after every observation."""
FEWER = 4
"""The number of runs that are replayed for each file of priors whose losses are computed again."""
ORIGIN = "it was not made by this code from these tables; find out which, and add the results again"


class ReplayedSample(NamedTuple):
    """How many runs should be replayed at which scale, the numbers of replayed runs and losses, and their flaws.
    `absent` counts, by benchmark, the tables of runs and the files of priors that could not be replayed because the
    benchmark is not here; `unkept` counts those that are not kept, or whose priors are not; `widest` has the largest
    gap of a choice, and of a loss."""

    scale: str
    asked: int
    runs: int
    losses: int
    absent: Counter[str]
    unkept: int
    widest: tuple[float, float]
    flaws: list[Flaw]

    @property
    def lines(self) -> list[str]:
        """What the user reads besides the flaws."""
        why = "no table that one read is here" if self.absent else "none that is kept can be"
        said = [f"replayed 0 of {self.asked} runs, since {why}: checksums alone were compared"]
        if self.runs or self.losses:
            said = [
                f"replayed {self.runs} runs with the recorded history given: no choice is more than "
                f"{self.widest[0]:.1g} below its acquisition's maximum; {self.losses} losses of priors, within "
                f"{self.widest[1]:.1g}"
            ]
        if self.unkept:
            said.append(f"{self.unkept} not replayed: they, or their priors, are not kept; only their checksums are")
        said += [
            f"{count} not replayed: benchmark '{name}' is not here with the recorded checksum"
            for name, count in sorted(self.absent.items())
        ]
        return said + ([f"to replay these, first: {making(self.scale, sorted(self.absent))}"] if self.absent else [])


def sample(folder: Path, tables: Tables, runs: int, seed: int) -> ReplayedSample:
    """Replay `runs` runs, and the losses of a quarter as many files of priors, drawn from what the folder holds.

    Runs of methods that train or fit in every step are left out (`_fits`).
    """
    rng = np.random.default_rng(seed)
    held = inventory.take(folder.absolute()).records
    runs_of = [one for one in held if one.content.get("stage") == "bo" and not _fits(one)]
    played = [one for one in runs_of if (path := prior_path(one)) is not None and path.is_file() and _kept(one)]
    recorded = losses.read(folder / LOSSES)
    priors = {below(one, name): one for one in held if one.content.get("stage") == "pretrain" for name in one.outputs}
    priors = {name: one for name, one in priors.items() if (folder / name).is_file()}
    named = [one for one in sorted({place.priors for place in recorded}) if one in priors]
    here, fits = [one for one in played if tables.of(one)], [one for one in named if tables.of(priors[one])]
    absent = Counter(benchmark_of(one) for one in played if not tables.of(one))
    absent += Counter(benchmark_of(priors[one]) for one in named if one not in fits)
    flaws: list[Flaw] = []
    gaps, errors = [0.0], [0.0]
    for place in rng.integers(len(here), size=runs) if here else ():
        benchmark = tables.of(here[place])
        assert benchmark is not None, "`here` has those alone"
        gap, flaw = _run(here[place], benchmark, rng)
        gaps.append(gap)
        flaws += flaw
    checked = 0
    for name in rng.permutation(fits)[: -(-runs // FEWER)]:
        benchmark = tables.of(priors[name])
        assert benchmark is not None, "`fits` has those alone"
        now = losses.of_priors(str(name), trained(folder / name, benchmark))
        checked += len(now)
        errors.append(max((_error(nll, recorded.get(place, math.nan)) for place, nll in now.items()), default=0.0))
        if errors[-1] > LOSS:
            what = f"the training loss of its parameters differs by {errors[-1]:.2g} of its size from the recorded one"
            flaws.append(Flaw(DAMAGED, (folder / name).as_posix(), what, ORIGIN))
    unkept = len(runs_of) - len(played)
    widest = max(gaps), max(errors)
    return ReplayedSample(folder.name, runs, len(gaps) - 1, checked, absent, unkept, widest, flaws)


def _kept(record: StoredSidecar) -> bool:
    """Tell whether the table of a run is kept, and not its record alone."""
    return all(record.located(name).is_file() for name in record.outputs)


def _fits(record: StoredSidecar) -> bool:
    """Tell whether a method trains or fits in every step. If L-BFGS stops at a limit, differences in the last digit
    carry over from one step to the next: on LCBench a replay of STBO on the same machine diverged from its record after
    70 steps."""
    spec = record.content.get("spec", {})
    policy = spec.get("policy")
    return registry.made_of(str(spec.get("method"))).uses_past or (isinstance(policy, Mapping) and REFIT in policy)


def _run(record: StoredSidecar, benchmark: Benchmark, rng: np.random.Generator) -> tuple[float, list[Flaw]]:
    """Replay one randomly drawn run of a trajectory table."""
    (name,) = record.outputs
    shown, path = record.result, prior_path(record)
    assert path is not None, "jobs of stage `bo` read priors"
    try:
        spec = typed.read(BOSpec, dict(record.content.get("spec", {})), f"{shown}: spec")
        found = trained(path, benchmark)
        prior = found.priors[int(rng.integers(len(found.priors)))]
        if registry.made_of(spec.method).pads_inputs:
            prior = widened(prior, found.spec, benchmark.width)
        (one,) = replay(
            benchmark, prior, spec, read_trajectories([record.located(name)]), lambda count: [int(rng.integers(count))]
        )
    except MetaboError as error:
        return 0.0, [Flaw(DAMAGED, shown, str(error), ORIGIN)]
    if one.gap <= CHOICE:
        return one.gap, []
    entry = one.entry
    what = (
        f"task '{entry.task}', prior {entry.prior_seed}, run {entry.seed}, iteration {one.iteration}: the recorded "
        f"choice is {one.gap:.2g} below the maximum of its acquisition"
    )
    return one.gap, [Flaw(DAMAGED, shown, what, ORIGIN)]


def _error(now: float, recorded: float) -> float:
    """Return how far a loss is from the recorded one, relative to its size (to 1, for smaller ones), or infinity if
    none is recorded."""
    error = abs(now - recorded) / max(1.0, abs(recorded))
    return math.inf if math.isnan(error) else error
