"""What checks of cm-BO share: its runs by acquisition, as the panels of its figures have them."""

from collections.abc import Sequence

from metabo.metrics import Runs
from metabo.papers.cmbo.metrics import of_acquisition
from metabo.papers.engine.claims.comparing import name
from metabo.papers.engine.claims.ranges import at_least
from metabo.papers.engine.claims.verdicts import Finding, untestable
from metabo.plan.runs import acquisition_of, method_of


def panels(runs: Runs) -> dict[str, dict[str, str]]:
    """Return, by acquisition, the runs' names by method; random search is in every panel."""
    kinds = [kind for kind in dict.fromkeys(map(acquisition_of, runs.methods)) if kind != "uniform"]
    return {kind: {method_of(run): run for run in of_acquisition(runs.methods, kind)} for kind in kinds}


def runs_of(runs: Runs, method: str) -> list[str]:
    """Return the runs of a method, one with each acquisition."""
    return [run for run in runs.methods if method_of(run) == method]


def absent(methods: Sequence[str], runs: Runs) -> list[Finding]:
    """Return a finding, not testable, for every method that was run with no acquisition."""
    known = set(map(method_of, runs.methods))
    return [untestable(f"{name(method)} was not run") for method in methods if method not in known]


def is_lower(part: Finding) -> bool:
    """Tell whether the estimate of a finding is below 0, whatever its interval."""
    return part.value is not None and part.value < 0


def most(label: str, parts: Sequence[Finding], ahead: Sequence[bool], what: str = "variants") -> Finding:
    """Return the finding that more than half of the parts hold; for an odd number, that their median does."""
    return at_least(label, parts, ahead, len(parts) // 2 + 1, f"share of {what}")
