"""Dry runs: every overlay and target gives a complete plan; unknown names are refused with the valid ones."""

import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

OFFLINE = tuple(
    f"hyperbo_{n}" for n in ("fig07", "fig08", "fig09", "fig10", "fig11", "fig12", "fig13", "fig23", "fig25")
) + tuple(f"hyperbo_{n}" for n in ("tab05", "tab06", "x01"))
ONLINE = ("hyperbo_fig14", "hyperbo_fig22")
DESCRIBED = ("hyperbo_tab03", "hyperbo_tab04", "hyperbo_x02")
WIDE = tuple(f"hyperbo_{n}" for n in (*(f"fig{n}" for n in (15, 16, 17, 18, 19, 20, 24, 26, 27, 28, 29)), "tab07"))
FREE = tuple(f"hyperbo_{n}" for n in (*(f"fig{n:02}" for n in (1, 2, 3, 4, 5, 6, 21)), "tab01", "tab02", "x03", "x04"))
MPHD_L = tuple(f"mphd_{n}" for n in ("fig07", "fig12", "x02"))
SUPER = tuple(f"mphd_{n}" for n in ("fig03", "fig08", "fig09", "fig13", "fig14"))
MPHD_FREE = tuple(f"mphd_{n}" for n in ("tab01", *(f"fig{n:02}" for n in (1, 2, 4, 5, 6, 10, 11)), "x01"))
CMBO_MINI = tuple(f"cmbo_{n}" for n in ("tab01", "fig01", "fig02", "fig03", "x03"))
CMBO_FREE = ("cmbo_x01", "cmbo_x02")
HEGPUCB_FREE = tuple(f"hegpucb_fig0{n}" for n in (1, 2, "2b", 3, 4, 5, 6)) + tuple(
    f"hegpucb_{n}" for n in ("tab01", "x01", "x02", "x03")
)
AMONG_PRIORS = ("hegpucb_x04",)
# What the artefacts of a benchmark read; pd1 has more splits of the sweeps than pd1_mini, tables fewer.
TABLES = {"load": 1, "pretrain": 78, "evaluate": 4, "run_bo": 136}
PD1 = {"load": 1, "pretrain": 106, "evaluate": 4, "run_bo": 164}
MINI = {"load": 1, "archive_pd1_mini": 1, "pretrain": 82, "evaluate": 4, "run_bo": 136, "run_online": 7}
HPOB = {"load": 1, "pretrain": 32, "evaluate": 3, "run_bo": 41}
HPOB_MINI = {"load": 1, "archive_hpob_mini": 1, "pretrain": 26, "evaluate": 3, "run_bo": 36}
SYNTHETIC = {"run_study": 5, "check_theory": 14}
ON_MPHD_L = {"load": 1, "pretrain": 15, "run_bo": 39}
ON_SUPER = {"load": 1, "pretrain": 13, "run_bo": 33}  # and its members
MPHD_SYNTHETIC = {"run_study": 4, "check_theory": 12}
ON_CMBO = {"load": 1, "pretrain": 7, "run_bo": 51}
CMBO_SYNTHETIC = {"run_study": 1, "check_theory": 12}
ELIMINATION = {"pretrain": 2, "run_bo": 4}
HEGPUCB_SYNTHETIC = {"run_study": 4, "check_theory": 18}
ARCHIVES = {"archive_pd1_mini": 1, "archive_hpob_mini": 1}
PAPERS = ("hyperbo", "mphd", "cmbo", "hegpucb")
REPORT = {"judge_claims": 4, **{f"pages_{paper}": 1 for paper in PAPERS}, "report": 1}
WHOLE = REPORT | {"all": 1}
"""A whole run also judges the claims, of each paper in a job, and shows all on a page."""


def once(names: tuple[str, ...], benchmark: str = "") -> dict[str, int]:
    """One job for each artefact; on another benchmark than the first its name ends in the benchmark's."""
    return {f"{name}_{benchmark}" if benchmark else name: 1 for name in names}


def total(*plans: dict[str, int]) -> dict[str, int]:
    whole = Counter()
    for plan in plans:
        whole.update(plan)
    return {name: count for name, count in whole.items() if count}


HYPERBO = total(
    *(MINI, HPOB_MINI, SYNTHETIC),
    *(once((*OFFLINE, *ONLINE, *DESCRIBED, *WIDE, *FREE)), once(("hyperbo_x02",), "hpob_mini")),
)
MPHD = total(ON_MPHD_L, ON_SUPER, MPHD_SYNTHETIC, once((*MPHD_L, *SUPER, *MPHD_FREE)))
CMBO = total(ON_CMBO, CMBO_SYNTHETIC, once((*CMBO_MINI, *CMBO_FREE)))
HEGPUCB = total(ELIMINATION, HEGPUCB_SYNTHETIC, once((*HEGPUCB_FREE, *AMONG_PRIORS)))


