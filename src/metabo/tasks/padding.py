"""Pad all search spaces of a benchmark to one input width, so that they share one compiled program.

Columns of zeros after its inputs do not change a GP: parameters that only multiply zeros have zero gradients and stay
as they are. Methods for which this holds widen their parameters with zeros, and later cut them back.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from metabo.compute.keys import stream
from metabo.records.files import Json
from metabo.tasks.rows import AnyArray

Leaves = TypeVar("Leaves", bound=PyTree)


def columns(x: Float[AnyArray, "*rows d"], width: int) -> Float[np.ndarray, "*rows width"]:
    """Return inputs with columns of zeros added up to `width`; wider inputs are returned as they are."""
    spare = max(0, width - x.shape[-1])
    return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, spare)])


def shapes(start: Callable[..., Leaves], model: Mapping[str, Json], width: int, tasks: int) -> Leaves:
    """Return the shapes of the parameters that a method's `start` makes for inputs of `width` columns."""
    return jax.eval_shape(lambda: start(model, width, tasks, stream(0)))


def widened(params: Leaves, shapes: Leaves) -> Leaves:
    """Pad parameters that have a leading axis of priors with zeros at the end of every other axis, up to `shapes`,
    which lack that axis."""

    def pad(leaf: Array, like: jax.ShapeDtypeStruct) -> Array:
        return jnp.pad(leaf, [(0, 0), *((0, b - a) for a, b in zip(leaf.shape[1:], like.shape, strict=True))])

    return jax.tree.map(pad, params, shapes)


def narrowed(params: Leaves, shapes: Leaves) -> Leaves:
    """Cut the parameters of wider inputs back to `shapes`: the inverse of `widened`."""

    def cut(leaf: Array, like: jax.ShapeDtypeStruct) -> Array:
        return leaf[(slice(None), *map(slice, like.shape))]

    return jax.tree.map(cut, params, shapes)
