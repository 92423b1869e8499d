"""What every stage command does around its work: arguments, cores, clear errors, the sidecar."""

import argparse
import importlib
import json
import os
import platform
import re
import sys
import zipfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

from metabo.compute import checkpoint, cores, orphans, progress
from metabo.errors import ConfigError, MetaboError
from metabo.plan import codegraph, digests, preflight, typed
from metabo.records import files, provenance
from metabo.records.checksums import checksums
from metabo.records.files import Json

if TYPE_CHECKING:  # a stage imports it once its cores are pinned
    import pandas as pd

Spec = TypeVar("Spec")
Outcome = Mapping[str, object]
"""Extra fields of the sidecar, e.g. {"seeds": [0, 1], "loss_last": [...]}.

The key "outputs" (a list of paths) adds files that the stage wrote besides its --out options.
"""


def main(
    stage: str,
    add_arguments: Callable[[ArgumentParser], None] | None,
    work: Callable[[Namespace, Spec], Outcome],
    kind: Callable[..., Spec],
    roots: Callable[[Namespace, Spec], list[str]] | None = None,
    argv: list[str] | None = None,
) -> None:
    """Run one stage: parse, pin the cores, check the inputs, work, write the sidecar. A stage that was stopped goes on
    from what its loops had finished (`metabo.compute.checkpoint`).

    Every stage has --spec JSON, --out PATH, --threads N, --gpu 0|1, --code DIGEST and --sidecar PATH (default: --out
    with .json).
    `add_arguments` (None: it reads no file) adds the inputs, named --in-*; options named --in-* and --out* enter the
    sidecar with checksums.
    `work` imports what it needs itself, so that nothing imports JAX before the cores are pinned.
    `kind`: of the spec that --spec gives it (metabo.plan.specs).
    `roots` names the modules where the stage's code starts, if they are not `codegraph.stage_roots`.
    A MetaboError ends the process with one clear message and exit status 1.
    """
    parser = ArgumentParser(prog=f"python -m metabo.stages.{stage}", conflict_handler="resolve")
    parser.add_argument("--spec", type=_spec, required=True, help="the settings that this job reads, as JSON")
    parser.add_argument("--out", required=True, help="result file")
    parser.add_argument("--threads", type=int, default=1, help="cores to pin")
    parser.add_argument("--gpu", type=int, choices=(0, 1), default=0, help="1: JAX may use an accelerator")
    parser.add_argument("--code", help="digest of the code that the job was planned with (default: any)")
    parser.add_argument("--sidecar", help="provenance file (default: --out with the suffix .json)")
    if add_arguments:
        add_arguments(parser)
    args = parser.parse_args(argv)
    try:
        spec = typed.read(kind, args.spec, f"--spec of stage {stage}:")
        _run(
            stage,
            args,
            lambda: work(args, spec),
            roots(args, spec) if roots else codegraph.stage_roots(stage, args.spec),
        )
    except MetaboError as error:
        _stop(stage, _located(error, args.spec))
    except OSError as error:
        if full := files.unwritable(error.filename or _paths(args, "out")[0], error):
            _stop(stage, full)
        raise


def raised(table: "pd.DataFrame") -> int:
    """Return the number of steps whose covariance needed more on its diagonal than the usual jitter, and print it."""
    more = table.loc[table["jitter"] > 0, "jitter"]
    if len(more):
        print(
            f"{len(more)} of {len(table)} steps: the covariance needed up to {more.max():.2g} more on its diagonal "
            "to be factorised (column 'jitter'); near or repeated points with little noise do that",
            flush=True,
        )
    return len(more)


_OF_METHOD = re.compile(r"(config key '(policy|online|methods)\b|model key ')")
"""How a fault in the settings of a method begins: the code that reads them knows neither method nor file."""


def _located(error: MetaboError, spec: Mapping[str, Json]) -> MetaboError:
    """Return an error, with method and file where it is one of the method's settings."""
    if "method" not in spec or not isinstance(error, ConfigError) or not _OF_METHOD.match(str(error)):
        return error
    *lines, last = str(error).splitlines()
    return ConfigError(
        *lines,
        f"{last} (settings of '{spec['method']}' in src/metabo/plan/methods.yaml, or under 'methods' in config.yaml)",
    )


