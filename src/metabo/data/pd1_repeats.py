"""What the `pd1` loader makes of repeated trainings (pd1_mini 2) and of trials that diverged: noise, and the error of
guessing."""

from typing import NamedTuple

import numpy as np

from metabo.data.pd1_columns import CHANCE, DIVERGED, REPEATS, STD, Trials
from metabo.errors import DataError
from metabo.tasks.facts import Divergence

COLUMNS = (REPEATS, DIVERGED, STD, CHANCE)
"""Columns of version 2 that the loader reads besides those of PD1, in the order of `Repeats.of`."""

GUESSING = {
    "mnist5k": 1 - 135 / 1200,
    "digits": 1 - 119 / 1097,
    "mnist1d": 1 - 158 / 1400,
    "satimage": 1 - 357 / 1500,
    "phoneme": 1 - 1060 / 1500,
    "letter": 1 - 61 / 1500,
    "descr": 1 - 1159 / 6656,
}
"""Error rate of guessing the most frequent class of a data set's validation labels (of descr: the most frequent token),
for version 1, whose table does not have it."""


class Repeats(NamedTuple):
    """For each of n rows: the number of trainings that did not diverge, standard deviation of their errors (NaN where
    it is not known) and the error of guessing."""

    sound: np.ndarray
    std: np.ndarray
    chance: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray) -> "Repeats":
        """Make them of an (n, 4) array of `COLUMNS`."""
        repeats, diverged, std, chance = values.T
        return cls(repeats - diverged, std, chance)

    def noise(self, error: np.ndarray) -> np.ndarray:
        """Return the standard deviations of y = -log(mean error + 1e-10), NaN where they are not known.

        By the slope of y at the mean, 1 / (mean + 1e-10) (the delta method), from the standard error std / sqrt(n): the
        rule of `metabo.data.noise` for other tables. With three trainings the spread of their own y would be no better,
        and it is that of one training, not of the mean.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.std / np.sqrt(self.sound) / (error + 1e-10)


def guessed(trials: Trials, repeats: Repeats | None) -> tuple[Trials, Repeats | None]:
    """Give every row whose status is not "done" the error of guessing, whose noise is not known. Raises DataError for a
    data set of which that error is not known."""
    done = trials.status == "done"
    if repeats:
        chance = repeats.chance
    else:
        sets = [str(task).split(",")[1] for task in trials.task]
        if strange := [name for name in sets if name not in GUESSING]:
            raise DataError(f"data set '{strange[0]}': its error of guessing is not known; set divergence to status")
        chance = np.array([GUESSING[name] for name in sets])
    repeats = repeats and repeats._replace(std=np.where(done, repeats.std, np.nan))
    return trials._replace(error=np.where(done, trials.error, chance)), repeats


def flags(trials: Trials, divergence: Divergence, repeats: Repeats | None) -> list[str]:
    """Say what a row stands for where it is not a single training."""
    lost = f"{np.count_nonzero(trials.status != 'done')} of {len(trials.status)} rows"
    told = []
    if repeats:
        told.append(
            "a row is the mean of the trainings that did not diverge, and has diverged if more than half of its "
            f"trainings have: {lost}"
        )
    if divergence == "chance":
        told.append(f"rows that diverged have the error of guessing the most frequent class: {lost}")
    return told
