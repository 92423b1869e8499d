"""Small archives in the exact published formats of LCBench and TaskSet; the variations plant one defect each.

Where METABO_DATA points at the real files, the same tests read those too.
"""

import io
import json
import os
import tarfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from metabo.data import bundle
from metabo.data.bundle import members_of

ROWS = 60
LEVEL = "numerai28.6"


def lcbench_inputs(rng: np.random.Generator, n: int) -> np.ndarray:
    """Draw (n, 7) configurations as LCBench has them: batch size, units and layers are whole numbers."""
    u = rng.uniform(size=(n, 7))
    batch, units = np.floor(16 * 32 ** u[:, 0]), np.floor(64 * 16 ** u[:, 5])
    rate, layers = 1e-4 * 1000 ** u[:, 1], np.floor(1 + 4 * u[:, 4])
    return np.stack([batch, rate, 0.1 + 0.89 * u[:, 2], 1e-5 + 0.09999 * u[:, 3], layers, units, u[:, 6]], axis=1)


def lcbench_files(rows: int = ROWS) -> dict[str, dict[str, np.ndarray]]:
    """All 35 files: smooth losses with their best learning rate shifted by task, but for the level one."""
    rng = np.random.default_rng(5)
    x = lcbench_inputs(rng, rows)
    files = {}
    for number, name in enumerate(members_of("lcbench")):
        final = 0.2 + (np.log10(x[:, 1]) + 2.5 + 0.02 * number) ** 2 + 0.3 * x[:, 6] + 0.01 * rng.uniform(size=rows)
        if name.startswith(LEVEL):
            final = 0.6931 + np.where(rng.uniform(size=rows) < 0.05, 0.03, 1e-5) * rng.uniform(size=rows)
        files[name] = {"X": x, "Y": final[:, None] * np.linspace(2.0, 1.0, 52)}
    return files


def taskset_files(rows: int = ROWS) -> dict[str, list]:
    """All twelve files; the rows with the largest rates diverge, to NaN or to 1e30."""
    rng = np.random.default_rng(6)
    u = rng.uniform(size=(rows, 8))
    low = np.array([1e-8, 1e-4, 1e-6, 1e-10, 1e-8, 1e-8, 1e-7, 1e-6])
    high = np.array([10.0, 1.0, 1.0, 1e3, 10.0, 10.0, 1e-4, 1e-3])
    hp = low * (high / low) ** u
    hp[:, 1:3] = 1 - hp[:, 1:3]
    files = {}
    for number, name in enumerate(members_of("taskset")):
        final = 0.4 + 0.3 * (u[:, 0] - 0.5 - 0.01 * number) ** 2
        curves = 0.7 + (final[:, None] - 0.7) * np.linspace(0, 1, 51)
        curves[u[:, 0] > 0.95, 20:] = np.nan
        curves[(u[:, 0] > 0.9) & (u[:, 0] <= 0.95), 30] = 1e30
        names = ("learning_rate", "beta1", "beta2", "epsilon", "l1", "l2", "linear_decay", "exponential_decay")
        files[name] = [
            {
                "hp": dict(zip(names, point, strict=True)),
                **{part: {"loss": curve} for part in ("train", "valid", "test")},
            }
            for point, curve in zip(hp.tolist(), curves.tolist(), strict=True)
        ]
    return files


def _npz(arrays: dict[str, np.ndarray]) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def write(name: str, path: Path, change: Callable[[dict], object] = lambda files: None) -> Path:
    """Write the archive of a data set after `change` had its way with the files (names -> content)."""
    files = lcbench_files() if name == "lcbench" else taskset_files()
    change(files)
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for member, content in files.items():
            packed = content if isinstance(content, bytes) else None
            if packed is None:
                packed = _npz(content) if name == "lcbench" else json.dumps(content).encode()
            info = tarfile.TarInfo(member)
            info.size = len(packed)
            archive.addfile(info, io.BytesIO(packed))
    return path


@cache
def real(name: str) -> dict[str, Path] | None:
    """Return the real files of a data set below METABO_DATA, or None."""
    folder = Path(os.environ.get(bundle.LOCAL, "/nowhere")) / name
    files = {member: folder / member for member in members_of(name)}
    return files if all(path.is_file() for path in files.values()) else None


def archive(name: str, kind: str, folder: Path) -> Path:
    """Return a small or the real archive of a data set; skips a test of real files where there are none."""
    path = folder / f"{name}.tar"
    if kind == "small":
        return write(name, path)
    if (files := real(name)) is None:
        pytest.skip(f"METABO_DATA names no folder with the files of {name}")
    bundle.pack(files, path)
    return path
