"""Measure metabo against a textbook implementation, a limit and its peers: one table of ratios and one JSON file.

All implementations of a section are warm in processes of their own, pinned to the same core, and do one piece of work
each in turn (A B C A B C ...), so that a slow moment of the machine meets all of them.
"""

import argparse
import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import report
from problem import QUICK, Sizes
from sections import SECTIONS

from metabo.compute.cores import own_cores, own_process
from metabo.records.files import write_text

HERE = Path(__file__).resolve().parent


class Worker:
    """One implementation in its process, whose errors go to the common standard error."""

    def __init__(self, section: str, case: str, quick: bool) -> None:
        command = [sys.executable, str(HERE / "worker.py"), section, case, *(["--quick"] if quick else [])]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ready = self.read()

    def read(self) -> dict[str, Any]:
        """Return the next answer, {"status": "failed"} if the process ended without one."""
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"status": "failed"}

    def turn(self) -> dict[str, Any]:
        """Let it do its work once; return {"ms": milliseconds per unit} or the failure."""
        try:
            self.process.stdin.write("go\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return {"status": "failed"}
        return self.read()

    def finish(self) -> dict[str, Any]:
        """Return its last answer: its peak memory, or the failure."""
        self.process.stdin.close()
        return self.read()

    def stop(self) -> None:
        """End the process, whatever it does."""
        self.process.kill()
        self.process.wait()


def measure(section: str, cases: list[str], sizes: Sizes, quick: bool) -> report.Record:
    """Measure the given cases of one section in turns."""
    described = SECTIONS[section]
    shown = {key: described.get(key) for key in ("unit", "goal_ms", "reference")}
    words = {name: ", ".join(map(str, v)) if isinstance(v, tuple) else v for name, v in asdict(sizes).items()}
    words["layers"] = words["layers"].replace(", ", "-")
    results: dict[str, report.Record] = {}
    workers: dict[str, Worker] = {}
    try:
        for case in cases:
            print(f"{section}: {case}", file=sys.stderr, flush=True)
            worker = workers[case] = Worker(section, case, quick)
            results[case] = {"label": described["cases"][case].format(**words)} | worker.ready
        take_turns(results, workers, sizes.rounds)
    finally:
        for worker in workers.values():
            worker.stop()
    grown = list(getattr(sizes, described["sizes"])) if "sizes" in described else None
    report.summarise(results, described["reference"], grown)
    within = report.within(results, described["reference"], described.get("within"))
    return {"title": described["title"].format(**words)} | shown | {"within": within, "sizes": grown, "cases": results}


def take_turns(results: dict[str, report.Record], workers: dict[str, Worker], rounds: int) -> None:
    """Let the workers that are ready do their work in turn; put times, memory and failures into `results`."""
    ready = {case: worker for case, worker in workers.items() if results[case]["status"] == "ok"}
    for case in ready:
        results[case]["ms"] = []
    for _ in range(rounds):
        for case, worker in list(ready.items()):
            answer = worker.turn()
            if "ms" in answer:
                results[case]["ms"].append(answer["ms"])
            else:
                results[case] = {"label": results[case]["label"]} | answer
                ready.pop(case).stop()
    for case, worker in ready.items():
        results[case] |= worker.finish()


def find_gpu() -> str | None:
    """Return the kind of accelerator that JAX would use, None if that is the CPU."""
    code = "import jax; d = jax.devices()[0]; print('' if d.platform == 'cpu' else d.device_kind)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    return done.stdout.strip() or None


def chosen(only: list[str], gpu: str | None) -> dict[str, list[str]]:
    """Return the cases to measure by section. `only`: "section" or "section/case", none for all."""
    every = {f"{s}/{c}": (s, c) for s, section in SECTIONS.items() for c in section["cases"]}
    for word in only:
        if word not in every and word not in SECTIONS:
            sys.exit(f"--only: unknown section or case '{word}'. Valid: {', '.join([*SECTIONS, *every])}")
    picked: dict[str, list[str]] = {}
    for name, (section, case) in every.items():
        wanted = not only or name in only or section in only
        if wanted and (gpu or not case.endswith("_gpu")):
            picked.setdefault(section, []).append(case)
    return picked


def main(arguments: list[str] | None = None) -> int:
    """Run, print the table, write the file. Returns 1 if a case failed; a peer that is not installed is no failure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="toy sizes: shows that everything runs, in a minute")
    parser.add_argument("--only", nargs="+", default=[], metavar="SECTION[/CASE]", help="measure these only")
    parser.add_argument("--rounds", type=int, help="turns of each implementation")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder of the JSON file")
    given = parser.parse_args(arguments)
    sizes = QUICK if given.quick else Sizes()
    sizes = sizes if given.rounds is None else replace(sizes, rounds=given.rounds)
    own_process()
    gpu = find_gpu()
    cases = chosen(given.only, gpu)
    record = report.environment(gpu) | {"quick": given.quick, "sizes": asdict(sizes)}
    record["load_before"] = report.load_average()
    granted = own_cores(1, gpu=1)  # the workers inherit this core; JAX_PLATFORMS stays as it is for the GPU's sake
    record |= {"threads": granted["threads"], "exclusive_cores": granted["exclusive"]}
    record["sections"] = {name: measure(name, listed, sizes, given.quick) for name, listed in cases.items()}
    record["load_after"] = report.load_average()
    print(report.table(record))
    target = given.out / report.file_name(record)
    write_text(target, json.dumps(record, indent=1, allow_nan=False) + "\n")
    print(f"\nwritten: {os.path.relpath(target)}")
    cases = [case for section in record["sections"].values() for case in section["cases"].values()]
    return int(any(case["status"] == "failed" for case in cases))


if __name__ == "__main__":
    sys.exit(main())
