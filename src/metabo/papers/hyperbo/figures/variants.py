"""Variants of one method side by side: which panel and which line a run belongs to (hyperbo D.2, D.3)."""

from metabo.errors import unknown
from metabo.plan import registry
from metabo.plan.runs import acquisition_of, method_of
from metabo.plots import look

VARIED = ("acquisition", "structure")
"""What may vary within a panel: the acquisition function, or mean function and network (methods with `variant_of`)."""


def base(name: str) -> str:
    """Return the method that ``method`` or ``method-acquisition`` is a variant of (itself, unless it says so)."""
    method = method_of(name)
    return registry.method(method).variant_of or method


def panel(name: str) -> str:
    """Return the label of the panel of a run: that of its base method."""
    return look.of(base(name)).label


def line(name: str, varied: str) -> str:
    """Return the name under which a run is drawn in its panel, the same for the same variant in every panel.

    The acquisition's slug; or, as methods of one structure are registered under one label, the first of them. Raises
    ConfigError for another `varied`.
    """
    if varied not in VARIED:
        raise unknown("quantity that varies within a panel", varied, VARIED)
    if varied == "acquisition":
        return acquisition_of(name)
    label = look.of(method_of(name)).label
    return next(m for m in registry.methods() if registry.method(m).label == label)
