"""The jobs behind an artefact, beside those counted from the catalogue alone, and their order."""

from collections import Counter
from pathlib import Path

import pytest

from metabo.data import download
from metabo.plan import catalogue, chain
from metabo.plan.chain import Chain
from metabo.plan.runs import RunId
from tests import counts

ROOT = Path(__file__).parents[2]
CONFIG = counts.settings()
ARCHIVES = download.archives(ROOT / "workflow/datasets.csv", ROOT / "workflow/schemas/datasets.yaml")
RULES = {
    "data": "load", "pretrain": "pretrain", "bo": "run_bo", "evaluate": "evaluate", "online": "run_online",
    "study": "run_study", "theory": "check_theory",
}  # fmt: skip


@pytest.fixture(scope="module")
def planned():
    return Chain(CONFIG, ARCHIVES)


def rules(jobs, name):
    named = {"archive": "archive_{benchmark}", "download": "download_{name}", "notebook": name}
    return Counter(RULES.get(job.stage) or named[job.stage].format(**job.spec) for job in jobs)


def test_every_artefact_has_the_jobs_that_the_catalogue_asks_for(planned):
    artefacts = {one.name: one for one in catalogue.artefacts(CONFIG, counts.ENTRIES)}
    found = {name: rules(chain.behind([planned.artefact(one)]), name) for name, one in artefacts.items()}
    assert found == {name: counts.behind(CONFIG, name) for name in artefacts}


def test_a_job_comes_after_what_it_waits_for_and_once(planned):
    jobs = chain.behind([planned.trajectories("super_mini", RunId("mphd", "pi", "held_out"))] * 2)
    places = {job.result: place for place, job in enumerate(jobs)}
    assert len(places) == len(jobs) > 5
    assert all(places[other.result] < places[job.result] for job in jobs for other in job.needs)


def test_a_collected_table_is_trained_here():
    own = counts.settings(benchmarks={"pd1_mini": {"source": "collected", "version": 1}})
    jobs = chain.behind([Chain(own, ARCHIVES).load("pd1_mini")])
    stages = Counter(job.stage for job in jobs)
    assert stages == {"collect": stages["collect"], "pack": 1, "archive": 1, "data": 1} and stages["collect"] > 1
    assert [job.result for job in jobs if job.stage == "pack"] == ["results/laptop/collect/pd1_mini.parquet"]


def test_a_benchmark_that_is_downloaded_waits_for_its_archive(planned):
    download_job, load = chain.behind([planned.load("pd1")])
    assert download_job.result == ".cache/archives/pd1.tar.gz" and download_job.record == ".cache/archives/pd1.json"
    assert load.record == "results/laptop/data/pd1.json"
