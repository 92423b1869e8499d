"""The part of a benchmark that a prior is trained on."""

from dataclasses import dataclass
from typing import Literal

from metabo.errors import ConfigError
from metabo.plan.typed import Count

ROWS = ("all", "matched", "half")
SPACES = ("all", "others")


@dataclass(frozen=True)
class Past:
    """The part of a benchmark that a prior is trained on: the folds of the split `base`, and at most `points` points of
    each of at most `tasks` tasks (None: all). `rows` are all rows, only those of the matched blocks that H-EKL trains
    on, or those of the half of the configurations in which BO has no candidates.

    `spaces` is what a method that trains across spaces learns from: all spaces, or all but the tested one (mphd §4.2,
    NToT). It does not change the training set of a space.
    """

    base: str
    points: Count | None = None
    tasks: Count | None = None
    rows: Literal["all", "matched", "half"] = "all"
    spaces: Literal["all", "others"] = "all"

    @property
    def drawn(self) -> bool:
        """Tells whether the rows of a task depend on the pre-training seed."""
        return self.points is not None or (self.rows == "matched" and self.tasks is not None)

    def source(self, fold: int, name: str, number: int) -> tuple[int, int, str]:
        """Return a key for the rows of a task, given a fold and pre-training seed `number`. Equal keys mean equal rows.

        Raises ConfigError for unknown `rows`.
        """
        if self.rows not in ROWS:
            raise ConfigError(f"split rows '{self.rows}': must be one of {', '.join(ROWS)}")
        return fold if self.rows == "matched" else 0, number if self.drawn else 0, name
