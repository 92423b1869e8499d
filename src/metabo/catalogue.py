"""The catalogue of tables and figures: load, check, and expand it into one artefact per (entry, benchmark)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metabo import registry
from metabo.config import ACQUISITIONS, splits
from metabo.errors import ConfigError, unknown
from metabo.schema import read_yaml, violations

CATALOGUE = Path("workflow/catalogue.yaml")
SCHEMA = Path("workflow/schemas/catalogue.yaml")
NOTEBOOKS = Path("notebooks")


@dataclass(frozen=True)
class Artefact:
    """One table or figure on one benchmark. `name` is the rule's name; `entry` the catalogue entry `id` names."""

    name: str
    id: str
    benchmark: str
    entry: dict[str, Any]

    @property
    def inputs(self) -> dict[str, Any]:
        """The entry's inputs besides the benchmark file; none for an artefact that describes the benchmark."""
        return self.entry.get("inputs", {})

    @property
    def split(self) -> str | None:
        """Name of the split of the tables that the artefact reads, None if it reads none."""
        return self.inputs.get("split")

    @property
    def template(self) -> str:
        """Path of the notebook template."""
        return (NOTEBOOKS / self.entry["notebook"]).as_posix()

    @property
    def trajectories(self) -> list[tuple[str, str]]:
        """(method, acquisition) of the trajectory tables it reads, on this benchmark."""
        pairs = [trajectory(text) for text in self.inputs.get("trajectories", [])]
        return [pair for pair in pairs if applies(pair[0], self.benchmark)]

    @property
    def evaluations(self) -> list[str]:
        """Methods whose evaluation tables it reads, on this benchmark."""
        return [method for method in self.inputs.get("evaluations", []) if applies(method, self.benchmark)]

    @property
    def online(self) -> list[str]:
        """Methods whose tables of online tuning it reads, on this benchmark."""
        return [method for method in self.inputs.get("online", []) if applies(method, self.benchmark)]


def trajectory(text: str) -> tuple[str, str]:
    """Split "method" or "method-acquisition" (the method's own acquisition unless given). Raises ConfigError."""
    method, _, acquisition = text.partition("-")
    own = registry.method(method)["acquisition"]
    acquisition = acquisition or own
    if acquisition not in ACQUISITIONS:
        raise unknown("acquisition", acquisition, ACQUISITIONS)
    if acquisition != own and "uniform" in (acquisition, own):
        raise ConfigError(f"'{text}': random search draws uniformly and has no other acquisition; no other method does")
    return method, acquisition


def applies(method: str, benchmark: str) -> bool:
    """Tell whether a method can run on a benchmark: EKL needs inputs matched across tasks."""
    needs = registry.method(method)["needs_matched"]
    return registry.benchmark(benchmark)["matched"] or not needs


def load(root: Path = Path()) -> dict[str, dict[str, Any]]:
    """Read and check the catalogue below the project folder `root`. Raises ConfigError that lists every fault."""
    catalogue = read_yaml(root / CATALOGUE)
    faults = violations(catalogue, read_yaml(root / SCHEMA), "catalogue")
    if not faults:
        faults = [
            f"catalogue entry '{id}': {fault}" for id, entry in catalogue.items() for fault in _faults(entry, root)
        ]
    if faults:
        raise ConfigError(f"{CATALOGUE}:\n  " + "\n  ".join(faults))
    return catalogue


def papers(catalogue: dict[str, dict[str, Any]]) -> list[str]:
    """List the papers that have an entry."""
    return sorted({entry["paper"] for entry in catalogue.values()})


def artefacts(config: dict[str, Any], catalogue: dict[str, dict[str, Any]]) -> list[Artefact]:
    """Expand every entry over its benchmarks.

    The first benchmark of config `run.benchmarks` that the entry lists (else the entry's first) is named like the
    entry; the others are named `{id}_{benchmark}`.
    """
    expanded = []
    for id, entry in catalogue.items():
        first = next((b for b in config["run"]["benchmarks"] if b in entry["benchmarks"]), entry["benchmarks"][0])
        for benchmark in entry["benchmarks"]:
            expanded.append(Artefact(id if benchmark == first else f"{id}_{benchmark}", id, benchmark, entry))
    return expanded


def enabled(config: dict[str, Any], all_artefacts: list[Artefact]) -> list[Artefact]:
    """Keep the artefacts of the papers and benchmarks that the configuration runs. Raises ConfigError if none is."""
    papers, benchmarks = config["run"]["papers"], config["run"]["benchmarks"]
    kept = [a for a in all_artefacts if a.entry["paper"] in papers and a.benchmark in benchmarks]
    if not kept:
        raise ConfigError(
            f"config key 'run': no artefact of {', '.join(papers)} is made on {', '.join(benchmarks)}; the catalogue "
            f"has benchmarks {', '.join(sorted({a.benchmark for a in all_artefacts}))}"
        )
    return kept


def collections(config: dict[str, Any], all_artefacts: list[Artefact]) -> dict[str, list[Artefact]]:
    """Group artefacts under the target names that users type: a paper (on the benchmarks that the configuration runs)
    and a benchmark (whatever can be made for it)."""
    groups: dict[str, list[Artefact]] = {}
    for artefact in all_artefacts:
        groups.setdefault(artefact.benchmark, []).append(artefact)
        paper = groups.setdefault(artefact.entry["paper"], [])
        if artefact.benchmark in config["run"]["benchmarks"]:
            paper.append(artefact)
    return groups


def _faults(entry: dict[str, Any], root: Path) -> list[str]:
    found = []
    if not (root / NOTEBOOKS / entry["notebook"]).is_file():
        found.append(f"notebook {NOTEBOOKS / entry['notebook']} does not exist")
    inputs = entry.get("inputs", {})
    for check in (
        lambda: [registry.benchmark(b) for b in entry["benchmarks"]],
        lambda: [_require_module(trajectory(text)[0], "policy_module") for text in inputs.get("trajectories", [])],
        lambda: _refuse_repeats([trajectory(text) for text in inputs.get("trajectories", [])]),
        lambda: [_require_prior(method) for method in inputs.get("evaluations", [])],
        lambda: [_require_module(method, "online_module") for method in inputs.get("online", [])],
        lambda: [_require_split(b, inputs["split"]) for b in entry["benchmarks"] if "split" in inputs],
    ):
        try:
            check()
        except ConfigError as error:
            found.append(str(error))
    return found


def _refuse_repeats(pairs: list[tuple[str, str]]) -> None:
    for method, acquisition in {pair for pair in pairs if pairs.count(pair) > 1}:
        raise ConfigError(f"trajectories name {method}-{acquisition} twice ('{method}' means its own acquisition)")


def _require_module(method: str, part: str) -> None:
    """Refuse a method that has no such runs: `policy_module` (offline, trajectories) or `online_module`."""
    if not registry.method(method).get(part):
        kind = {"policy_module": "trajectories", "online_module": "online"}[part]
        able = [name for name in registry.methods() if registry.method(name).get(part)]
        raise ConfigError(f"{kind}: '{method}' cannot run so; {', '.join(able)} can")


def _require_prior(method: str) -> None:
    if not registry.method(method)["pretrain"]:
        raise ConfigError(f"evaluations: '{method}' pre-trains nothing that could be evaluated")


def _require_split(benchmark: str, split: str) -> None:
    if split not in splits(benchmark):
        raise unknown(f"split of benchmark '{benchmark}'", split, splits(benchmark))
