"""The configuration: load, overlay, check, and cut out the settings that each job reads (its spec).

Jobs never see the whole configuration. A key that a job does not read cannot change its spec, so changing that key
does not re-run the job.
"""

import copy
from pathlib import Path
from typing import Any

from metabo import registry, splits
from metabo.errors import ConfigError, nearest, unknown
from metabo.schema import read_yaml, shown, violations

SCHEMA = Path("workflow/schemas/config.yaml")
ACQUISITIONS = registry.literal("acquisition", "ACQUISITIONS")
OVERRIDABLE = ("model", "pretrain", "policy", "online")

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
    faults = faults or [*_name_faults(config, papers), *_override_faults(config)]
    if faults:
        raise ConfigError("\n".join(faults))


def check_scale(scale: str, used: list[str], root: Path = Path()) -> None:
    """Raise ConfigError when a scale with an overlay is named but its overlay is not among the `used` config files.

    Results would otherwise carry the name of one scale and the sizes of another.
    """
    overlay = f"{scale}.yaml"
    if (root / "config" / overlay).exists() and overlay not in used:
        raise ConfigError(
            f"config key 'scale' is '{scale}', but its sizes are in config/{overlay}; "
            f"say `snakemake --configfile config/{overlay}` and leave 'scale' alone"
        )


def data_spec(config: Config, benchmark: str) -> dict[str, Any]:
    """Return what the job that loads a benchmark reads: the settings that its source registers, nothing else."""
    entry = registry.benchmark(benchmark)
    values = {"seed": config["seed"], **config["benchmarks"][benchmark]}
    if "online" in entry["settings"]:  # the tasks that its collector can evaluate new points of
        values["online"] = list(registry.literal(entry["collector"], "ONLINE"))
    return {"benchmark": benchmark, "settings": {key: values[key] for key in entry["settings"]}}


def collect_spec(config: Config, benchmark: str, unit: str) -> dict[str, Any]:
    """Return what the job that collects one unit (a task or a data set) of an embedded benchmark reads."""
    return pack_spec(config, benchmark) | {"unit": unit}


def pack_spec(config: Config, benchmark: str) -> dict[str, Any]:
    """Return what the job that joins the units of a re-collection records of their settings."""
    return {"benchmark": benchmark, "seed": config["seed"], "sizes": config["collect"][benchmark]}


def download_spec(config: Config, row: dict[str, str]) -> dict[str, Any]:
    """Return what the download of one archive reads: a row of workflow/datasets.csv, the user's mirrors first."""
    users = [b for b in registry.benchmarks() if registry.benchmark(b)["dataset"] == row["name"]]
    mirrors = [mirror for b in users for mirror in config["benchmarks"].get(b, {}).get("mirrors", [])]
    return {"name": row["name"], "urls": [*mirrors, *row["urls"].split()], "checksum": row["checksum"]}


def pretrain_spec(config: Config, benchmark: str, split: str, method: str) -> dict[str, Any]:
    """Return what one pre-training job reads: the method's registered settings with the sizes of scale or split."""
    settings = registry.method(method)
    config = merge(config, {"pretrain": config[splits.entry(split).get("sizes", "pretrain")]})
    model = sized(config, settings["model"])
    if model.get("features") and not settings.get("own_features"):
        model |= registry.benchmark(benchmark).get("model", {})
    overrides = config["methods"].get(method, {})
    return {
        "benchmark": benchmark,
        "split": split,
        "past": splits.past(split),
        "method": method,
        "seed": config["seed"],
        "seeds": sized(config, {"seeds": settings.get("prior_seeds", "@pretrain.seeds")})["seeds"],
        "model": model | overrides.get("model", {}),
        "pretrain": sized(config, settings["pretrain"]) | overrides.get("pretrain", {}),
    }


def sized(config: Config, settings: dict[str, Any]) -> dict[str, Any]:
    """Replace every size, written "@section.key" in a registration, by that value of the configuration."""

    def value(setting: Any) -> Any:
        if not (isinstance(setting, str) and setting.startswith("@")):
            return setting
        section, _, key = setting[1:].partition(".")
        if key not in config.get(section, {}):
            raise ConfigError(f"methods.yaml: '{setting}' names no key of config.yaml")
        return config[section][key]

    return {name: value(setting) for name, setting in settings.items()}


def study_spec(config: Config, study: str) -> dict[str, Any]:
    """Return what one synthetic study reads: its sizes."""
    return {"study": study, "seed": config["seed"], **config["studies"][study]}


def theory_spec(config: Config, paper: str, check: str) -> dict[str, Any]:
    """Return what one theory check reads: its seed and the share of its replicates."""
    return {"paper": paper, "check": check, "seed": config["seed"], "share": config["theory"]["share"]}


def evaluate_spec(config: Config, benchmark: str, split: str, method: str) -> dict[str, Any]:
    """Return what one evaluation job reads besides its input files."""
    return {"benchmark": benchmark, "split": split, "method": method}


