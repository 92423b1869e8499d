"""A small text, read character by character: the data set descriptions that scikit-learn carries."""

import hashlib
from pathlib import Path

import numpy as np

from metabo.collect.packages import require
from metabo.collect.training import Examples
from metabo.errors import DataError

LENGTH = 32
"""Characters per example."""

STRETCH = 10 * (LENGTH + 1)
"""Characters of a stretch; every fifth stretch of a text validates."""

RARE = 15
"""Characters that occur less often share one token."""

SHA256 = "efcc63d1a838d2134e9078ff3e2d7c6b66098f891425d381cef4879fe3ca390f"
"""Of the files joined in the order of their names, as scikit-learn 1.9.1 ships them."""


def descriptions(folder: Path | None = None) -> Examples:
    """Return next-character examples: tokens (n, `LENGTH`) int32 and, as labels, the characters that follow each.

    Training examples overlap by half, validation examples do not. All text is in lower case. Raises DataError if the
    package is missing or its texts differ from those of the pinned version (checked by SHA-256). `folder`: where the
    texts are, by default in scikit-learn.
    """
    texts = _read(folder)
    joined = "".join(texts)
    letters, counts = np.unique(list(joined), return_counts=True)
    token = {letter: i + 1 for i, letter in enumerate(letters[counts >= RARE])}
    parts: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for text in texts:
        tokens = np.array([token.get(letter, 0) for letter in text], np.int32)
        for first in range(0, len(tokens), 5 * STRETCH):
            cut = first + 4 * STRETCH
            parts[0].append(_windows(tokens[first:cut], (LENGTH + 1) // 2))
            parts[1].append(_windows(tokens[cut : cut + STRETCH], LENGTH + 1))
    train, valid = (np.concatenate(part) for part in parts)
    return Examples(train[:, :-1], train[:, 1:], valid[:, :-1], valid[:, 1:], len(token) + 1)


def _windows(tokens: np.ndarray, stride: int) -> np.ndarray:
    """Return the (n, LENGTH + 1) windows that begin every `stride` characters."""
    starts = range(0, len(tokens) - LENGTH, stride)
    return np.array([tokens[s : s + LENGTH + 1] for s in starts], np.int32).reshape(-1, LENGTH + 1)


def _read(folder: Path | None) -> list[str]:
    """Return the texts in the order of their file names, in lower case."""
    package = require("sklearn")
    folder = folder or Path(package.__file__).parent / "datasets" / "descr"
    where = f"scikit-learn {package.__version__}, {folder.name}/*.rst"
    paths = sorted(folder.glob("*.rst"), key=lambda path: path.name)
    try:
        content = [path.read_bytes() for path in paths]
    except OSError as error:
        raise DataError(f"{where}: cannot be read ({error}); reinstall the package") from error
    found = hashlib.sha256(b"".join(content)).hexdigest()
    if found != SHA256:
        raise DataError(
            f"{where}: {len(paths)} texts with SHA-256 {found[:16]}..., expected {SHA256[:16]}...; they belong to "
            "another version of the package: install the one that requirements.lock pins (`make install`)"
        )
    return [text.decode("utf-8").lower() for text in content]
