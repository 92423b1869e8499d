"""The same work on a table of LCBench's size, written the straightforward way; it imports nothing of metabo."""

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from case import Case
from problem import HIGH, LOG, LOW, Sizes, observed, parameters, reading_case, table, table_sizes
from textbook import optimise


def read(path: Path) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return inputs in the unit cube and -log of the last loss of every file, checking nothing."""
    found = {}
    low, high = (np.where(LOG, np.log(np.where(LOG, bound, 1.0)), bound) for bound in (LOW, HIGH))
    with tarfile.open(path) as archive:
        for member in archive.getmembers():
            arrays = np.load(io.BytesIO(archive.extractfile(member).read()))
            raw = np.where(LOG, np.log(np.where(LOG, arrays["X"], 1.0)), arrays["X"])
            found[member.name] = (raw - low) / (high - low), -np.log(arrays["Y"][:, -1])
    return found


def reading(sizes: Sizes) -> Case:
    return reading_case(sizes, read)


def bo(sizes: Sizes) -> Case:
    """One full Cholesky factor per query, on the first few data sets."""
    sizes = table_sizes(sizes)
    x, losses = table(sizes)
    params = parameters(sizes)

    def repeat() -> int:
        for y in -np.log(losses[: sizes.textbook_data_sets, :, -1]):
            optimise(params, x, y, int(observed(sizes, 1)[0]), sizes.budget)
        return sizes.textbook_data_sets

    return Case(repeat)


CASES: dict[str, dict[str, Callable[[Sizes], Case]]] = {
    "tables_load": {"textbook": reading},
    "tables_bo": {"textbook": bo},
}
