"""The plan of the scale `published` covers it, grows with what jobs do, and stands beside what they have used."""

import json
import re
import subprocess
from pathlib import Path

import paper_plan
import published
import published_costs
import pytest

from metabo.plan import catalogue, config
from metabo.plan.work import NumericJob, loops
from metabo.records.checksums import sealed

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def given():
    return published_costs.settings()


def judged(given):
    """The artefacts of a scale that claims read: another one may stay out of the steps, such as a new figure."""
    listed = catalogue.artefacts(given, catalogue.load(ROOT))
    return [one for one in catalogue.enabled(given, listed) if one.entry.claims]


def changed(**sections):
    read = config.read(ROOT, (ROOT / "config" / "published.yaml",))
    return config.check(config.merge(read, sections))


def test_the_steps_have_every_artefact_of_the_scale_once(given):
    names = [name for step in published.steps() for name in step.artefacts]
    listed = catalogue.artefacts(given, catalogue.load(ROOT))
    assert len(names) == len(set(names)) and set(names) <= {one.name for one in listed}
    assert {one.name for one in judged(given)} <= set(names)
    assert published.steps()[0].name == "lcbench"


@pytest.mark.parametrize("step", published.steps(), ids=lambda step: step.name)
def test_the_command_of_some_steps_makes_them_and_nothing_else(step):
    steps = published.steps()
    for chosen in ([step], steps[: steps.index(step) + 1]):
        *_, key, section = published.command(chosen, 2)
        assert key == "--config"
        settings = changed(run=json.loads(section.removeprefix("run=")))
        made = [one.name for one in catalogue.enabled(settings, catalogue.artefacts(settings, catalogue.load(ROOT)))]
        assert set(made) == {name for one in chosen for name in one.artefacts}


@pytest.mark.parametrize("recorded", [False, True])
def test_a_run_brings_back_what_is_recorded_before_each_step_and_goes_on_where_that_fails(
    recorded, tmp_path, monkeypatch
):
    said = []

    def call(command, **options):
        assert options == {"cwd": published.ROOT}  # `check` would end the run with a traceback
        said.append("restore" if "restore" in command else "tables" if "--" in command else "step")
        return subprocess.CompletedProcess(command, {"restore": 1, "tables": 0, "step": 3}[said[-1]])

    monkeypatch.setattr(published, "RECORDED", tmp_path)
    monkeypatch.setattr(published.subprocess, "run", call)
    if recorded:
        (tmp_path / published.NAME).write_text("damaged")
    one = ["tables", "restore", "step"] if recorded else ["step"]
    assert published.run(published.steps()[1].name, None, 2) == 3 and said == one * 2
    said.clear()
    assert published.run(published.steps()[-1].name, published.steps()[1].name, 2) == 3 and said == one


def test_what_is_left_of_a_step_and_which_claims_wait_for_it():
    jobs = published.read_plan()
    lines = {
        line.split(" | ")[0][2:]: line.strip("|").split(" | ") for line in published.by_step(published.RECORDED)[2:]
    }
    waiting = published.unjudged(published.steps(), published.settings())
    for step in published.steps():
        own = [job for job in jobs if job.step == step.name and job.rule != "notebook"]
        absent = [job for job in own if not (published.RECORDED / job.record).is_file()]
        *_, count, done, hours, claims = [lines[step.name][place].strip() for place in (2, 5, 6, 7)]
        assert (int(count), int(done)) == (len(own), len(own) - len(absent))
        assert float(hours.replace(",", "")) == pytest.approx(sum(job.seconds for job in absent) / 3600, abs=0.05)
        assert claims.split() == waiting[step.name]
    assert "C04" in waiting["hpob_mini"] and "B1" in waiting["cmbo"] and "C22" not in waiting["studies"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["used", "nosuch"], "nosuch: has no results of a run; name results/published or evidence/published"),
        (["steps", str(published.RECORDED.parent)], "evidence: has no results of a run; name"),
        (["steps", "--only", "mphd"], "--until and --only belong to `run`"),
        (["run", "--until", "mphd", "--only", "mphd"], "not allowed with argument"),
    ],
)
def test_what_cannot_be_meant_is_refused(given, message, monkeypatch, capsys):
    monkeypatch.setattr(published.sys, "argv", ["published.py", *given])
    with pytest.raises(SystemExit, match="2"):
        published.main()
    assert message in capsys.readouterr().err


