"""Random search without replacement: uniform over the candidates that are not observed yet (cm-BO §4.1; sheet §3)."""

from collections.abc import Mapping

from metabo.methods.random.policy import Nothing, Uniform, pretrain, start
from metabo.records.files import Json
from metabo.tasks.rows import Rows

__all__ = ["policy", "pretrain", "start"]


def policy(
    params: Nothing, settings: Mapping[str, Json], acquisition: str, budget: int, past: Rows | None = None
) -> Uniform:
    """Return the policy of random search without replacement."""
    return Uniform(params, repeats=False)
