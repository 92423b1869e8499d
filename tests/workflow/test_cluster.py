"""How the plan reaches a cluster: an executor in its place (tests/slurm/plugins) writes down every submission."""

import json
import math
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml

from metabo.plan import limits, registry
from metabo.plan.trainings import prior_of
from tests import counts
from tests.slurm import run as slurm

ROOT = Path(__file__).parents[2]
SIZES = yaml.safe_load((ROOT / "profiles/slurm/config.yaml").read_text())["group-components"]
ARCHIVES = {"pd1.tar.gz": "", "pd1.json": '{"schema": 1}', "hpob-data.zip": "", "hpob-data.json": '{"schema": 1}'}


@pytest.fixture(scope="module")
def submitted(copy_project, tmp_path_factory):
    """Return a function that runs Snakemake with the cluster's profile and returns its output and the submissions.

    `plan`: without running a job. The archives that would be downloaded are there.
    """

    def run(*arguments: str, plan: bool = False) -> tuple[str, list[dict]]:
        project = copy_project(tmp_path_factory.mktemp("cluster") / "project")
        for name, text in ARCHIVES.items():
            path = project / ".cache" / "archives" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        command = [sys.executable, "-m", "snakemake", "--workflow-profile", "profiles/slurm", "--executor", "counted"]
        environment = os.environ | {
            "PYTHONPATH": str(ROOT / "tests" / "slurm" / "plugins"), "METABO_COUNTED": "plan" if plan else "run",
        }  # fmt: skip
        done = subprocess.run(
            [*command, *arguments], cwd=project, env=environment, capture_output=True, text=True, timeout=1200
        )
        output = done.stdout + done.stderr
        assert "the plan is written down" in output if plan else done.returncode == 0, output
        lines = (project / "submissions.jsonl").read_text().splitlines()
        return output, [json.loads(line) for line in lines]

    return run


@pytest.fixture(scope="module")
def smoke(submitted):
    return submitted(*slurm.SMOKE, "--", *slurm.TARGETS)


@pytest.fixture(scope="module")
def paper(submitted):
    return submitted("--configfile", "config/paper.yaml", plan=True)[1]


def rules(submissions) -> Counter:
    return Counter(job["rule"] for one in submissions for job in one["jobs"])


def is_short(job) -> bool:
    return limits.short(job["runtime"])


@pytest.mark.slow
def test_every_job_travels_once_and_the_run_comes_to_its_end(smoke):
    output, submissions = smoke
    assert rules(submissions) == slurm.expected()
    assert f"{slurm.expected().total()} jobs go to the cluster in {len(submissions)} submissions" in output
    assert 2 * len(submissions) < slurm.expected().total()


@pytest.mark.slow
def test_short_jobs_alone_share_what_their_sum_and_maximum_need(smoke, paper):
    for one in [*smoke[1], *paper]:
        jobs = one["jobs"]
        assert one["runtime"] == sum(job["runtime"] for job in jobs)
        assert one["mem_mb"] == max(job["mem_mb"] for job in jobs) and one["_cores"] == 1
        assert len(jobs) == 1 or all(map(is_short, jobs))
        assert one["runtime"] <= max(SIZES.values()) * limits.SHORT or len(jobs) == 1


def test_a_gpu_is_asked_for_once_by_jobs_that_take_turns(submitted):
    target = "results/smoke/theory/hegpucb/table1.json"
    priors = [f"results/smoke/priors/tables/held_out/{method}.npz" for method in ("h_nll", "h_ekl", "mimo")]
    _, found = submitted(*slurm.SMOKE, "device=gpu", "--", target, *priors, plan=True)
    asked = {one["jobs"][0]["rule"]: (one["gpu"], len(one["jobs"])) for one in found}
    assert asked == {"load": (0, 1), "pretrain": (1, 3), "check_theory": (0, 1)}


@pytest.mark.slow
def test_ten_thousand_short_jobs_of_the_paper_scale_are_less_than_a_thousand_submissions(paper):
    planned = counts.behind(counts.settings("paper"), "all")
    assert rules(paper).total() == sum(planned.values()) - planned["all"] - sum(
        count for rule, count in planned.items() if rule.startswith("download_")
    )
    short = [one for one in paper if all(map(is_short, one["jobs"]))]
    jobs = rules(short).total()
    print(f"paper scale: {rules(paper).total()} jobs in {len(paper)} submissions; {jobs} short ones in {len(short)}")
    assert 3 * len(short) < jobs and 1.9 * len(paper) < rules(paper).total()
    # More jobs of the same kinds fill submissions: at most one of those that there are now is not full.
    assert math.ceil(10_000 / min(size for rule, size in SIZES.items() if rule != "load")) + len(short) < 1_000


@pytest.mark.slow
def test_who_waits_for_a_long_training_holds_up_no_other(paper):
    settings = counts.settings("paper")
    long = {job["output"][0] for one in paper for job in one["jobs"] if job["rule"] == "pretrain" and not is_short(job)}

    def training(path: str) -> str | None:
        """The method of the long training behind a run, that of its priors or of those that they start from."""
        benchmark, split, name = Path(path).with_suffix("").parts[-3:]
        own = prior_of(settings, benchmark, split, name.partition("-")[0])
        fits = registry.method(own[1]).fits
        places = [own, *([prior_of(settings, benchmark, own[0], fits)] if fits else [])]
        found = [place[1] for place in places if f"results/paper/priors/{benchmark}/{'/'.join(place)}.npz" in long]
        return found[0] if found else None

    shared = [one["jobs"] for one in paper if one["jobs"][0]["rule"] in ("run_bo", "evaluate") and len(one["jobs"]) > 1]
    assert any(training(jobs[0]["output"][0]) for jobs in shared)
    for jobs in shared:
        assert len({(Path(job["output"][0]).parts[3], training(job["output"][0])) for job in jobs}) == 1


@pytest.mark.slow
def test_groups_can_be_switched_off(submitted):
    target = [f"results/smoke/theory/hegpucb/{check}.json" for check in ("table1", "nesting")]
    _, together = submitted(*slurm.SMOKE, "--", *target, plan=True)
    _, alone = submitted(*slurm.SMOKE, "--group-components", "run_bo=1", "--", *target, plan=True)
    assert [len(together), len(alone)] == [1, 2]


def test_on_one_machine_there_are_no_groups(project, snakemake):
    status, output = snakemake(project, "-n", *slurm.SMOKE, "--", *slurm.TARGETS)
    assert status == 0 and not re.search(r"Group job \S", output), output


def test_rules_that_travel_together_are_those_that_the_profile_names():
    text = "\n".join(path.read_text() for path in (ROOT / "workflow" / "rules").glob("*.smk"))
    assert set(re.findall(r'together\("(\w+)"', text)) == SIZES.keys()
