# metabo: data -> prior -> trajectories -> artefacts -> verdicts -> report. Targets: all, a paper, a benchmark, an artefact
# id, priors, trajectories, claims, report. `snakemake --cores 2 hyperbo_fig08` makes one figure and what it needs.
import os
import sys
from pathlib import Path

from snakemake.utils import min_version

min_version("9.27")

# Run this checkout's package with this environment's Python, whether or not the environment is activated.
SOURCE = str(Path(workflow.basedir) / "src")
sys.path.insert(0, SOURCE)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [SOURCE, os.environ.get("PYTHONPATH", "")]))
os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])


include: "workflow/rules/common.smk"
include: "workflow/rules/cluster.smk"
include: "workflow/rules/progress.smk"
include: "workflow/rules/collect.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/pretrain.smk"
include: "workflow/rules/bo.smk"
include: "workflow/rules/online.smk"
include: "workflow/rules/studies.smk"
include: "workflow/rules/theory.smk"
include: "workflow/rules/artefacts.smk"
include: "workflow/rules/claims.smk"
include: "workflow/rules/report.smk"


onstart:
    start_run()


onsuccess:
    tell_report()


onerror:
    end_failed_run()


rule all:
    default_target: True
    input:
        [artefact_files(a) for a in ENABLED],
        rules.report.output,


# a paper: its artefacts on the benchmarks of config run.benchmarks; a benchmark: all its artefacts
for target, wanted in catalogue.collections(SETTINGS, ARTEFACTS).items():

    rule:
        name:
            target
        input:
            [artefact_files(a) for a in wanted],


rule priors:
    input:
        sorted({path for a in ENABLED for path in prior_files(a)}),


rule trajectories:
    input:
        sorted({path for a in ENABLED for path in table_files(a, "trajectories", "online")}),


rule unknown_target:
    input:
        lambda w: or_stop(refuse_target, w.name),
    output:
        "{name,[A-Za-z0-9_-]+}",


if workflow.is_main_process:
    or_stop(refuse_paths, sys.argv)
