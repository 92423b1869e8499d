"""Small archives in the exact published formats of PD1 and HPO-B, for tests of the loaders and of the workflow.

Values come from smooth functions of the inputs with a seeded generator. Each archive is large enough to drive the
whole pipeline at the smoke scale. The variations plant one defect each.
"""

import gzip
import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

DECAY, RATE, POWER, MOMENTUM = (
    "hps.lr_hparams.decay_steps_factor",
    "hps.lr_hparams.initial_value",
    "hps.lr_hparams.power",
    "hps.opt_hparams.momentum",
)
ERROR = "best_valid/error_rate"
IMAGENET_1024 = "imagenet_resnet50,imagenet,resnet,resnet50,1024"
PD1_TASKS = (
    "cifar10_wrn,cifar10,wide_resnet,wrn,256",
    "cifar10_wrn,cifar10,wide_resnet,wrn,2048",
    "mnist_simple_cnn,mnist,simple_cnn,simple_cnn,256",
    "fashion_smpl_cnn,fashion_mnist,simple_cnn,simple_cnn,256",
    "lm1b_trfmr,lm1b,transformer,transformer,2048",
    IMAGENET_1024,
)
HPOB_SPACES = {"4796": 3, "5860": 2}
HPOB_TEST_TASKS = {"4796": ("3549", "3918"), "5860": ("14965", "9976")}

Row = dict[str, Any]


def checksum(path: Path, algorithm: str = "sha256") -> str:
    return f"{algorithm}:{hashlib.new(algorithm, Path(path).read_bytes()).hexdigest()}"


def pd1_points(rng: np.random.Generator, n: int) -> np.ndarray:
    """Draw (n, 4) λ, η, p, β uniformly in the (warped) box of hyperbo Table 4."""
    u = rng.uniform(size=(n, 4))
    decay, power = 0.01 + 0.98 * u[:, 0], 0.1 + 1.9 * u[:, 2]
    return np.stack([decay, 10.0 ** (-5 + 6 * u[:, 1]), power, 1 - 10.0 ** (-3 * u[:, 3])], axis=1)


def pd1_error(points: np.ndarray, shift: float) -> np.ndarray:
    """Smooth error rate with its best effective learning rate shifted by task; NaN where training diverges."""
    effective = np.log10(points[:, 1]) - np.log10(1 - points[:, 3])
    error = 0.05 + 0.9 * (1 - np.exp(-(((effective - shift) / 2.5) ** 2))) + 0.04 * (points[:, 0] - 0.6) ** 2
    error = np.minimum(error + 0.02 * np.abs(points[:, 2] - 1), 1.0)
    return np.where(effective > shift + 2.2, np.nan, error)


def pd1_row(task: str, point: np.ndarray, error: float) -> Row:
    diverged = not np.isfinite(error)
    return {
        "dataset": task.split(",")[1], "model": task.split(",")[2], "study_group": task,
        "status": "diverged" if diverged else "done", "hps.batch_size": int(task.split(",")[-1]),
        DECAY: float(point[0]), RATE: float(point[1]), POWER: float(point[2]), MOMENTUM: float(point[3]),
        "valid/error_rate": [1.0, None if diverged else float(error)], ERROR: None if diverged else float(error),
    }  # fmt: skip


def pd1_rows(
    seed: int = 0,
    tasks: tuple[str, ...] = PD1_TASKS,
    matched: tuple[int, int] = (10, 30),
    unmatched: tuple[int, int] = (10, 20),
) -> dict[str, list[Row]]:
    """Rows of the four files; `matched` and `unmatched` give the points per task in phases 0 and 1.

    As in the archive, ImageNet 1024 is in phase 0 only.
    """
    rng = np.random.default_rng(seed)
    shifts = {task: -1.2 + 0.35 * i for i, task in enumerate(tasks)}
    files: dict[str, list[Row]] = {}
    for phase in (0, 1):
        shared = pd1_points(rng, matched[phase])
        for kind in ("matched", "unmatched"):
            rows = files[f"pd1_{kind}_phase{phase}_results.jsonl"] = []
            for task in tasks:
                points = shared if kind == "matched" else pd1_points(rng, unmatched[phase])
                if task == IMAGENET_1024 and phase == 1:
                    continue
                errors = pd1_error(points, shifts[task])
                rows += [pd1_row(task, p, e) for p, e in zip(points, errors, strict=True)]
    return files