def bo_spec(config: Config, benchmark: str, split: str, method: str, acquisition: str) -> dict[str, Any]:
    """Return what one Bayesian-optimisation job reads besides its input files."""
    policy = sized(config, registry.method(method)["policy"])
    sizes = config[splits.entry(splits.prior_split(split)).get("sizes", "pretrain")]
    return {
        "benchmark": benchmark,
        "split": split,
        "method": method,
        "acquisition": acquisition,
        "seed": config["seed"],
        "seeds": sizes.get("bo_seeds", config["bo"]["seeds"]),
        "iterations": config["bo"]["iterations"],
        "policy": policy | config["methods"].get(method, {}).get("policy", {}),
        "candidates": splits.entry(split).get("candidates", "all"),
    }


def online_spec(config: Config, benchmark: str, split: str, method: str) -> dict[str, Any]:
    """Return what one online-tuning job reads besides its input files; the priors bring their training settings."""
    settings = registry.method(method)
    return {
        "benchmark": benchmark,
        "split": split,
        "method": method,
        "acquisition": settings["acquisition"],
        "seed": config["seed"],
        "seeds": config["online"]["seeds"],
        "iterations": config["online"]["iterations"],
        "online": sized(config, settings["online"]) | config["methods"].get(method, {}).get("online", {}),
    }


def _name_faults(config: Config, papers: list[str] | None) -> list[str]:
    """Check names that the schema does not know: benchmarks (registered and configured) and papers."""
    faults = []
    benchmarks = [b for b in registry.benchmarks() if b in config["benchmarks"]]
    for name in config["run"]["benchmarks"]:
        if name not in benchmarks:
            faults.append(f"config key 'run.benchmarks': {unknown('benchmark', name, benchmarks)}")
    for paper in config["run"]["papers"] if papers is not None else []:
        if paper not in papers:
            faults.append(f"config key 'run.papers': {unknown('paper', paper, papers)}")
    return faults


def _override_faults(config: Config) -> list[str]:
    """Check method overrides against the registration: known method, section and parameter, type and range."""
    faults, known = [], registry.methods()
    for method, sections in config["methods"].items():
        if method not in known:
            faults.append(f"config key 'methods.{method}': {unknown('method', method, known)}")
            continue
        registered = registry.method(method)
        for section, values in sections.items():
            where = f"methods.{method}.{section}"
            if section not in OVERRIDABLE:
                faults.append(
                    f"config key '{where}' is unknown.{nearest(section, OVERRIDABLE)} Allowed: {', '.join(OVERRIDABLE)}"
                )
            elif not isinstance(values, dict):
                faults.append(f"config key '{where}' is {shown(values)}, must be a mapping")
            else:
                faults += _parameter_faults(where, values, sized(config, registered.get(section, {})))
    return faults


RANGES: dict[str, dict[str, Any]] = {
    "batch": {"minimum": 1},
    "steps": {"minimum": 1},
    "refit_steps": {"minimum": 1},
    "matched_points": {"minimum": 0},
    "nll_weight": {"minimum": 0},
    "outputs": {"enum": registry.literal("training", "OUTPUTS")},
    "retrain_steps": {"minimum": 1},
    "starts": {"minimum": 2},
    "polish": {"minimum": 1},
    "polish_steps": {"minimum": 1},
    "learning_rate": {"exclusiveMinimum": 0},
    "features": {"items": {"type": "integer", "minimum": 1}},
    "mean": {"enum": registry.literal("gp.model", "MEANS")},
    "kernel": {"enum": registry.literal("gp.model", "KERNELS")},
    "objective": {"enum": sorted(registry.literal("methods.pretrained", "OBJECTIVES"))},
    **{key: {"minimum": 1} for key in ("episodes", "horizon", "minibatches", "epochs", "evaluate_every", "gp_steps")},
    **{key: {"minimum": 0} for key in ("candidates", "points", "gp_points", "value_weight", "entropy_weight")},
    **{key: {"minimum": 0, "maximum": 1} for key in ("discount", "smoothing")},
    **{key: {"exclusiveMinimum": 0} for key in ("clip", "min_regret")},
    **{key: {"minimum": 1} for key in ("members", "embedding", "random_features")},
    **{key: {"items": {"type": "integer", "minimum": 1}} for key in ("shared", "unshared")},
    "ridge": {"exclusiveMinimum": 0},
    "hidden": {"minItems": 1, "items": {"type": "integer", "minimum": 1}},
}
"""What values a method's setting may have, beyond the type of the registered one."""


def _parameter_faults(where: str, values: Config, registered: Config) -> list[str]:
    faults = []
    for key, value in values.items():
        if key not in registered:
            allowed = ", ".join(sorted(registered)) or "nothing: this method has no settings here"
            faults.append(f"config key '{where}.{key}' is unknown.{nearest(key, registered)} Allowed: {allowed}")
        else:
            faults += violations(value, _like(registered[key]) | RANGES.get(key, {}), "config", f"{where}.{key}")
    return faults


def _like(value: Any) -> dict[str, Any]:
    """Return the schema of values of the same type as a registered one."""
    if isinstance(value, list):
        return {"type": "array", "items": _like(value[0]) if value else {}}
    names = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): ["number", "null"]}
    return {"type": names[type(value)]} if type(value) in names else {}
