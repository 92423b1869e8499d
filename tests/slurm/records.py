"""Slurm's own records against Snakemake's log: each job that Snakemake finished ran in Slurm, and ended well there."""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from metabo.errors import MetaboError

Record = dict[str, str]


def read(path: Path) -> dict[str, Record]:
    """Return a record per Slurm job, from the file that `jobcomp/filetxt` writes: a line of Key=value per job."""
    lines = [dict(re.findall(r"(\w+)=(\S*)", line)) for line in path.read_text().splitlines() if line.strip()]
    if broken := [line for line in lines if not {"JobId", "Name", "JobState", "ExitCode"} <= line.keys()]:
        raise MetaboError(f"{path}: not a line of jobcomp/filetxt: {broken[0]}")
    return {line["JobId"]: line for line in lines}


def submitted(log: str) -> dict[str, str]:
    """Return the Slurm job of each job that Snakemake handed over, by Snakemake's number."""
    return dict(re.findall(r"^Job (\d+) has been submitted with SLURM jobid (\d+)", log, re.M))


def finished(log: str) -> dict[str, str]:
    """Return the rule of each job that Snakemake finished, by Snakemake's number."""
    return dict(re.findall(r"^Finished jobid: (\d+) \(Rule: (\w+)\)", log, re.M))


def cores_of(log: str, jobs: dict[str, Record], message: str) -> int:
    """Return how many cores Slurm gave the job that Snakemake announced with `message`."""
    found = re.search(rf"^Job (\d+): {re.escape(message)}$", log, re.M)
    if not found or found[1] not in submitted(log):
        raise MetaboError(f"no job '{message}' was handed to Slurm")
    return int(jobs[submitted(log)[found[1]]]["ProcCnt"])


def check(log: str, jobs: dict[str, Record], local: Iterable[str]) -> Counter[str]:
    """Compare a run's log with Slurm's records; `local` are the rules that run beside Snakemake.

    Returns how many jobs of each rule ran in Slurm. Raises MetaboError with everything that does not agree.
    """
    rules, handed, local = finished(log), submitted(log), set(local)
    runs = set(re.findall(r"^SLURM run ID: (\S+)", log, re.M))
    faults = [] if handed else ["no job was handed to Slurm"]
    for job, rule in rules.items():
        what = f"job {job} ({rule})"
        if rule in local:
            faults += [f"{what} ran in Slurm as {handed[job]}, but is one for the login node"] if job in handed else []
        elif job not in handed:
            faults.append(f"{what} finished without Slurm")
        elif handed[job] not in jobs:
            faults.append(f"{what} was handed over as {handed[job]}, of which Slurm has no record")
        else:
            faults += [f"{what}, in Slurm {handed[job]}: {fault}" for fault in _faults(jobs[handed[job]], runs)]
    faults += [f"job {job}, in Slurm {handed[job]}, did not finish" for job in handed.keys() - rules.keys()]
    ours = {number for number, record in jobs.items() if record["Name"] in runs}
    faults += [f"Slurm ran a job {number} that Snakemake does not name" for number in ours - set(handed.values())]
    if faults:
        raise MetaboError("Snakemake's log and Slurm's records do not agree:\n  " + "\n  ".join(faults))
    return Counter(rule for job, rule in rules.items() if job in handed)


def _faults(record: Record, runs: set[str]) -> list[str]:
    wanted = {"JobState": {"COMPLETED"}, "ExitCode": {"0:0"}, "Name": runs}
    return [
        f"{key} is {record[key]}, not {' or '.join(good)}" for key, good in wanted.items() if record[key] not in good
    ]