def write_pd1(
    path: Path,
    *,
    seed: int = 0,
    tasks: tuple[str, ...] = PD1_TASKS,
    edit: Callable[[dict[str, list[Row]]], Any] | None = None,
    drop_file: str | None = None,
    member: tarfile.TarInfo | None = None,
    prefix: str = "pd1/",
    rows: dict[str, list[Row]] | None = None,
) -> Path:
    """Write pd1.tar.gz: JSON lines, phase-1 files gzipped inside, licence and task files beside them.

    `edit` changes the rows in place; `drop_file` leaves one file out; `member` adds an unsafe member.
    """
    files = pd1_rows(seed, tasks) if rows is None else rows
    if edit:
        edit(files)
    with tarfile.open(path, "w:gz") as archive:
        _add(archive, f"{prefix}LICENSE", b"CC-BY 4.0\n")
        for name, lines in files.items():
            if name == drop_file:
                continue
            content = "".join(json.dumps(line) + "\n" for line in lines).encode()
            zipped = "phase1" in name
            _add(
                archive,
                prefix + name + (".gz" if zipped else ""),
                gzip.compress(content, mtime=0) if zipped else content,
            )
        if member is not None:
            archive.addfile(member, io.BytesIO(b"x" * member.size))
    return Path(path)


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    archive.addfile(info, io.BytesIO(content))


def hpob_content(seed: int = 0, points: int = 60, train: int = 4) -> dict[str, Any]:
    """The four JSON members by name, in the published format (y as [[value], ...])."""
    rng = np.random.default_rng(seed)
    meta: dict[str, dict] = {"train": {}, "validation": {}, "test": {}}
    initial: dict[str, dict] = {}
    for space, d in HPOB_SPACES.items():
        ids = {
            "train": [str(1000 + i) for i in range(train)],
            "validation": ["2000"],
            "test": list(HPOB_TEST_TASKS[space]),
        }
        for split, names in ids.items():
            meta[split][space] = {}
            for name in names:
                x = rng.uniform(size=(points, d))
                best = rng.uniform(0.3, 0.7, size=d)
                y = 0.95 - 0.4 * ((x - best) ** 2).sum(axis=1) / d - 0.05 * rng.uniform()
                meta[split][space][name] = {"X": x.tolist(), "y": y[:, None].tolist()}
        initial[space] = {
            name: {f"test{s}": [int(i) for i in rng.choice(points, 5, replace=False)] for s in range(5)}
            for name in ids["test"]
        }
    content = {f"meta-{split}-dataset.json": spaces for split, spaces in meta.items()}
    return {**content, "bo-initializations.json": initial}


def write_hpob(
    path: Path,
    *,
    seed: int = 0,
    points: int = 60,
    edit: Callable[[dict[str, Any]], Any] | None = None,
    drop_file: str | None = None,
    member: zipfile.ZipInfo | None = None,
    prefix: str = "hpob-data/",
) -> Path:
    """Write hpob-data.zip. `edit` changes the members in place; `member` adds an unsafe one."""
    content = hpob_content(seed, points)
    if edit:
        edit(content)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in content.items():
            if name != drop_file:
                archive.writestr(zipfile.ZipInfo(prefix + name), json.dumps(value), zipfile.ZIP_DEFLATED)
        archive.writestr(zipfile.ZipInfo(prefix + "meta-train-dataset-augmented.json"), "{}")
        if member is not None:
            archive.writestr(member, b"target")
    return Path(path)