def plan(output: str) -> dict[str, int]:
    """Read the job counts of a dry run's last table; empty if nothing is to be done."""
    if "Nothing to be done" in output:
        return {}
    table = output.rsplit("Job stats:", 1)[1].split("total", 1)[0]
    return {name: int(count) for name, count in re.findall(r"^(\w+) +(\d+) *$", table, re.M)}


# What each target makes under config.yaml alone.
TARGETS = {
    "all": total(HYPERBO, MPHD, CMBO, HEGPUCB, WHOLE, {"load": 1}),  # and `tables` as a member
    "report": total(HYPERBO, MPHD, CMBO, HEGPUCB, REPORT, {"load": 1}),
    "hyperbo": HYPERBO | {"hyperbo": 1},
    "mphd": total(MPHD, ARCHIVES, {"load": 3, "mphd": 1}),
    "cmbo": total(CMBO, {"archive_hpob_mini": 1, "cmbo": 1}),
    "hegpucb": total(HEGPUCB, {"archive_pd1_mini": 1, "load": 1, "hegpucb": 1}),
    "cmbo_hpob": {**ON_CMBO, **once(CMBO_MINI, "cmbo_hpob"), "download_hpob": 1, "cmbo_hpob": 1},
    "super": {**ON_SUPER, "load": 3, **once(SUPER, "super"), "download_pd1": 1, "download_hpob": 1, "super": 1},
    "mphd_fig07": {"load": 1, "pretrain": 15, "run_bo": 15, "mphd_fig07": 1},
    "pd1_mini": {**total(MINI, ELIMINATION), **once((*OFFLINE, *ONLINE, *DESCRIBED, *AMONG_PRIORS)), "pd1_mini": 1},
    "hpob_mini": {**HPOB_MINI, **once(WIDE), "hyperbo_x02_hpob_mini": 1, "hpob_mini": 1},
    "tables": {**total(TABLES, ELIMINATION), **once((*OFFLINE, "hyperbo_x02", *AMONG_PRIORS), "tables"), "tables": 1},
    "pd1": {
        **total(PD1, ELIMINATION),
        **once((*OFFLINE, *DESCRIBED, *AMONG_PRIORS), "pd1"),
        "download_pd1": 1,
        "pd1": 1,
    },
    "hpob": {**HPOB, **once((*WIDE, "hyperbo_x02"), "hpob"), "download_hpob": 1, "hpob": 1},
    "hyperbo_fig08": {"archive_pd1_mini": 1, "load": 1, "pretrain": 10, "run_bo": 10, "hyperbo_fig08": 1},
    "hyperbo_fig14": {"archive_pd1_mini": 1, "load": 1, "pretrain": 3, "run_online": 3, "hyperbo_fig14": 1},
    "hyperbo_tab03": {"archive_pd1_mini": 1, "load": 1, "hyperbo_tab03": 1},
    "hyperbo_tab06": {"archive_pd1_mini": 1, "load": 1, "pretrain": 4, "evaluate": 4, "hyperbo_tab06": 1},
    "priors": {**ARCHIVES, "load": 6, "pretrain": 145, "priors": 1},
    "trajectories": total(
        *(MINI, HPOB_MINI, ON_MPHD_L, ON_SUPER, ON_CMBO, ELIMINATION),
        {"load": 1, "trajectories": 1, "evaluate": -7},
    ),
}