def test_the_steps_are_those_left_of_what_is_recorded(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(published.sys, "argv", ["published.py", "steps"])
    published.main()
    said = capsys.readouterr().out
    assert re.search(r"# mphd, \d+ of 149 jobs and \d\.\d core hours left: ", said)
    assert "published.py run --only mphd --cores 2" in said


def test_every_job_of_the_scale_is_planned_once(given):
    planned = list(published.plan(given))
    records = [job.record for job in planned]
    assert len(records) == len(set(records)) and all(job.seconds > 0 for job in planned)
    assert {paper_plan.file(job) for job in paper_plan.behind(judged(given), given)} <= set(records)
    kept = {job.record: job for job in published.read_plan()}
    assert {job.step for job in kept.values()} == {step.name for step in published.steps()}


def test_a_prediction_is_what_was_measured_times_the_steps(given):
    job = NumericJob("pretrain", "lcbench", "held_out", "h_nll")
    cost = published_costs.measured()["pretrain", "lcbench", "first", "h_nll"]
    seconds, size = published_costs.predicted(job, given)
    assert seconds == pytest.approx(cost.fixed + cost.pace * 25 * 50_000 * 28 * 50**2)  # folds x priors
    assert size == pytest.approx(published_costs.OTHERS + 25 * cost.size)
    twice = published_costs.predicted(job, changed(pretrain={"adam_steps": 100_000}))[0]
    assert twice - cost.fixed == pytest.approx(2 * (seconds - cost.fixed))


def test_a_variant_costs_what_its_method_does_and_wider_layers_more(given):
    one = published_costs.alike(NumericJob("pretrain", "lcbench", "held_out_sweep", "h_nll_zero_4"))
    assert one == published_costs.measured()["pretrain", "lcbench", "first", "h_nll"]
    wide = published_costs.wider(NumericJob("pretrain", "hpob_mini", "held_out", "h_nll"), given)
    assert wide[0] > 2 and wide[1] > 2  # layers of 128
    assert published_costs.wider(NumericJob("pretrain", "lcbench", "held_out", "h_nll"), given) == (1.0, 1.0)
    matched = published_costs.alike(NumericJob("pretrain", "taskset", "others_tasks_3", "h_ekl"))
    assert matched == published_costs.measured()["pretrain", "lcbench", "first", "h_ekl"]  # no step of Adam
    few = published_costs.alike(NumericJob("pretrain", "pd1_mini", "others_points_4", "ablr"))
    assert few == published_costs.measured()["pretrain", "lcbench", "others_points_4", "h_nll"]


def test_what_was_not_measured_has_its_typical_time_times_the_ratio_of_the_steps(given):
    job, default = NumericJob("run_online", "pd1_mini", "others", "h_nll_online"), published_costs.default()
    more = published_costs.predicted(job, given)[0] / published_costs.predicted(job, default)[0]
    assert more == pytest.approx(loops(job, given).steps / loops(job, default).steps, rel=0.1)
    draws = published_costs.study("landscapes", changed(studies={"landscapes": {"draws": 400}}))
    assert draws == pytest.approx(2 * published_costs.study("landscapes", published_costs.default()))


def record(path, seconds):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(sealed({"stage": "pretrain", "cpu_s": seconds, "wall_s": 9 * seconds})))


def test_predicted_and_used_stand_side_by_side_by_method(tmp_path, monkeypatch):
    rows = [
        ("one", "pretrain", "lcbench", "h_nll", "priors/lcbench/held_out/h_nll.json", 3600.0, 1e6),
        ("one", "pretrain", "lcbench", "h_nll_zero_4", "priors/lcbench/held_out/h_nll_zero_4.json", 3600.0, 1e6),
        ("one", "run_bo", "lcbench", "stbo", "bo/lcbench/held_out/stbo-pi.json", 1800.0, 0.0),
    ]
    monkeypatch.setattr(published, "PLAN", tmp_path / "plan.csv")
    published.write(published.PLAN, published.Planned._fields, rows)
    record(tmp_path / rows[0][4], 2 * 3600.0)
    found = published.totals(published.read_plan(), tmp_path)
    assert found["lcbench", "h_nll"] == (2, 2.0, 2.0, 1, 1.0, 2.0) and found["lcbench", "h_nll"].ratio == 2.0
    assert found["lcbench", "stbo"] == (1, 0.5, 0.0, 0, 0, 0)
    lines = published.table(tmp_path)
    assert "| lcbench | h_nll | 2 | 2.00 | 2.0 | 1 | 1.00 | 2.00 | 2.00 (!) |" in lines
    assert "| lcbench | stbo | 1 | 0.50 | 0.0 | 0 | | | |" in lines
    record(tmp_path / rows[0][4], 1.2 * 3600.0)
    assert "| 1.20 |" in published.table(tmp_path)[2] and "(!)" not in published.table(tmp_path)[2]
    assert [line.count("|") for line in published.table(None)] == [6] * 5


