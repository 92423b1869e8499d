"""The policy protocol: three pure functions, which a single loop calls for every method, with or without a GP."""

from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

State = TypeVar("State")
Said_co = TypeVar("Said_co", covariant=True)


class Candidates(NamedTuple):
    """A finite pool: inputs x (c, d) and a mask (c,) of the valid rows (the others are padding). `task` is the position
    of the test task in its fold, for methods that know something about it beforehand (MAF, hyperbo D.5)."""

    x: Float[Array, "c d"]
    mask: Bool[Array, " c"]
    task: Int[Array, ""] | int = 0


class Info(NamedTuple):
    """What a person or a table needs to know about one selection; it is never fed back. `mean` and `std` are the
    predicted mean and standard deviation (with noise, if the method's acquisition has it) at the selected candidate,
    `noise` is the standard deviation of the model's noise; all three are NaN without a model, and `noise` also if a
    model has no such number. `ok` says whether the step was numerically sound, and `jitter` is the variance that its
    covariance needed on the diagonal beyond the usual jitter."""

    mean: Float[Array, ""]
    std: Float[Array, ""]
    noise: Float[Array, ""]
    ok: Bool[Array, ""]
    jitter: Float[Array, ""] | float = 0.0


@runtime_checkable
class Policy(Protocol[State, Said_co]):
    """A BO method on a finite pool. `State` has fixed shapes, because the budget is known beforehand. `Said_co` is the
    type of its record of each step: `Info`, or a type of its own.

    The loop decides which candidates may be queried; `repeats` says whether a candidate remains one after its query.
    """

    @property
    def repeats(self) -> bool:
        """Whether a candidate may be queried again."""
        ...

    def init(self, candidates: Candidates, key: Key[Array, ""]) -> State:
        """Return the state before any observation."""
        ...

    def select(self, state: State, mask: Bool[Array, " c"], key: Key[Array, ""]) -> tuple[Int[Array, ""], Said_co]:
        """Return the index of the candidate to evaluate next, where `mask` is True, and the record of the step."""
        ...

    def observe(self, state: State, index: Int[Array, ""], y: Float[Array, ""]) -> State:
        """Return the state after candidate `index` gave the output y."""
        ...


@runtime_checkable
class Growing(Protocol[State]):
    """A policy whose steps become more expensive the more observations its state has room for."""

    def resized(self, state: State, budget: int) -> State:
        """Return the state with room for `budget` observations, which must be at least as many as it holds."""
        ...


@runtime_checkable
class Remarking(Protocol):
    """A policy that can say why a step of a run was unsound."""

    def remarks(self, candidates: Candidates) -> list[str]:
        """Return remarks for a person on a run on these candidates."""
        ...


def remaining(
    mask: Bool[Array, " c"], valid: Bool[Array, " c"], index: Int[Array, ""], repeats: bool
) -> Bool[Array, " c"]:
    """Return the mask of candidates that may be queried after candidate `index`: with `repeats` the same as before,
    otherwise those that are left, or all `valid` candidates again if none are."""
    if repeats:
        return mask
    left = mask.at[index].set(False)
    return jnp.where(left.any(), left, valid)


def argmax(scores: Float[Array, " c"], mask: Bool[Array, " c"], priority: Float[Array, " c"]) -> Int[Array, ""]:
    """Return the best valid candidate; ties go to the highest `priority` (drawn once per run).

    The authors' code shuffles the pool once per run and takes the first maximum, which is the same rule. A NaN score
    never wins; if all scores are NaN, the priority decides (and `Info.ok` reports it, as it does a score of +inf).
    """
    scores = jnp.where(mask & ~jnp.isnan(scores), scores, -jnp.inf)
    return jnp.argmax(jnp.where(mask & (scores == jnp.max(scores)), priority, -1.0))


def tie_breakers(key: Key[Array, ""], count: int) -> Float[Array, " c"]:
    """Draw one random priority in [0, 1) per candidate."""
    return jax.random.uniform(key, (count,), jnp.float64)
