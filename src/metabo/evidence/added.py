"""What `metabo evidence add` says that it did."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from metabo.evidence.manifest import ListedFile

SHOWN = 3


class Changes(NamedTuple):
    """The numbers of files that are new, that have other content than before, and that are there no more."""

    new: int
    replaced: int
    deleted: int

    @classmethod
    def between(
        cls, was: Mapping[str, ListedFile], listed: Mapping[str, ListedFile], gone: Collection[str]
    ) -> "Changes":
        """Compare the files that were recorded with those that are written now, and with those that were deleted."""
        other = [name for name, one in listed.items() if name in was and was[name] != one]
        return cls(len(listed.keys() - was.keys()), len(other), len((set(gone) & was.keys()) - listed.keys()))


class Added(NamedTuple):
    """What was added: the folder, the number of files (the manifest apart) and bytes that it has now, what changed of
    them, the number of jobs whose prior losses could not be computed, of jobs whose files are too large to be kept, of
    jobs that a checkout with changes ran with the code of a commit, and of runs of BO whose tables, and of jobs whose
    priors were left out."""

    folder: Path
    files: int
    bytes: int
    changes: Changes
    without_loss: int
    not_kept: int
    with_changes: int = 0
    without_table: int = 0
    without_prior: int = 0
    earlier: Sequence[str] = ()
    unfinished: int = 0

    @property
    def line(self) -> str:
        """One line for the user."""
        lost = f"; {self.without_loss} files of priors without losses (their table is not here)"
        left = f"; of {self.not_kept} jobs the records alone, since what they made is too large"
        also = f"; {self.with_changes} results of a checkout with changes, whose code a commit has"
        bare = f"; of {self.without_table} runs of BO the records alone"
        rest = lost * (self.without_loss > 0) + left * (self.not_kept > 0) + also * (self.with_changes > 0)
        rest += bare * (self.without_table > 0)
        rest += f"; of {self.without_prior} files of priors the records alone" * (self.without_prior > 0)
        rest += f"; of {self.unfinished} unfinished jobs what they have finished" * (self.unfinished > 0)
        first = ", ".join(self.earlier[:SHOWN])
        first += f" and {len(self.earlier) - SHOWN} more" if len(self.earlier) > SHOWN else ""
        rest += f"; not judged in this run, so as judged before: {first}" if self.earlier else ""
        new, replaced, deleted = self.changes
        changed = f"{new:,} new, {replaced:,} replaced, {deleted:,} deleted"
        return f"{self.folder}: {changed}; {self.files:,} files, {self.bytes / 1e6:.1f} MB{rest}"
