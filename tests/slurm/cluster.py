"""A Slurm of two nodes on loopback for as long as a test takes, with its own key, configuration, ports and folders.

Both nodes are this machine: a slurmd each, with a name and a port (Debian builds Slurm with --enable-multiple-slurmd).
They share its cores, memory and files, so this shows how jobs are spread and followed, and not what a network does.

A Slurm or munge that the machine had before is neither asked nor changed: nothing here reads /etc/slurm or /etc/munge.
"""

import os
import re
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from metabo.errors import MetaboError

PACKAGES = ("munge", "slurmctld", "slurmd", "slurm-client")
NODES = ("node1", "node2")
COMMANDS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "sinfo", "scancel", "scontrol")
SEARCHED = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
NO_SERVICES = Path("/usr/sbin/policy-rc.d")
"""While this file says 101, Debian's packages start no service when they are installed."""

# The daemons listen on the addresses given here, not on all (CommunicationParameters): on loopback alone.
# %n is the name of a node. Slurm is told that a node may have more cores than the machine (config_overrides), and waits
# for a busy one (MessageTimeout). proctrack/linuxproc and task/none need no control groups, which a container may lack:
# memory is then enforced by what slurmd samples (OverMemoryKill), and a job sees all cores. The GPU is no device: it
# can be asked for, and Slurm says who had it. The least loaded node comes first (CR_LLN), so that few jobs reach both.
CONFIGURATION = """
ClusterName=metabo-test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctld_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmdParameters=config_overrides
MessageTimeout=100
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory,CR_LLN
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=1,bf_interval=5
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=2
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/jobs.txt
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
MinJobAge=3600
ReturnToService=2
MpiDefault=none
GresTypes=gpu
{nodes}
PartitionName=test Nodes={names} Default=YES MaxTime=INFINITE State=UP
"""
NODE = "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={cores} RealMemory={memory} Gres=gpu:1"


def install() -> None:
    """Install Slurm and munge from Debian's packages if their commands are missing; they stay installed, and stopped.

    Raises MetaboError if this is not root, or if there is no apt-get.
    """
    if os.geteuid() != 0:
        raise MetaboError("Slurm's daemons start jobs as other users, which needs root; say sudo make test-slurm")
    missing = [command for command in COMMANDS if not shutil.which(command, path=SEARCHED)]
    if not missing:
        return
    if not shutil.which("apt-get"):
        raise MetaboError(
            f"{', '.join(missing)} not found, and no apt-get to install {' '.join(PACKAGES)}; install munge and Slurm"
            " as this system does, then say make test-slurm again"
        )
    quiet = {"stdout": subprocess.DEVNULL, "env": os.environ | {"DEBIAN_FRONTEND": "noninteractive"}}
    with _no_services():
        for call in (["update"], ["install", "-y", "--no-install-recommends", *PACKAGES]):
            if subprocess.run(["apt-get", "-qq", *call], **quiet).returncode != 0:
                raise MetaboError(f"apt-get {' '.join(call)} failed (see above); check the network and apt's sources")


@contextmanager
def _no_services() -> Iterator[None]:
    """Let packages start nothing; a policy that is there already is the administrator's and stays."""
    if NO_SERVICES.exists():
        yield
        return
    NO_SERVICES.write_text("#!/bin/sh\nexit 101\n")
    NO_SERVICES.chmod(0o755)
    try:
        yield
    finally:
        NO_SERVICES.unlink()


