"""Does a policy follow the protocol (`metabo.bo.policy`)? The choices of a run are checked, and a policy that fails is
traced again to find out which of its functions is to blame."""

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Key, PyTree

from metabo.bo.policy import Candidates, Policy
from metabo.errors import ConfigError, MetaboError

T = TypeVar("T")


class Blamed(NamedTuple):
    """The policy of a method: the file of its code below the project folder, and the name of the method."""

    file: str
    method: str

    def __str__(self) -> str:
        return f"{self.file}: the policy of method '{self.method}'"


@contextmanager
def told(make: Callable[[], Policy], pool: Candidates, blamed: Blamed) -> Iterator[None]:
    """Raise ConfigError in place of an error that comes from a policy that breaks the protocol; let other errors
    through.

    The policy is traced a second time only after an error, because tracing takes seconds for policies that re-fit."""
    try:
        yield
    except MetaboError:
        raise
    except Exception:
        require_policy(make, pool, blamed)
        raise


def require_policy(make: Callable[[], Policy], pool: Candidates, blamed: Blamed) -> None:
    """Raise ConfigError unless the policy can be made, chooses a candidate, reports the fields of `Info`, and then
    returns a state of the same shapes. Nothing is computed: the policy is traced on the arrays of `pool`, as in BO."""

    def traced(pool: Candidates, key: Key[Array, ""]) -> None:
        policy = _asked(blamed, "policy", make)
        state = _asked(blamed, "init", lambda: policy.init(pool, key))
        chosen = _asked(blamed, "select", lambda: policy.select(state, pool.mask, key))
        if not isinstance(chosen, tuple) or hasattr(chosen, "_fields") or len(chosen) != 2:
            given = type(chosen).__name__
            raise ConfigError(f"{blamed}: `select` returns {given}, no pair; return a candidate's index and its `Info`")
        if lost := [field for field in ("mean", "std", "noise", "ok") if not hasattr(chosen[1], field)]:
            raise ConfigError(
                f"{blamed}: `select` says nothing of {', '.join(lost)}; return its `Info`, or give it these"
            )
        index = jnp.asarray(chosen[0])
        if index.shape or not jnp.issubdtype(index.dtype, jnp.integer):
            given = f"{index.dtype}{list(index.shape)}"
            raise ConfigError(f"{blamed}: `select` chooses {given}; return one whole number, as jnp.argmax does")
        after = _asked(blamed, "observe", lambda: policy.observe(state, index, jnp.asarray(0.0)))
        if fault := _change(state, after):
            raise ConfigError(f"{blamed}: `observe` {fault}; return the state, of the shapes that `init` gave it")

    jax.eval_shape(traced, pool, jax.random.key(0))


def _asked(blamed: Blamed, part: str, ask: Callable[[], T]) -> T:
    """Return the result of a function of the policy. Raises ConfigError, which names the function and the line that
    failed."""
    try:
        return ask()
    except MetaboError:
        raise
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame.lineno for frame in frames if frame.filename.replace("\\", "/").endswith(blamed.file)]
        line = f" in line {own[-1]}" if own else ""
        said = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        traced = isinstance(error, TypeError | IndexError | ValueError)  # JAX's tracing errors are among them
        remedy = (
            "take the arguments that metabo.bo.policy names, and write jax.numpy, fixed shapes, and jnp.where in place "
            "of `if`"
        )
        raise ConfigError(f"{blamed}: `{part}` fails{line} ({said}); {remedy if traced else 'mend it'}") from None


def _change(before: PyTree, after: PyTree) -> str:
    """Return how one state differs from another, or "" if they differ only in values."""
    if after is None and before is not None:
        return "returns nothing"
    if jax.tree.structure(before) != jax.tree.structure(after):
        return f"returns {type(after).__name__} of other parts than {type(before).__name__} before it"
    for (path, one), other in zip(jax.tree_util.tree_leaves_with_path(before), jax.tree.leaves(after), strict=True):
        shapes = [f"{leaf.dtype}{list(leaf.shape)}" for leaf in map(jnp.asarray, (one, other))]
        if shapes[0] != shapes[1]:
            return f"changes {jax.tree_util.keystr(path).lstrip('.')} from {shapes[0]} to {shapes[1]}"
    return ""


def refuse_forbidden(
    candidate: Int[np.ndarray, "r t"], valid: Bool[np.ndarray, "r c"], given: int, repeats: bool, blamed: Blamed
) -> None:
    """Raise ConfigError if a policy queries padding or an index out of range, or, without `repeats`, queries a
    candidate again while others are left. The first `given` queries of a run are not the policy's."""
    for run, allowed in zip(candidate, valid, strict=True):
        left = allowed.copy()
        for step, index in enumerate(run):
            there = 0 <= index < len(allowed) and allowed[index]
            if step >= given and not (there and left[index]):
                what = "was queried before" if there else "does not exist"
                raise ConfigError(
                    f"{blamed} chooses candidate {index} at step {step + 1 - given}, which {what}; choose where the "
                    "`mask` of `select` is True, as `metabo.bo.policy.argmax` does"
                )
            if not repeats:
                left[index] = False
                left = left if left.any() else allowed.copy()