@pytest.fixture(scope="module")
def jobs(copy_project, snakemake, tmp_path_factory):
    """Return a function that counts the jobs behind a target, read from one graph of the jobs of all `TARGETS`."""
    status, output = snakemake(
        copy_project(tmp_path_factory.mktemp("graph") / "project"), "--dag", "dot", "--", *TARGETS
    )
    assert status == 0, output
    rules = dict(re.findall(r'^\s*(\d+)\[label = "(\w+)', output, re.M))
    needs = defaultdict(set)
    for before, after in re.findall(r"^\s*(\d+) -> (\d+)$", output, re.M):
        needs[after].add(before)

    def behind(target: str) -> dict[str, int]:
        (begin,) = (job for job, rule in rules.items() if rule == target)
        found, open_ = {begin}, [begin]
        while open_:
            new = needs[open_.pop()] - found
            found |= new
            open_ += new
        return dict(Counter(rules[job] for job in found))

    return behind


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_makes_what_it_needs_and_no_more(jobs, target):
    assert jobs(target) == TARGETS[target]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--configfile", "config/smoke.yaml"],
         total(TABLES, SYNTHETIC, once((*OFFLINE, *FREE, "hyperbo_x02")), MPHD, CMBO, HEGPUCB, ARCHIVES,
               WHOLE, {"load": 2, "pretrain": -2})),
        (["--config", "run={papers: [hyperbo], benchmarks: [tables]}"],
         {**TABLES, **SYNTHETIC, **once((*OFFLINE, *FREE, "hyperbo_x02")),
          "judge_claims": 1, "pages_hyperbo": 1, "report": 1, "all": 1}),
        (
            ["--configfile", "config/paper.yaml"],
            total(
                MINI, PD1, HPOB, SYNTHETIC, MPHD, CMBO_SYNTHETIC, HEGPUCB_SYNTHETIC,
                once((*OFFLINE, *ONLINE, *DESCRIBED, *WIDE, *FREE)),
                once((*OFFLINE, *DESCRIBED), "pd1"),
                *(ON_CMBO, once(CMBO_MINI), once((*CMBO_FREE, *HEGPUCB_FREE))),
                *(ELIMINATION, once(AMONG_PRIORS), ELIMINATION, once(AMONG_PRIORS, "pd1")),
                *(WHOLE, {"hyperbo_x02_hpob": 1, "download_pd1": 1, "download_hpob": 1}),
                {"pretrain": -15},  # a sweep has the sizes of the main figures there
            ),
        ),
    ],
    ids=lambda value: " ".join(value) or "default" if isinstance(value, list) else "",
)  # fmt: skip
def test_a_plan_is_complete(project, snakemake, arguments, expected):
    status, output = snakemake(project, "-q", "rules", "-n", *arguments)
    assert status == 0, output
    assert plan(output) == expected


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["hyperbo_fig8"], ["unknown target 'hyperbo_fig8'", "Did you mean 'hyperbo_fig", "trajectories", "pd1, "]),
        # Faults of one kind are told together; each by itself: test_config.py.
        (
            ["--config", "scale=big", "bo={iterations: 7}"],
            ["config key 'scale'", "smoke, laptop, paper", "'bo.iterations' is the text '7'", "--configfile"],
        ),
        (
            ["--config", "run={papers: [hyprbo], benchmarks: [tabels]}", "methods={h_nl: {}}"],
            [
                "unknown benchmark 'tabels'", "Did you mean 'tables'?", "unknown paper 'hyprbo'",
                "Did you mean 'hyperbo'?", "unknown method 'h_nl'", "Did you mean 'h_nll'?",
            ],
        ),
    ],
    ids=["target", "values", "names"],
)  # fmt: skip
def test_an_unknown_name_is_refused_with_the_valid_ones(project, snakemake, arguments, parts):
    status, output = snakemake(project, "-n", *arguments)
    assert status != 0
    for part in parts:
        assert part in output


def test_an_unknown_method_in_the_catalogue_is_refused(project, snakemake):
    path = project / "workflow" / "catalogue.yaml"
    path.write_text(path.read_text().replace("h_ekl", "h_elk"))
    status, output = snakemake(project, "-n")
    assert status != 0
    assert "catalogue entry 'hyperbo_fig08': unknown method 'h_elk'. Did you mean 'h_ekl'?" in output


def test_results_that_cannot_be_written_stop_at_the_start(project, snakemake):
    (project / "results").write_text("a file, not a folder")
    status, output = snakemake(project)
    assert status != 0
    assert "results: cannot write here" in output and "Select jobs" not in output


def test_the_device_decides_who_may_use_the_accelerator(project, snakemake):
    every_stage = ("hyperbo_tab06", "hyperbo_fig08", "hyperbo_fig14", "hyperbo_fig03", "mphd_x01")

    def flags(*arguments):
        status, output = snakemake(project, "-n", "-p", *arguments, "--", *every_stage)
        assert status == 0, output
        return {(s, f) for s, f in re.findall(r"metabo\.stages\.(\w+) .*?--gpu (\d)", output)}

    numeric = ("pretrain", "evaluate", "bo", "online")
    assert flags() == {(stage, "0") for stage in numeric}
    assert flags("--config", "device=gpu") == {(stage, "1") for stage in numeric}


def test_jobs_use_this_checkout_and_this_python(project, snakemake):
    probe = project / "probe.smk"
    probe.write_text(
        (project / "Snakefile").read_text()
        + "\nrule probe:\n    output: 'results/probe'\n"
        + "    shell: \"python -c 'import metabo, sys; print(metabo.__file__, sys.executable)' > {output}\"\n"
    )
    status, output = snakemake(project, "-s", "probe.smk", "results/probe")
    assert status == 0, output
    package, python = (project / "results" / "probe").read_text().split()
    assert package == str(project / "src" / "metabo" / "__init__.py")
    assert python.rsplit("/", 1)[0] == sys.executable.rsplit("/", 1)[0]


def test_make_targets_exist():
    targets = ["reproduce", "smoke", "paper", "test", "test-fast", "browser", "lint", "benchmark", "clean", "lock"]
    done = subprocess.run(
        ["make", "-n", "-B", *targets], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True
    )
    for part in ("snakemake --cores", "config/smoke.yaml", "config/paper.yaml", "pytest", "--require-hashes"):
        assert part in done.stdout
