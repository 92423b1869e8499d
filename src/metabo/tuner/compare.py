"""`metabo compare`: compare all methods offline on your own history, by the rules of the experiments.

The workflow does the work (benchmark `own`, or `own_spaces` for several search spaces), so a killed comparison resumes
where it was, and every figure has its notebook, numbers and provenance.
"""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import yaml

from metabo.data.history.benchmark import require_spaces
from metabo.data.history.past import read_all
from metabo.errors import ConfigError, MetaboError
from metabo.plan import extras
from metabo.records.files import write_text
from metabo.tuner.numbers import whole

CONFIG = Path(".cache/own.yaml")
"""The settings that a comparison adds to config.yaml, below the project folder."""


def compare(
    histories: list[Path], spaces: list[Path], skip_bad_rows: bool, scale: str, cores: int, dry_run: bool = False
) -> list[str]:
    """Check the histories, run the workflow on them, and return lines that say which methods did best and where the
    figures are.

    `scale`: "smoke" or "laptop". Raises ConfigError outside a copy of the project, DataError for two search spaces
    (one or three and more can be compared), MetaboError if the workflow fails.
    """
    cores = whole("cores", cores, 1, "jobs need a core; give at least 1, or leave it out (all cores)")
    root = project()
    extras.require(("snakemake", "papermill"), "metabo compare")
    past = read_all(histories, spaces, skip_bad_rows)
    benchmark = "own" if len(past) == 1 else "own_spaces"
    if benchmark == "own_spaces":
        require_spaces(past)
    settings = {
        "history": [str(path.resolve()) for path in histories],
        "space": [str(path.resolve()) for path in spaces],
        "skip_bad_rows": skip_bad_rows,
    }
    write_text(root / CONFIG, yaml.safe_dump({"benchmarks": {benchmark: settings}}, sort_keys=False))
    overlays = [*(["config/smoke.yaml"] if scale == "smoke" else []), str(CONFIG)]
    command = [sys.executable, "-m", "snakemake", "--cores", str(cores), "--configfile", *overlays]
    command += [*(["--dry-run"] if dry_run else []), "--", benchmark]
    if subprocess.run(command, cwd=root).returncode:
        raise MetaboError(
            f"{root}: the comparison did not finish, see above; once the cause is mended, the same command goes on "
            "where it stopped"
        )
    return [] if dry_run else summary(root / "results" / scale, benchmark)


def project(what: str = "compare") -> Path:
    """Return the folder with the workflow: the current one or one above it. Raises ConfigError if there is none. `what`
    is the command that needs it."""
    for folder in (Path.cwd(), *Path.cwd().parents):
        if (folder / "workflow" / "catalogue.yaml").is_file():
            return folder
    raise ConfigError(
        f"{what} needs the workflow, which is not in the installed package: call it in a clone of the project (its "
        "folder has the Snakefile), with the paths of your files"
    )


def summary(results: Path, benchmark: str) -> list[str]:
    """Return lines on how the methods did, best first, and where figures and numbers are."""
    if benchmark == "own":
        table = pd.read_csv(results / "hyperbo" / benchmark / "hyperbo_fig09" / "data.csv").query("quantity == 'mean'")
        kind = "mean rank by simple regret (1 is best)"
    else:
        table = pd.read_csv(results / "mphd" / benchmark / "mphd_fig08" / "data.csv")
        table = table.query("table == 'curve' and quantity == 'mean' and panel == 'default'")
        kind = "mean normalised regret (0 is best)"
    last = table["iteration"].max()
    ends = table.query("iteration == @last").pivot_table("value", "method").sort_values("value")  # means
    lines = [f"after {last:.0f} iterations, {kind}:"]
    lines += [f"  {method:16} {value:.3g}" for method, value in zip(ends.index, ends["value"], strict=True)]
    folders = sorted(path.parent for path in results.glob(f"*/{benchmark}/*/figure.png"))
    return [*lines, "figures, numbers and notebooks:", *(f"  {folder}" for folder in folders)]
