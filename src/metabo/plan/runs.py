"""The name of a run: a method, optionally with an acquisition and on a split, as in ``h_nll-ei@held_out``."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from metabo.errors import ConfigError, unknown
from metabo.plan import registry

SCORED = {name: str(label) for name, label in registry.literal("bo.acquisition", "SCORED").items()}
OWN = {name: str(label) for name, label in registry.literal("bo.acquisition", "OWN").items()}
ACQUISITIONS = SCORED | OWN
"""Labels of the acquisition functions by name: those for every method that predicts, and those that belong to one
method."""

PARTS = re.compile(r"([^@-]*)(?:-([^@]*))?(?:@(.*))?", re.DOTALL)


class RunId(NamedTuple):
    """The parts of a run's name. An `acquisition` of "" is the method's own; a `split` of "" is the one that the
    artefact reads."""

    method: str
    acquisition: str = ""
    split: str = ""

    @classmethod
    def parse(cls, name: str) -> "RunId":
        """Split ``method`` or ``method-acquisition``, either with ``@split``, into parts, without checking that the
        names exist."""
        parts = PARTS.fullmatch(name)
        assert parts is not None, "every part may be empty or any text"
        return cls(*parts.groups(default=""))

    def __str__(self) -> str:
        """The name that `parse` splits."""
        scored = f"{self.method}-{self.acquisition}" if self.acquisition else self.method
        return f"{scored}@{self.split}" if self.split else scored

    def on(self, split: str) -> "RunId":
        """Return the same run on another split ("": on the one that the artefact reads)."""
        return self._replace(split=split)


def method_of(name: str) -> str:
    """Return the method of a run."""
    return RunId.parse(name).method


def acquisition_of(name: str) -> str:
    """Return the acquisition of a run, which is its method's own unless the name has one. Raises ConfigError for an
    unknown method."""
    run = RunId.parse(name)
    return run.acquisition or registry.method(run.method).acquisition


def resolved(run: RunId) -> RunId:
    """Return the run with its acquisition. Raises ConfigError for an unknown method or acquisition, or for one that the
    method cannot use."""
    own = registry.method(run.method).acquisition
    acquisition = run.acquisition or own
    if acquisition not in ACQUISITIONS:
        raise unknown("acquisition", acquisition, ACQUISITIONS)
    if acquisition != own and own in OWN:
        raise ConfigError(f"'{run.on('')}': '{run.method}' suggests by '{own}' alone; write '{run.method}'")
    if acquisition != own and acquisition in OWN:
        raise ConfigError(
            f"'{run.on('')}': '{acquisition}' is the acquisition of no other method than its own; for others there are "
            f"{', '.join(SCORED)}"
        )
    return run._replace(acquisition=acquisition)


def on_splits(names: Iterable[str], splits: Iterable[str]) -> list[str]:
    """Return each run's name with its split from `splits`."""
    return [str(RunId.parse(name).on(split)) for name, split in zip(names, splits, strict=True)]
