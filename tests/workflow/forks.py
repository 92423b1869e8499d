"""Snakemake from one process that has imported it and forks for each command: importing it takes a third of a plan.

Run as a script, this is that process; `Forks` is how tests use it. A command begins with nothing of this project
imported, in a folder, with an environment and with arguments of its own, as `python -m snakemake` would. It differs in
that all commands have one hash seed, and that a command has ended when its own process has: what it left behind in the
background is not waited for.
"""

import gc
import json
import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

SECONDS = 1200
"""How long a command may take."""


class Forks:
    """A process that forks for each command. It starts with the first one."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None

    def run(self, where: Path, arguments: list[str], environment: dict[str, str], output: Path) -> int:
        """Run Snakemake in a folder, its output in a file; return its exit status. Raises TimeoutError after SECONDS,
        and ChildProcessError if this process was killed. Whatever is raised, all that was started is killed."""
        output.write_text("")
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, __file__], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                start_new_session=True, env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
            )  # fmt: skip
        asked = {"where": str(where), "arguments": arguments, "environment": environment, "output": str(output)}
        try:
            print(json.dumps(asked), file=self.process.stdin, flush=True)
            if not select.select([self.process.stdout], [], [], SECONDS)[0]:
                raise TimeoutError(f"snakemake {' '.join(arguments)}: not ended after {SECONDS} s")
            if not (answer := self.process.stdout.readline()):
                raise ChildProcessError(f"snakemake {' '.join(arguments)}: the process that forks was killed")
        except BaseException:  # also when a test run is interrupted
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.end()
            raise
        return int(answer)

    def end(self) -> None:
        """End the process."""
        if self.process is not None:
            with suppress(BrokenPipeError):
                self.process.communicate()
            self.process = None


def serve() -> None:
    """Fork for each command; the copy returns, and goes on as Snakemake."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        asked = json.loads(line)
        if pid := os.fork():
            status = os.waitpid(pid, 0)[1]
            print(os.waitstatus_to_exitcode(status), file=answers, flush=True)
            continue
        answers.close()
        become(**asked)
        return
    os._exit(0)


def become(where: str, arguments: list[str], environment: dict[str, str], output: str) -> None:
    """Take over folder, environment, arguments and output of a command."""
    os.chdir(where)
    os.environ.clear()
    os.environ.update(environment)
    with open(output, "w") as written, open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(written.fileno(), 1)
        os.dup2(written.fileno(), 2)
    sys.argv[1:] = arguments
    sys.path[0] = where


if __name__ == "__main__":
    import snakemake
    from snakemake import cli

    cli.get_argument_parser()  # imports the plugins
    assert not any(name.partition(".")[0] == "metabo" for name in sys.modules)
    sys.argv[0] = str(Path(snakemake.__file__).with_name("__main__.py"))
    gc.collect()
    gc.freeze()
    serve()
    sys.exit(cli.main())