@contextmanager
def started(folder: Path) -> Iterator[dict[str, str]]:
    """Run a Slurm in `folder` and yield the environment in which sbatch and the others find it.

    All is stopped in the end, jobs first, whatever happened. Raises MetaboError if a daemon does not come up.
    """
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("SLURM_", "SBATCH_"))}
    environment |= {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": f"{folder / 'bin'}{os.pathsep}{SEARCHED}"}
    key = _prepare(folder)
    munge = folder / "munge"
    with ExitStack() as stack:

        def daemon(name: str, *arguments: str) -> subprocess.Popen:
            output = folder / f"{name}{len(list(folder.glob('*.out')))}.out"
            return stack.enter_context(_daemon([name, *arguments], output, environment))

        munged = daemon(
            "munged", "--foreground", "--force", f"--key-file={key}", f"--socket={munge / 'socket'}",
            f"--pid-file={munge / 'pid'}", f"--seed-file={munge / 'seed'}", f"--log-file={folder / 'munged.log'}",
        )  # fmt: skip
        _wait("munged", (munge / "socket").exists, munged, folder)
        ctld = daemon("slurmctld", "-D")
        _wait("slurmctld", lambda: "PARTITION" in _ask(environment, "sinfo"), ctld, folder)
        for name in NODES:
            d = daemon("slurmd", "-D", "-N", name, "-n", "19")  # its jobs leave the machine to others
            _wait("slurmd", partial(_idle, environment, name), d, folder)
        stack.callback(_cancel, environment)  # the last in is the first out: jobs end while the daemons still run
        yield environment


def records(folder: Path) -> Path:
    """Return the file in which this Slurm writes a line for each job that has ended."""
    return folder / "jobs.txt"


def cores() -> int:
    """Return the cores of a node: at least two, so that a job that asks for all has more than another."""
    return max(2, (os.cpu_count() or 1) // len(NODES))


def running(environment: dict[str, str]) -> dict[str, str]:
    """Return the comment of each job that runs."""
    lines = _ask(environment, "squeue", "--states=running", "-h", "-o", "%i %k").splitlines()
    return dict(line.split(maxsplit=1) for line in lines if " " in line)


def cancel(environment: dict[str, str], job: str) -> None:
    """Kill a job, as an administrator would."""
    _ask(environment, "scancel", job)


def gpus(environment: dict[str, str]) -> dict[str, int]:
    """Return how many GPUs each job asked for, ended ones included (this Slurm remembers them for an hour)."""
    lines = _ask(environment, "squeue", "--states=all", "-h", "-O", "JobID:20,tres-per-job:60").splitlines()
    asked = {line.split()[0]: re.search(r"gpu\D*(\d+)", line) for line in lines if line.strip()}
    return {job: int(found[1]) if found else 0 for job, found in asked.items()}


def _idle(environment: dict[str, str], node: str) -> bool:
    return f"{node} idle" in _ask(environment, "sinfo", "-hNo", "%N %T").splitlines()


def _prepare(folder: Path) -> Path:
    """Write the configuration and munge's key; return the key."""
    for part in (folder, *(folder / name for name in ("munge", "state", "bin", *(f"spool/{node}" for node in NODES)))):
        part.mkdir(parents=True, exist_ok=True)
        part.chmod(0o755)  # munge wants a socket that others can reach
    key = folder / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(1024))
    ctld_port, *ports = _free_ports(1 + len(NODES))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20 // len(NODES)
    host = socket.gethostname().split(".")[0]
    nodes = [
        NODE.format(name=name, host=host, port=port, cores=cores(), memory=memory)
        for name, port in zip(NODES, ports, strict=True)
    ]
    text = CONFIGURATION.format(
        folder=folder, host=host, ctld_port=ctld_port, nodes="\n".join(nodes), names=",".join(NODES)
    )
    (folder / "slurm.conf").write_text(text)
    (folder / "gres.conf").write_text("Name=gpu File=/dev/null\n")
    records(folder).touch()
    # Snakemake's plugin (jobstep 0.6.1) hides SLURM_CONF from the srun that it calls inside a job.
    srun = folder / "bin" / "srun"
    srun.write_text(f'#!/bin/sh\nSLURM_CONF={folder}/slurm.conf exec {shutil.which("srun", path=SEARCHED)} "$@"\n')
    srun.chmod(0o755)
    return key


def _free_ports(number: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@contextmanager
def _daemon(command: list[str], output: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen]:
    """Run a daemon in the foreground, in a session of its own (Ctrl-C is for the test alone), and end it."""
    with output.open("w") as stream:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, start_new_session=True
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _ask(environment: dict[str, str], *command: str) -> str:
    """Return what one of Slurm's commands prints; empty if it fails."""
    try:
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30).stdout
    except subprocess.TimeoutExpired:
        return ""


def _cancel(environment: dict[str, str]) -> None:
    """Cancel all jobs and wait until they are gone: what slurmd has started would outlive it."""
    deadline = time.monotonic() + 60
    while (left := _ask(environment, "squeue", "-h", "-o", "%i").split()) and time.monotonic() < deadline:
        _ask(environment, "scancel", *left)
        time.sleep(0.5)


def _wait(name: str, ready: Callable[[], bool], process: subprocess.Popen, folder: Path, seconds: float = 120) -> None:
    """Wait until a daemon is ready. Raises MetaboError with the end of its log if it ends or is late."""
    deadline = time.monotonic() + seconds
    while not ready():
        ended = process.poll() is not None
        if ended or time.monotonic() > deadline:
            happened = "ended" if ended else f"was not ready after {seconds:.0f} s"
            said = [f"{path.name}:\n{path.read_text()[-1500:]}" for path in sorted(folder.glob("*.out"))]
            raise MetaboError("\n".join([f"{name} {happened}; the ends of the daemons' logs:", *said]))
        time.sleep(0.2)
