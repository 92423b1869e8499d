"""The progress and the end of a run: the share of the work that is done and the time left, from typical times of jobs,
scaled by the times that the finished ones took.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

ALL, OWN = 300.0, 600.0
"""Seconds of typical work after which measurements count as much as expectations: for the machine's speed, and for a
group's deviation from it. In a small run, at most the shares `EARLY` of its typical work."""
EARLY = 0.1, 0.2
OVERDUE = 0.25
"""The time left of a job that takes longer than expected, as a share of the time that it has taken so far."""
BUSY = 600.0
"""Core-seconds of a run after which its measured share of busy cores counts as much as the assumption that all are
busy."""


class Expected(NamedTuple):
    """A job ahead: its group, its typical seconds, its cores, and the jobs that it waits for."""

    group: str
    seconds: float
    cores: int = 1
    after: Collection[int] = ()


@dataclass
class Ahead:
    """The jobs of a run and their states. All times are seconds of one clock."""

    jobs: Mapping[int, Expected]
    cores: int
    began: float
    started: dict[int, float] = field(default_factory=dict)
    taken: dict[int, float] = field(default_factory=dict)
    failed: set[int] = field(default_factory=set)

    def start(self, job: int, now: float) -> None:
        """Record that a job starts, possibly again after a failure."""
        self.failed.discard(job)
        self.started[job] = now

    def finish(self, job: int, now: float) -> None:
        """Record that a job has succeeded."""
        if job in self.jobs:
            self.taken[job] = now - self.started.pop(job, now)

    def fail(self, job: int) -> None:
        """Record that a job has failed. It and the jobs that wait for it are no longer ahead."""
        self.started.pop(job, None)
        self.failed.add(job)

    def lost(self) -> set[int]:
        """Return the jobs that have failed and those that wait for them."""
        lost = self.failed & self.jobs.keys()
        while more := {job for job, one in self.jobs.items() if job not in lost and not lost.isdisjoint(one.after)}:
            lost |= more
        return lost

    def speeds(self) -> dict[str, float]:
        """Return, for each group, the factor by which its jobs take longer here than on the machine of the typical
        times."""
        spent: dict[str, float] = {}
        typical: dict[str, float] = {}
        for job, seconds in self.taken.items():
            group = self.jobs[job].group
            spent[group] = spent.get(group, 0.0) + seconds
            typical[group] = typical.get(group, 0.0) + self.jobs[job].seconds
        whole = sum(one.seconds for one in self.jobs.values())
        every, own = (min(most, share * whole) for most, share in zip((ALL, OWN), EARLY, strict=True))
        machine = (every + sum(spent.values())) / (every + sum(typical.values())) if whole else 1.0
        groups = {one.group for one in self.jobs.values()}
        return {g: (own * machine + spent.get(g, 0.0)) / (own + typical.get(g, 0.0)) if whole else 1.0 for g in groups}

    def share(self, now: float) -> float:
        """Return the share of the work that is done, in [0, 1]."""
        left = self._left(now)
        done, ahead = self._spent(now), sum(seconds * self.jobs[job].cores for job, seconds in left.items())
        return done / (done + ahead) if ahead > 0 else 1.0

    def left(self, now: float) -> float:
        """Return the seconds until the run ends: the time for all cores to do the remaining jobs or, if that is longer,
        the time of the longest chain of jobs that wait for each other."""
        left = self._left(now)
        if not left:
            return 0.0
        work = sum(seconds * self.jobs[job].cores for job, seconds in left.items())
        busy = min(1.0, (BUSY + self._spent(now)) / (BUSY + self.cores * (now - self.began)))
        return max(work / (self.cores * busy), _chain(left, self.jobs))

    def _spent(self, now: float) -> float:
        """Return the core-seconds that jobs have used."""
        running = {job: now - at for job, at in self.started.items() if job in self.jobs}
        return sum(seconds * self.jobs[job].cores for job, seconds in [*self.taken.items(), *running.items()])

    def _left(self, now: float) -> dict[int, float]:
        """Return the seconds that each unfinished job will still take here."""
        speeds, lost = self.speeds(), self.lost()
        left = {}
        for job, one in self.jobs.items():
            if job not in self.taken and job not in lost:
                seconds = speeds[one.group] * one.seconds
                ran = now - self.started.get(job, now)
                left[job] = max(seconds - ran, OVERDUE * ran)
        return left


def _chain(left: Mapping[int, float], jobs: Mapping[int, Expected]) -> float:
    """Return the seconds of the longest chain of unfinished jobs, each of which waits for the previous one."""
    ends: dict[int, float] = {}
    for job in left:
        path = [job]
        while path:
            ahead = [other for other in jobs[path[-1]].after if other in left and other not in ends]
            if ahead:
                path.extend(ahead)
                continue
            last = path.pop()
            ends[last] = left[last] + max((ends[other] for other in jobs[last].after if other in ends), default=0.0)
    return max(ends.values(), default=0.0)
