"""Contexts of lengthscales: what MPHD knows about an input dimension before any data (§2.1, App. E.2)."""

import numpy as np
from jaxtyping import Bool, Float

from metabo.errors import DataError
from metabo.tasks.spaces import Parameter, SearchSpace

WIDTH = 4


def of_space(space: SearchSpace) -> Float[np.ndarray, "d 4"]:
    """Return (is discrete, is continuous, number of discrete, number of continuous inputs) of each encoded column.

    The rows follow the columns of `SearchSpace.encode`: a categorical parameter has one row for each of its levels.
    Raises DataError for a space without parameters, because the kinds of its inputs are unknown.
    """
    if not space.parameters:
        raise DataError(
            f"space '{space.name}': no parameters, so its inputs have no context (discrete or continuous); "
            "describe them in its loader, or leave the space out"
        )
    return of_columns(np.array([discrete for p in space.parameters for discrete in [_two_valued(p)] * p.width], bool))


def of_columns(discrete: Bool[np.ndarray, " d"]) -> Float[np.ndarray, "d 4"]:
    """Return the contexts of d columns, given which of them are discrete. Counts are not scaled (authors' code)."""
    counts = np.broadcast_to([discrete.sum(), (~discrete).sum()], (len(discrete), 2))
    return np.column_stack([discrete, ~discrete, counts]).astype(np.float64)


def _two_valued(parameter: Parameter) -> bool:
    """Tell whether each column of a parameter takes only two values, which is what "discrete" means in the authors'
    code. So an ordinal parameter with three or more levels counts as continuous."""
    return parameter.kind == "categorical" or (parameter.kind == "ordinal" and len(parameter.levels) == 2)
