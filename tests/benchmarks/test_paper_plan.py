"""The estimate of the paper scale covers every job, and grows with what a job does."""

from collections import Counter
from pathlib import Path

import paper_plan
import pytest

from metabo.plan import config
from tests import counts

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def scales():
    return [config.load(ROOT), config.load(ROOT, (ROOT / "config" / "paper.yaml",))]


def test_every_job_of_both_scales_has_work(scales):
    for settings in scales:
        jobs = paper_plan.jobs(settings)
        wanted = counts.artefacts(settings, counts.enabled(settings))
        computing = ("pretrain", "evaluate", "run_bo", "run_online")
        assert Counter(job.rule for job in jobs) == {rule: wanted[rule] for rule in computing}
        assert all(paper_plan.work(job, settings, job.benchmark, job.split) > 0 for job in jobs)


@pytest.mark.parametrize(
    ("rule", "method", "acquisition", "ratio"),
    [
        # (priors x steps x training tasks) of pd1 at 5 priors and 50,000 steps over pd1_mini at 3
        (
            "pretrain",
            "h_nll",
            "",
            lambda laptop: (9 * 5 * 50_000 * 20) / (7 * 3 * laptop.pretrain.adam_steps * 20),
        ),
        # runs x iterations x candidates
        ("run_bo", "h_nll", "pi", lambda _: (23 * 5 * 5 * 100 * 2000) / (24 * 3 * 1 * 100 * 880)),
        # runs x iterations x steps of each fit
        (
            "run_bo",
            "stbo",
            "pi",
            lambda laptop: (23 * 5 * 5 * 100 * 100) / (24 * 3 * 1 * 100 * laptop.bo.refit_steps),
        ),
        # runs x iterations x mini-batches: 1000 epochs of all rows at paper scale
        (
            "run_bo",
            "mimo",
            "ucb18",
            lambda laptop: (23 * 5 * 5 * 100 * 1000 * 20 * 2000 / 64) / (24 * 3 * 1 * 100 * laptop.mimo.retrain_steps),
        ),
    ],
)
def test_work_counts_the_innermost_steps(scales, rule, method, acquisition, ratio):
    laptop, paper = scales
    job = paper_plan.NumericJob(rule, "pd1", "held_out", method, acquisition)
    found = paper_plan.work(job, paper, "pd1", "held_out") / paper_plan.work(job, laptop, "pd1_mini", "held_out")
    assert found == pytest.approx(ratio(laptop))


def test_work_of_h_ekl_grows_with_the_matched_points_that_there_are(scales):
    few, some = (
        paper_plan.work(paper_plan.NumericJob("pretrain", "pd1_mini", split, "h_ekl"), scales[0], "pd1_mini", split)
        for split in ("others_points_4", "others_points_100")
    )
    assert some / few == pytest.approx(25**3)


def test_work_on_a_synthetic_benchmark_grows_with_its_settings(scales):
    """Of Super-dataset L: 20 domains, a fifth of the functions tested; (seeds, steps of a fit, test functions)."""
    laptop = scales[0]
    job = paper_plan.NumericJob("run_bo", "mphd_l", "held_out", "mphd", "pi")
    found = [paper_plan.work(job, settings, "mphd_l", "held_out") for settings in scales]
    assert found == [20 * 1 * laptop.mphd.bo_seeds * 100 * laptop.mphd.map_steps, 20 * 4 * 5 * 100 * 100]


def test_step_1_of_mphd_is_a_job_of_the_plan(scales):
    jobs = paper_plan.jobs(scales[1])
    assert paper_plan.NumericJob("pretrain", "super", "held_out", "base_gp", "") in jobs
    assert paper_plan.NumericJob("pretrain", "super", "new_space", "mphd", "") in jobs
