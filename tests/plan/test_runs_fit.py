"""Every offline run of the default and the smoke scale has the given points that its seeds ask for."""

from functools import cache
from pathlib import Path

import pytest

from metabo import load_benchmark
from metabo.plan import catalogue, config, registry

ROOT = Path(__file__).parents[2]


@cache
def fewest_sets(benchmark: str) -> int:
    """The given initialisations of the task that has fewest; loading takes most of a test's time, so once for both
    scales."""
    return min(len(sets) for sets in load_benchmark(benchmark).initial.values())


@pytest.mark.parametrize("overlay", [(), ("smoke",)], ids=["laptop", "smoke"])
@pytest.mark.parametrize("benchmark", ["hpob_mini", "cmbo_mini", "cmbo_control", "mphd_l", "super_mini"])
def test_runs_are_no_more_than_given_initialisations(benchmark, overlay):
    """Random search alone may begin with a set again; any other method would repeat a run."""
    settings = config.load(ROOT, tuple(ROOT / "config" / f"{name}.yaml" for name in overlay))
    least = fewest_sets(benchmark)
    listed = catalogue.artefacts(settings, catalogue.load(ROOT))
    runs = {run for a in listed if a.benchmark == benchmark for run in a.trajectories}
    assert runs
    for run in runs:
        seeds = config.bo_spec(settings, benchmark, run.split, run.method, run.acquisition).seeds
        assert seeds <= least or registry.made_of(run.method).draws, (run, seeds, least)
