"""Slurm's own records against Snakemake's log: each job that Snakemake finished ran in Slurm, and ended well there.

Snakemake names a submission of several jobs by none of them. Which jobs it carried is in what Slurm caught of it, where
the Snakemake inside announces each job with the same message.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from metabo.errors import MetaboError

Record = dict[str, str]


def read(path: Path) -> dict[str, Record]:
    """Return a record per Slurm job, from the file that `jobcomp/filetxt` writes: a line of Key=value per job."""
    lines = [dict(re.findall(r"(\w+)=(\S*)", line)) for line in path.read_text().splitlines() if line.strip()]
    if broken := [line for line in lines if not {"JobId", "Name", "JobState", "ExitCode"} <= line.keys()]:
        raise MetaboError(f"{path}: not a line of jobcomp/filetxt: {broken[0]}")
    return {line["JobId"]: line for line in lines}


def outputs(folder: Path) -> dict[str, str]:
    """Return what Slurm caught of each of its jobs, below Snakemake's folder of logs."""
    return {path.stem: path.read_text() for path in folder.glob("**/*.log")}


def submitted(log: str) -> list[str]:
    """Return the Slurm jobs that Snakemake submitted, those of repeated attempts included."""
    return re.findall(r"^Job \S+ has been submitted with SLURM jobid (\d+)", log, re.M)


def carried(log: str, texts: Mapping[str, str]) -> dict[str, str]:
    """Return the Slurm job that carried each job of Snakemake's, by Snakemake's number; of several, the last."""
    numbers, found = {message: number for number, message in _announced(log)}, {}
    for slurm in sorted(submitted(log), key=int):
        found |= {numbers[message]: slurm for _, message in _announced(texts.get(slurm, "")) if message in numbers}
    return found


def finished(log: str) -> dict[str, str]:
    """Return the rule of each job that Snakemake finished, by Snakemake's number."""
    return dict(re.findall(r"^Finished jobid: (\d+) \(Rule: (\w+)\)", log, re.M))


def cores_of(log: str, texts: Mapping[str, str], jobs: Mapping[str, Record], message: str) -> int:
    """Return how many cores Slurm gave the job that Snakemake announced with `message`."""
    numbers = [number for number, said in _announced(log) if said == message]
    if not numbers or numbers[0] not in (found := carried(log, texts)):
        raise MetaboError(f"no job '{message}' was handed to Slurm")
    return int(jobs[found[numbers[0]]]["ProcCnt"])


def check(
    log: str,
    texts: Mapping[str, str],
    jobs: Mapping[str, Record],
    local: Iterable[str],
    cancelled: Collection[str] = (),
) -> Counter[str]:
    """Compare a run's log with Slurm's records; `local` are the rules that run beside Snakemake, `cancelled` the Slurm
    jobs that somebody killed.

    Returns how many jobs of each rule ran in Slurm. Raises MetaboError with everything that does not agree.
    """
    rules, handed, local = finished(log), carried(log, texts), set(local)
    runs, sent = set(re.findall(r"^SLURM run ID: (\S+)", log, re.M)), submitted(log)
    faults = [] if sent else ["no job was handed to Slurm"]
    for job, rule in rules.items():
        what = f"job {job} ({rule})"
        if rule in local:
            faults += [f"{what} ran in Slurm as {handed[job]}, but is one for the login node"] if job in handed else []
        elif job not in handed:
            faults.append(f"{what} finished without Slurm")
        elif handed[job] in cancelled:
            faults.append(f"{what} finished, but was in Slurm {handed[job]}, which was killed, and in no other")
    for slurm in sent:
        state = "CANCELLED" if slurm in cancelled else "COMPLETED"
        faults += [f"Slurm {slurm}: {fault}" for fault in _faults(jobs.get(slurm), runs, state)]
    faults += [f"job {job}, in Slurm {handed[job]}, did not finish" for job in handed.keys() - rules.keys()]
    ours = {number for number, record in jobs.items() if record["Name"] in runs}
    faults += [f"Slurm ran a job {number} that Snakemake does not name" for number in ours - set(sent)]
    if faults:
        raise MetaboError("Snakemake's log and Slurm's records do not agree:\n  " + "\n  ".join(faults))
    return Counter(rule for job, rule in rules.items() if job in handed)


def _announced(log: str) -> list[tuple[str, str]]:
    """Return the jobs that a log announces: number and message."""
    return re.findall(r"^ *Job (\d+): (.*)$", log, re.M)


def _faults(record: Record | None, runs: set[str], state: str) -> list[str]:
    if record is None:
        return ["Slurm has no record of it"]
    wanted = {"JobState": {state}, "Name": runs} | ({"ExitCode": {"0:0"}} if state == "COMPLETED" else {})
    return [
        f"{key} is {record[key]}, not {' or '.join(good)}" for key, good in wanted.items() if record[key] not in good
    ]
