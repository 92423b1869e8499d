"""The checks that claims name: pure functions from the evidence of one artefact to a finding.

A check is a public function of one of the MODULES: `check(evidence, **arguments) -> Finding`.
"""

import inspect
from collections.abc import Callable
from typing import Any

from metabo.claims.checks import (
    cells,
    cluster_costs,
    clusters,
    counts,
    elimination,
    online,
    priors,
    regret,
    spaces,
    studies,
    sweeps,
    theory,
    variants,
)
from metabo.claims.evidence import Evidence
from metabo.claims.verdicts import Finding
from metabo.errors import ConfigError, unknown

MODULES = (
    regret, cells, counts, sweeps, variants, online, studies, theory, priors, spaces, clusters, cluster_costs,
    elimination,
)  # fmt: skip

CHECKS: dict[str, Callable[..., Finding]] = {
    name: check
    for module in MODULES
    for name, check in vars(module).items()
    if inspect.isfunction(check) and check.__module__ == module.__name__ and not name.startswith("_")
}


def run(name: str, evidence: Evidence, arguments: dict[str, Any]) -> Finding:
    """Run a check by its name. Raises ConfigError for one that does not exist."""
    if name not in CHECKS:
        raise unknown("check", name, CHECKS)
    return CHECKS[name](evidence, **arguments)


def faults(name: str, arguments: dict[str, Any]) -> list[str]:
    """Say what is wrong with a check's name or arguments; nothing is run."""
    if name not in CHECKS:
        return [str(unknown("check", name, CHECKS))]
    try:
        inspect.signature(CHECKS[name]).bind(None, **arguments)
    except TypeError as error:
        return [str(ConfigError(f"check '{name}': {error}"))]
    return []
