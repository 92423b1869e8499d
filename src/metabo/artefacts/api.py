"""What the notebooks share: they find and check their inputs, state where these come from, and save figures and
numbers."""

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from metabo import metrics
from metabo.artefacts import settings as sidecars
from metabo.artefacts.text import heading as heading
from metabo.artefacts.text import plain
from metabo.artefacts.tidy import numbers, require_known
from metabo.compute import cores
from metabo.errors import ConfigError, DataError, nearest
from metabo.plan import data_sets, registry, splits
from metabo.plan.runs import RunId, method_of, on_splits
from metabo.plots import look, style
from metabo.records import csv_cells, files, provenance, results
from metabo.records import sidecars as records
from metabo.tasks.benchmark import Benchmark

ONE_DATA_SET = (
    "All tasks of this benchmark are variants of one data set. Intervals of differences are over repetitions and speak "
    "of this suite of tasks, whatever is said above of new data sets or folds."
)


def enter_project() -> None:
    """Change to the project folder when a notebook is opened in its own folder; paths are relative to the project.
    The notebook's process computes in float64 from here on, as that of a job."""
    cores.own_process()
    for folder in (Path.cwd(), *Path.cwd().parents):
        if (folder / "workflow" / "catalogue.yaml").is_file():
            os.chdir(folder)
            return


def load_trajectories(paths: list[str], benchmark: str, split: str | list[str], data: str = "") -> pd.DataFrame:
    """Read trajectory tables and check that they belong together.

    A run with another acquisition than its method's own is renamed ``method-acquisition``. Raises DataError if a table
    is of another benchmark or split (or none of several splits), if the tables were made from different data files, or
    from another than `data`. A method without pre-training may be of another split with the same test tasks,
    candidates and queries: its runs are the same there.
    """
    if not paths:
        raise DataError("no trajectory table given; name some in the parameter 'trajectories'")
    table = results.read([_existing(path) for path in paths])
    given = [split] if isinstance(split, str) else split
    free = ~_trained(table) & table["split"].isin(_alike(given))
    _same_origin(table.assign(split=table["split"].mask(free, given[0])), benchmark, given, "trajectories")
    _same_data(table, data, "trajectories", "bo")
    pairs = table[["method", "acquisition"]].drop_duplicates().itertuples(index=False)
    default = {m: registry.method(m).acquisition for m in table["method"].unique()}
    for method, acquisition in [(m, a) for m, a in pairs if a != default[m]]:
        chosen = (table["method"] == method) & (table["acquisition"] == acquisition)
        table.loc[chosen, "method"] = str(RunId(method, acquisition))
    return table


def by_split(table: pd.DataFrame, plain: str = "") -> pd.DataFrame:
    """Rename pre-trained methods' runs ``method@split`` (but not on `plain`): `runs` then keeps them apart."""
    renamed = _trained(table) & (table["split"] != plain)
    return table.assign(method=table["method"].mask(renamed, on_splits(table["method"], table["split"])))


def load_evaluations(paths: list[str], benchmark: str, split: str | list[str]) -> pd.DataFrame:
    """Read evaluation tables (losses of the priors) and check them like `load_trajectories`."""
    if not paths:
        raise DataError("no evaluation table given; name some in the parameter 'evaluations'")
    table = results.read_evaluations([_existing(path) for path in paths])
    _same_origin(table, benchmark, split, "evaluations")
    return table


def load_online(paths: list[str], benchmark: str, split: str, data: str = "") -> pd.DataFrame:
    """Read tables of online tuning and check them like `load_trajectories`."""
    if not paths:
        raise DataError("no online table given; name some in the parameter 'online'")
    table = results.read_online([_existing(path) for path in paths])
    _same_origin(table, benchmark, split, "online")
    _same_data(table, data, "online", "online tuning")
    return table


def load_benchmark(path: str, benchmark: str) -> Benchmark:
    """Read a benchmark file. Raises DataError if it is missing or holds another benchmark."""
    loaded = Benchmark.load(_existing(path))
    if loaded.name != benchmark:
        raise DataError(f"{path}: holds benchmark '{loaded.name}', the parameter says '{benchmark}'; change one")
    return loaded


def given(benchmark: Benchmark) -> str:
    """Say how many points a run has before its first query."""
    numbers = sorted({points.shape[1] for points in benchmark.initial.values()})
    if not numbers:
        return "nothing is given"
    points = " or ".join(map(str, numbers))
    return f"{points} given initial points, which count neither as iterations nor as queries"


def queries(benchmark: str, split: str) -> str:
    """Say whether a candidate may be queried again on a split, as a title."""
    once, exceptions = splits.queries(benchmark, split)
    words = {True: "each candidate once", False: "queries may repeat"}
    return words[once] + (f" ({words[not once]} in {', '.join(exceptions)})" if exceptions else "")