def _stop(stage: str, error: MetaboError) -> NoReturn:
    print(f"{stage}: {error}", file=sys.stderr)
    raise SystemExit(1) from None


def _run(stage: str, args: Namespace, work: Callable[[], Outcome], roots: list[str]) -> None:
    started = provenance.start()
    _write_archives_alike()
    progress.connect(args.out if isinstance(args.out, str) else stage)
    preflight.tell_at_work()
    orphans.end_with_run()
    cores.own_process()
    granted = cores.own_cores(args.threads, args.gpu)
    code = codegraph.files(roots)
    depends = codegraph.inputs(roots)
    if args.code:
        digests.require_planned(args.code, depends)
    if codegraph.uses(code, "jax"):
        provenance.measure_compilation()
    if args.gpu:
        _require_accelerator()
    inputs = _paths(args, "in_")
    for path in inputs:
        if not Path(path).exists():
            raise MetaboError(f"{path}: input file does not exist; make it first")
    before = checksums(inputs)
    checkpoint.begin(_identity(stage, args, before, digests.together(depends)), _paths(args, "out")[0])
    outcome = dict(work())
    made = outcome.pop("outputs", ())
    assert isinstance(made, list | tuple)
    provenance.write_sidecar(
        args.sidecar or Path(args.out).with_suffix(".json"),
        stage=stage,
        spec=args.spec,
        inputs=before,
        outputs=sorted({*_paths(args, "out"), *map(str, made)}),
        code=digests.together(code),
        depends=digests.together(depends),
        started=started,
        granted=granted,
        extra=outcome,
        logs=_logs(args),
    )
    checkpoint.end()


def _identity(stage: str, args: Namespace, inputs: Mapping[str, str], depends: str) -> str:
    """Return what two attempts of a job must share if one is to go on from the other: all that its record has of what
    can change a result, but for the processor, which `checkpoint` notes."""
    versions = {name: metadata.version(name) for name in provenance.PACKAGES} | {"python": platform.python_version()}
    flags = {name: os.environ.get(name, "") for name in ("XLA_FLAGS", "NPY_DISABLE_CPU_FEATURES")}
    computes = [versions, flags, args.threads, args.gpu, platform.machine()]
    return files.canonical([stage, args.spec, _paths(args, "out"), inputs, depends, computes])


def _write_archives_alike() -> None:
    """Make this process write the bytes that Python 3.11.4 and later write for a member of an archive that may grow
    large, as those of `files.save_npz` may (python/cpython#103861).

    Before, a member had another version and its sizes in another place, so that the same arrays had another checksum:
    recorded results would not be found again. It is here because the code of `records.files` is part of every recorded
    result.
    """
    if sys.version_info >= (3, 11, 4):
        return
    original, sizes = zipfile.ZipInfo.FileHeader, slice(18, 26)

    def header(self: zipfile.ZipInfo, zip64: bool | None = None) -> bytes:
        if not zip64:
            return original(self, zip64)
        self.create_version = self.extract_version = max(zipfile.ZIP64_VERSION, self.extract_version)
        written = original(self, zip64)
        return written[: sizes.start] + b"\xff" * 8 + written[sizes.stop :]

    zipfile.ZipInfo.FileHeader = header


def _logs(args: Namespace) -> list[Path]:
    """Return the logs of the job: its output, and the executed copy of a notebook."""
    copy = Path(args.scratch) if getattr(args, "scratch", None) else None
    return [path for path in (provenance.own_log(), copy) if path and path.is_file()]


def _spec(text: str) -> dict[str, Json]:
    try:
        spec = json.loads(text)
    except json.JSONDecodeError as error:
        raise argparse.ArgumentTypeError(f"not JSON: {error}") from error
    if not isinstance(spec, dict):
        raise argparse.ArgumentTypeError(f"must be a JSON object, got {text}")
    return spec


def _paths(args: Namespace, prefix: str) -> list[str]:
    """List the files given by the options whose name starts with `prefix` (an option may hold several)."""
    values = [value for name, value in vars(args).items() if name.startswith(prefix) and value]
    return [str(path) for value in values for path in (value if isinstance(value, list) else [value])]


def _require_accelerator() -> None:
    if importlib.import_module("jax").default_backend() == "cpu":
        raise ConfigError(
            "config key 'device' is gpu, but JAX finds no accelerator; install the extra 'cuda' or set device: cpu"
        )
