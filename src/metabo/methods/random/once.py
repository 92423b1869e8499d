"""Random search without replacement: uniform over the candidates that are not observed yet (cm-BO §4.1; sheet §3)."""

from typing import Any

from metabo.methods.random.policy import Nothing, Uniform, pretrain, start
from metabo.tasks.rows import Rows

__all__ = ["policy", "pretrain", "start"]


def policy(
    params: Nothing, settings: dict[str, Any], acquisition: str, budget: int, past: Rows | None = None
) -> Uniform:
    """Return the policy of random search without replacement."""
    return Uniform(params, repeats=False)