def runs(table: pd.DataFrame, column: str = "simple_regret") -> metrics.Runs:
    """Build `metrics.Runs`; which methods have no pre-training, which data set a task is about, and whether all tasks
    are of one, comes from the registrations and `metabo.plan.data_sets`."""
    single = {m for m in table["method"].unique() if not _pretrained(m)}
    shown = table["benchmark"].unique() if "benchmark" in table else ()
    if len(shown) == 1:
        names = data_sets.of_tasks(shown[0], table["task"].unique())
        table = table.assign(data_set=table["task"].map(names))
    made = metrics.collect(table, column, single_task=single)
    return replace(made, drawn="fixed") if any(map(registry.one_data_set, shown)) else made


def _pretrained(name: str) -> bool:
    """Tell whether runs depend on past tasks: by what was trained on them, by priors of another method that were
    (`fits`: MPHD Non-NN, choice among pre-trained priors), or by their rows themselves (portfolios)."""
    method = method_of(name)
    entry = registry.method(method)
    return bool(entry.pretrain or entry.fits) or registry.made_of(method).uses_past


def _existing(path: str) -> str:
    if not Path(path).is_file():
        scale = re.search(r"results/(smoke|published|paper)/", str(path))  # the default scale needs no overlay
        overlay = f" --configfile config/{scale[1]}.yaml" if scale else ""
        command = f"snakemake --cores 2{overlay} -- {shlex.quote(str(path))}"
        raise DataError(f"{path}: no such input; make it (`{command}`) or change the path")
    return path


def _trained(table: pd.DataFrame) -> pd.Series:
    return table["method"].map({m: _pretrained(m) for m in table["method"].unique()}).astype(bool)


def _alike(given: list[str]) -> list[str]:
    """Return the splits on which BO without a prior runs as on one of those given."""
    runs = {s: (splits.base(s), splits.entry(s).candidates, splits.entry(s).queries) for s in splits.names()}
    return [s for s, run in runs.items() if run in [runs.get(g) for g in given]]


def _same_origin(table: pd.DataFrame, benchmark: str, split: str | list[str], what: str) -> None:
    for column, expected in (("benchmark", [benchmark]), ("split", [split] if isinstance(split, str) else split)):
        other = sorted(set(table[column]) - set(expected))
        if other:
            listed = "', '".join(expected)
            raise DataError(f"{what}: {column} is {other}, the parameter says '{listed}'; give tables of that {column}")


def _same_data(table: pd.DataFrame, data: str, what: str, stage: str) -> None:
    hashes = sorted(table["data"].unique())
    if len(hashes) > 1:
        raise DataError(f"{what}: made from different data files {hashes}; run the outdated methods again")
    if data and Path(data).exists() and hashes[0] != files.digest(data)[:12]:
        raise DataError(
            f"{what}: made from data {hashes[0]}, but {data} is {files.digest(data)[:12]}; run {stage} again"
        )


def available(iterations: list[int], last: int) -> list[int]:
    """Return the iterations that the runs have: one beyond the last becomes the last (smaller scales stop earlier)."""
    return sorted({min(int(i), last) for i in iterations})