def test_a_plan_that_runs_are_compared_with_is_not_replaced(monkeypatch, tmp_path):
    monkeypatch.setattr(published, "PLAN", tmp_path / "plan.csv")
    monkeypatch.setattr(published, "plan", lambda given: [])
    published.PLAN.write_text("what was said before")
    monkeypatch.setattr("sys.argv", ["published.py", "plan"])
    with pytest.raises(
        SystemExit, match=r"^plan\.csv was made before the runs in evidence/published.*--again replaces"
    ):
        published.main()
    assert published.PLAN.read_text() == "what was said before"
    monkeypatch.setattr("sys.argv", ["published.py", "plan", "--again"])
    published.main()
    assert published.PLAN.read_text() == ",".join(published.Planned._fields) + "\n"


def test_the_page_has_the_plan_and_what_is_left_of_it():
    text = (ROOT / "docs" / "paper-scale.md").read_text()
    lines = [*published.by_step(published.RECORDED), "", *published.table(published.RECORDED)]
    assert published.filled(text, lines, published.BEGIN, published.END) == text
    assert (
        published.filled(text, published.unkept(published.read_plan(), published.RECORDED), *published.UNKEPT) == text
    )


def test_what_is_not_kept_is_what_the_folder_lacks(tmp_path):
    plan = [published.Planned("one", "run_bo", "tiny", name, f"bo/tiny/all/{name}-ei.json", 1.0, 1.0) for name in "ab"]
    for job in plan:
        path = tmp_path / job.record
        path.parent.mkdir(parents=True, exist_ok=True)
        table = f"results/published/{path.with_suffix('.parquet').relative_to(tmp_path)}"
        path.write_text(json.dumps({"outputs": {table: "0"}, "cpu_s": 1800.0, "wall_s": 1800.0, "threads": 1}))
    assert published.unkept(plan, tmp_path)[2:] == ["| tables of runs | tiny | all | all 2 | 1.00 |"]
    (tmp_path / "bo/tiny/all/a-ei.parquet").write_text("")
    assert published.unkept(plan, tmp_path)[2:] == ["| tables of runs | tiny | all | `b-ei` | 0.50 |"]


def test_what_is_measured_are_methods_and_splits_that_there_are():
    from metabo.plan import registry, splits
    from metabo.plan.runs import RunId, resolved

    for place, runs in published_costs.WANTED.items():
        folder, benchmark, split = place.split("/")
        assert folder in published_costs.RULES and split in splits.of(benchmark)
        names = [resolved(RunId.parse(run)).method for run in runs.split()]
        assert all(registry.method(name) for name in names)
        found = {key[3] for key in published_costs.measured() if key[1:3] == (benchmark, split)}
        assert set(names) <= found, f"measure again: {place}"
    assert published_costs.command()[:3] == ["snakemake", "--cores", "1"]


def measured_run(folder, job, given, **changes):
    """Leave the record and the result of a job, as if it had run with these settings."""
    path = folder / paper_plan.file(job)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".npz").write_bytes(bytes(500))
    spec = json.loads(published_costs.canonical(published_costs.plain(published_costs._spec(job, given))))
    content = {
        "spec": spec,
        "cpu_s": 25.0,
        "wall_s": 50.0,
        "compile_s": 5.0,
        "outputs": {path.with_suffix(".npz").name: ""},
    }
    path.write_text(json.dumps(sealed(content | changes)))


def test_a_step_is_measured_without_what_comes_before_it_and_other_settings_are_left_out(tmp_path):
    given = published_costs.settings(published_costs.SIZES)
    job = NumericJob("pretrain", "lcbench", "first", "h_nll")
    measured_run(tmp_path, job, given)
    measured_run(tmp_path, job._replace(method="fsbo"), given, spec={"seeds": 9})
    ((*key, cost),) = published_costs.measure(tmp_path)
    assert key == ["pretrain", "lcbench", "first", "h_nll"]
    assert cost.fixed == pytest.approx(published_costs.START + 2.5)  # half of the wall time was its own
    assert cost.pace == pytest.approx((25.0 - cost.fixed) / (5000 * 28 * 50**2)) and cost.size == 500
