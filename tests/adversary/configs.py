"""``config.yaml`` and its overlays with values, keys and bytes changed, through the loader and checker of the plan.

What is taken must be what PyYAML reads in the files, merged key by key; it holds every key that was given and no other.
"""

import copy
import json
from functools import cache
from pathlib import Path

import numpy as np
import yaml

from metabo.plan import config
from tests.adversary.fuzzed import _mutated
from tests.adversary.judge import Attempt

ROOT = Path(__file__).parents[2]
OVERLAYS = tuple(sorted((ROOT / "config").glob("*.yaml")))
PAPERS = ["hyperbo", "mphd", "cmbo", "hegpucb"]
ODD = (
    None, True, False, 0, 1, -1, 2, 1.0, 0.5, -0.5, 10**9, 10**9 + 1, 2**63 - 1, 1e300, 1e-300, "", "x", "1", "1e-4", "pd1", "h_nll",
    "ei", "hyperbo", "../x", "https://me:s3cret@host/x", "https://host/x?token=s3cret", "ftp://x", "file:///etc/passwd",
    [], {}, [1], ["x"], [[]], {"a": 1}, ["x", "x"], "a\nb", "\x1b[2J", "\u2028", "9" * 400, "x" * 5000, {"a\nb": {"\x1b[31m": 1}},
    [1, 2, 3, 3], [None], ["pd1_mini", "pd1_mini"], {"h_nll": {"pretrain": {"learning_rate": -1.0}}}, {"h_nll": {"pretrain": {"a\nb": 1}}},
    {"hnll\n": {}}, {"h_nll": {"model": {"kernel": "\x1b[2J"}}}, "{scale}", "=1+1",
)  # fmt: skip
TEXTS = ("1e5", "010", "1:30", "2024-05-01", ".nan", ".inf", "*a", "&a 1", "<<", "'x", '"', "[", "{", "!!set {a}", "1_000", "yes", "0x10",
         "9" * 30, "1.0e+400", "- 1", "a: b: c", "@x", "|", "~", "\t", "\xa0", "#", "%x")  # fmt: skip


@cache
def good() -> dict:
    """The configuration of the clone, as PyYAML reads it."""
    return yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))


def attempt(number: int, rng: np.random.Generator, place: Path) -> Attempt:
    """Change a value or a key of config.yaml, of a whole overlay or of a small one, a text in one of them, or bytes."""
    base = (ROOT / "config.yaml").read_bytes()
    overlay = OVERLAYS[int(rng.integers(len(OVERLAYS)))].read_bytes() if rng.random() < 0.5 else b""
    kind = ("value", "small overlay", "key", "text", "bytes")[number % 5]
    what, end, named = kind, "either", ("config", "overlay.yaml")
    if kind == "small overlay":
        path = _path(good(), rng)
        value = ODD[int(rng.integers(len(ODD)))]
        overlay = _dumped(_nested(path, value))
        what = f"{'.'.join(map(str, path))}: {json.dumps(value)[:60]}"
    elif kind in ("value", "key"):
        into = yaml.safe_load(overlay) if overlay and rng.random() < 0.5 else good()
        changed, what, end = _changed(into, kind, rng)
        if into is good():
            base = _dumped(changed)
        else:
            overlay = _dumped(changed)
    elif kind == "text":
        base, what = _with_text(base, rng)
    elif overlay and rng.random() < 0.5:
        overlay = _mutated(overlay, rng)
    else:
        base = _mutated(base, rng)
    files = [place / "config.yaml"] + ([place / "overlay.yaml"] if overlay else [])
    for path, content in zip(files, (base, overlay), strict=False):
        path.write_bytes(content)

    def right(found: config.Config) -> str:
        wanted: dict = {}
        for path in files:
            wanted = config.merge(wanted, yaml.safe_load(path.read_text(encoding="utf-8-sig")))
        taken = found.model_dump(mode="json", exclude_unset=True)
        strange = [key for key in {*wanted, *taken} if wanted.get(key) != taken.get(key)]
        return (
            f"{strange[0]} is {taken.get(strange[0])}, in the files {wanted.get(strange[0])}"
            if strange
            else secrets(taken)
        )

    return Attempt(
        f"{kind}: {what}", lambda: config.check(config.read(place, tuple(files[1:])), PAPERS), right, end, named
    )


def secrets(taken: dict) -> str:
    """Say so if a password is taken: it would stand in commands and logs."""
    return "a password is taken" if "s3cret" in json.dumps(taken) else ""


def _dumped(value: object) -> bytes:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True).encode()


def _path(values: object, rng: np.random.Generator) -> tuple:
    """Draw the path of a key, each level as likely."""
    path: tuple = ()
    while isinstance(values, dict) and values and (not path or rng.random() < 0.75):
        key = list(values)[int(rng.integers(len(values)))]
        path, values = (*path, key), values[key]
    return path


def _nested(path: tuple, value: object) -> dict:
    for key in reversed(path):
        value = {key: value}
    assert isinstance(value, dict)
    return value


def _changed(values: dict, kind: str, rng: np.random.Generator) -> tuple[dict, str, str]:
    """Return the values with one replaced, or a key that is lost, unknown or misspelt; say so, and how it must end."""
    changed = copy.deepcopy(values)
    path = _path(changed, rng)
    below = changed
    for key in path[:-1]:
        below = below[key]
    last, shown = path[-1], ".".join(map(str, path))
    if kind == "value":
        value = ODD[int(rng.integers(len(ODD)))]
        below[last] = value
        return changed, f"{shown}: {json.dumps(value)[:60]}", "either"
    way = str(rng.choice(["lost", "unknown", "misspelt", "copied"]))
    free = path[0] in ("methods", "ladder")  # whose keys are names
    if way == "lost":
        del below[last]
    elif way == "unknown":
        below[str(rng.choice(["a\nb", "", "\x1b[2J", "x" * 3000, "extra", "__class__", "seeds ", "{}"]))] = 1
    elif way == "misspelt":
        below[f"{last[:-1]}{last[-1:] * 2}"] = below.pop(last)
    else:
        changed[f"{last}_copy"] = copy.deepcopy(below[last])
    return changed, f"{shown} {way}", "either" if way == "lost" or free else "refusal"


def _with_text(content: bytes, rng: np.random.Generator) -> tuple[bytes, str]:
    """Replace what stands behind a key by some text of YAML."""
    lines = content.decode().splitlines()
    able = [i for i, line in enumerate(lines) if ": " in line and not line.lstrip().startswith("#")]
    place = able[int(rng.integers(len(able)))]
    key = lines[place].partition(": ")[0]
    text = TEXTS[int(rng.integers(len(TEXTS)))]
    lines[place] = f"{key}: {text}"
    return "\n".join(lines).encode(), f"{key.strip()}: {text!r}"
