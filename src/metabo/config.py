"""The configuration: load, overlay, check, and cut out the settings that each job reads (its spec).

Jobs never see the whole configuration. A key that a job does not read cannot change its spec, so changing that key
does not re-run the job.
"""

import copy
from pathlib import Path
from typing import Any

from metabo import registry
from metabo.errors import ConfigError, nearest, unknown
from metabo.schema import read_yaml, shown, violations

SCHEMA = Path("workflow/schemas/config.yaml")
ACQUISITIONS = registry.literal("acquisition", "ACQUISITIONS")
OVERRIDABLE = ("model", "pretrain", "policy")

Config = dict[str, Any]


def merge(base: Config, overlay: Config) -> Config:
    """Return `base` with the values of `overlay`: mappings merge key by key, everything else is replaced."""
    merged = copy.deepcopy(base)
    for key, value in overlay.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = merge(merged[key], value) if both else copy.deepcopy(value)
    return merged


def load(root: Path = Path(), overlays: tuple[Path, ...] = ()) -> Config:
    """Read config.yaml below the project folder `root`, apply overlays in order, and check the result."""
    config = read_yaml(root / "config.yaml")
    for overlay in overlays:
        config = merge(config, read_yaml(overlay))
    check(config, root)
    return config


def check(config: Config, root: Path = Path(), papers: list[str] | None = None) -> None:
    """Raise ConfigError that lists every fault with its full key path, the allowed values and the nearest match.

    `papers`: names that `run.papers` may use (from the catalogue), not checked if None.
    """
    faults = violations(config, read_yaml(root / SCHEMA), "config")
    faults = faults or [*_name_faults(config, papers), *_override_faults(config["methods"])]
    if faults:
        raise ConfigError("\n".join(faults))


def data_spec(config: Config, benchmark: str) -> dict[str, Any]:
    """Return what the job that loads a benchmark reads: the settings that its source registers, nothing else."""
    values = {"seed": config["seed"], **config["benchmarks"][benchmark]}
    return {"benchmark": benchmark, "settings": {key: values[key] for key in benchmark_entry(benchmark)["settings"]}}


def download_spec(config: Config, row: dict[str, str]) -> dict[str, Any]:
    """Return what the download of one archive reads: a row of workflow/datasets.csv, the user's mirrors first."""
    users = [b for b in registry.names("data", "BENCHMARKS") if benchmark_entry(b)["dataset"] == row["name"]]
    mirrors = [mirror for b in users for mirror in config["benchmarks"].get(b, {}).get("mirrors", [])]
    return {"name": row["name"], "urls": [*mirrors, *row["urls"].split()], "checksum": row["checksum"]}


def pretrain_spec(config: Config, benchmark: str, split: str, method: str) -> dict[str, Any]:
    """Return what one pre-training job reads: the method's registered settings with the scale's sizes."""
    settings = copy.deepcopy(registry.entry("methods", "VARIANTS", method)[1])
    model, pretrain = settings["model"], settings["pretrain"]
    if model.get("features"):
        model |= benchmark_entry(benchmark).get("model", {})
    sizes = config["pretrain"]
    if pretrain.get("optimizer") == "adam":
        pretrain["steps"] = sizes["adam_steps"]
    elif pretrain.get("optimizer") == "lbfgs":
        pretrain["steps"] = sizes["lbfgs_steps"]
        if "matched_points" in pretrain:
            pretrain["matched_points"] = sizes["matched_points"]
    overrides = config["methods"].get(method, {})
    return {
        "benchmark": benchmark,
        "split": split,
        "method": method,
        "seed": config["seed"],
        "seeds": sizes["seeds"],
        "model": model | overrides.get("model", {}),
        "pretrain": pretrain | overrides.get("pretrain", {}),
    }


def evaluate_spec(config: Config, benchmark: str, split: str, method: str) -> dict[str, Any]:
    """Return what one evaluation job reads besides its input files."""
    return {"benchmark": benchmark, "split": split, "method": method}


def bo_spec(config: Config, benchmark: str, split: str, method: str, acquisition: str) -> dict[str, Any]:
    """Return what one Bayesian-optimisation job reads besides its input files."""
    policy = copy.deepcopy(registry.entry("methods", "VARIANTS", method)[1]["policy"])
    if "refit_steps" in policy:
        policy["refit_steps"] = config["bo"]["refit_steps"]
    return {
        "benchmark": benchmark,
        "split": split,
        "method": method,
        "acquisition": acquisition,
        "seed": config["seed"],
        "seeds": config["bo"]["seeds"],
        "iterations": config["bo"]["iterations"],
        "policy": policy | config["methods"].get(method, {}).get("policy", {}),
    }


def benchmark_entry(benchmark: str) -> dict[str, Any]:
    """Return the registered literal of a benchmark. Raises ConfigError that lists the valid names."""
    return registry.entry("data", "BENCHMARKS", benchmark)[1]


def splits(benchmark: str) -> list[str]:
    """List the named splits of a benchmark."""
    return [benchmark_entry(benchmark)["default_split"]]


def _name_faults(config: Config, papers: list[str] | None) -> list[str]:
    """Check names that the schema does not know: benchmarks (registered and configured) and papers."""
    faults = []
    benchmarks = [b for b in registry.names("data", "BENCHMARKS") if b in config["benchmarks"]]
    for name in config["run"]["benchmarks"]:
        if name not in benchmarks:
            faults.append(f"config key 'run.benchmarks': {unknown('benchmark', name, benchmarks)}")
    for paper in config["run"]["papers"] if papers is not None else []:
        if paper not in papers:
            faults.append(f"config key 'run.papers': {unknown('paper', paper, papers)}")
    return faults


def _override_faults(methods: Config) -> list[str]:
    """Check method overrides against the registered literal: known method, section and parameter, same type."""
    faults, known = [], registry.names("methods", "VARIANTS")
    for method, sections in methods.items():
        if method not in known:
            faults.append(f"config key 'methods.{method}': {unknown('method', method, known)}")
            continue
        registered = registry.entry("methods", "VARIANTS", method)[1]
        for section, values in sections.items():
            where = f"methods.{method}.{section}"
            if section not in OVERRIDABLE:
                faults.append(
                    f"config key '{where}' is unknown.{nearest(section, OVERRIDABLE)} Allowed: {', '.join(OVERRIDABLE)}"
                )
            elif not isinstance(values, dict):
                faults.append(f"config key '{where}' is {shown(values)}, must be a mapping")
            else:
                faults += _parameter_faults(where, values, registered[section])
    return faults


def _parameter_faults(where: str, values: Config, registered: Config) -> list[str]:
    faults = []
    for key, value in values.items():
        if key not in registered:
            allowed = ", ".join(sorted(registered)) or "nothing: this method has no settings here"
            faults.append(f"config key '{where}.{key}' is unknown.{nearest(key, registered)} Allowed: {allowed}")
        else:
            faults += violations(value, _like(registered[key]), "config", f"{where}.{key}")
    return faults


def _like(value: Any) -> dict[str, Any]:
    """Return the schema of values of the same type as a registered one."""
    if isinstance(value, list):
        return {"type": "array", "items": _like(value[0]) if value else {}}
    names = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): ["number", "null"]}
    return {"type": names[type(value)]} if type(value) in names else {}