def origins(paths: list[str]) -> pd.DataFrame:
    """Show where inputs come from, by their sidecars: file, stage, commit, code and settings hash, seeds.

    A missing sidecar shows as "no sidecar"; the file's own checksum is compared with the recorded one. Files of the
    same name (a method on several splits) show their folder too.
    """
    rows, names = [], [Path(path).name for path in paths]
    for path, name in zip(paths, names, strict=True):
        shown = name if names.count(name) == 1 else f"{Path(path).parent.name}/{name}"
        record = records.of(path)
        git = record.get("git") or {}
        commit = (git.get("commit") or "")[:10] + (" + changes" if git.get("dirty") else "")
        checksums = {Path(p).name: value for p, value in record.get("outputs", {}).items()}
        recorded = checksums.get(name)
        edited = "yes" if recorded == files.digest(path) else "NO: edited since"
        rows.append(
            {
                "file": shown, "stage": record.get("stage", "?"), "commit": commit or "?",
                "code": str(record.get("code_sha256", "?"))[:10], "settings": str(record.get("spec_sha256", "?"))[:10],
                "finished": record.get("finished", "?"), "as written": edited if recorded else "no sidecar",
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def commit() -> str:
    """Return the commit of the project, "+" appended when files differ from it, "unknown" outside a checkout."""
    state = provenance.git_state()
    return (state["commit"] or "unknown") + ("+" if state["commit"] and state["dirty"] else "")


def labelled(table: pd.DataFrame) -> pd.DataFrame:
    """Replace method names by their labels (in the columns that hold methods), for display."""
    columns = [c for c in ("method", "reference", "alternative") if c in table]
    return table.assign(**{c: table[c].map(lambda name: look.of(name).label) for c in columns})


def pivot(table: pd.DataFrame, rows: str, columns: str, values: str) -> pd.DataFrame:
    """Spread a tidy table for display, keeping the order of appearance in both directions, methods by label."""
    for column in (rows, columns, values):
        if column not in table:
            known = ", ".join(map(str, table.columns))
            raise ConfigError(f"pivot: the table has no column '{column}'.{nearest(column, table)} Columns: {known}")
    t = labelled(table)
    wide = t.pivot(index=rows, columns=columns, values=values)
    return wide.reindex(index=dict.fromkeys(t[rows]), columns=dict.fromkeys(t[columns])).rename_axis(columns=None)


def save(
    figure: Figure,
    tables: Mapping[str, pd.DataFrame],
    out: str,
    artefact: str,
    title: str,
    caption: str,
    benchmark: str = "",
    *,
    keys: Sequence[str],
    infinite: Sequence[str] = (),
) -> None:
    """Write figure.pdf, figure.png and data.csv to the folder `out`, each atomically.

    All three name the artefact and the benchmark ("": none): in small print above the figure, in the metadata of the
    images, in every row of the table. The images also carry title, caption and commit, and no clock, so that the same
    numbers drawn by the same commit give the same bytes. `keys`: the columns that tell the rows of the tables apart
    (`numbers`); data.csv has them under their own names. `infinite`: the tables in which infinity is a value, such as
    the time of what never happened.

    Raises ConfigError for what is no figure, and for tables without rows, without a number or with an infinite one.
    """
    if not isinstance(figure, Figure):
        raise ConfigError(
            f"{artefact}: what is saved as its figure is {type(figure).__name__}, no Figure of matplotlib; end the "
            "drawing function with `return figure`"
        )
    data = numbers(tables, keys, artefact)
    require_known(data, infinite, artefact)
    data.insert(0, "artefact", artefact)
    data.insert(1, "benchmark", benchmark)
    on = f"benchmark {benchmark}" if benchmark else "synthetic"
    style.fit_title(figure)
    style.imprint(figure, f"{artefact}, {on}")
    version = f"metabo {provenance.VERSION}, commit {commit()}"
    keywords = f"{on}, {version}"
    pdf = {"Title": f"{artefact}: {title}", "Subject": caption, "Keywords": keywords, "CreationDate": None}
    png = {"Title": f"{artefact}: {title}", "Description": caption, "Benchmark": benchmark, "Source": version}
    for name, metadata in (("figure.pdf", pdf), ("figure.png", png)):
        with files.atomic_path(Path(out) / name) as scratch, style.theme():
            figure.savefig(scratch, metadata=metadata, bbox_inches="tight", pad_inches=0.08)
    files.write_text(Path(out) / "data.csv", csv_cells.guarded_frame(data).to_csv(index=False))


def show(out: str, title: str, caption: str, benchmark: str = "") -> None:
    """Display the saved PNG and its caption, with the benchmark, in the notebook.

    Raises ConfigError if none is saved."""
    from IPython.display import Image, Markdown, display

    if not (Path(out) / "figure.png").is_file():
        raise ConfigError(
            f"cell 'save': `artefacts.show` finds no figure.png in {out}; call `artefacts.save(figure, tables, out, "
            "artefact, title, caption, benchmark, keys=[...])` in the line before it"
        )
    on = f" Benchmark: {benchmark}." if benchmark else ""
    display(Image(filename=str(Path(out) / "figure.png")), Markdown(f"**{title}.** {caption}{on}"))


def show_notes(notes: Sequence[str]) -> None:
    """Display in the notebook what a loader notes of its data; names in it may be a user's."""
    from IPython.display import Markdown, display

    display(*[Markdown(f"Note of the loader: {plain(note)}") for note in notes])


def show_settings(paths: list[str]) -> None:
    """Display in the notebook how each method was trained and run (`sidecars.settings_used`), nothing cut off."""
    from IPython.display import Markdown, display

    with pd.option_context("display.max_colwidth", None, "display.max_columns", None, "display.max_rows", None):
        display(Markdown(f"**Settings used.** {sidecars.LEGEND}"), sidecars.settings_used(paths))
    if registry.one_data_set(pd.read_parquet(paths[0], columns=["benchmark"])["benchmark"].iloc[0]):
        display(Markdown(f"**Intervals.** {ONE_DATA_SET}"))
