# Names shared by the rules: result paths, checked configuration, code inputs, start and target checks.
import gc
import os
import re
import sys
from functools import cache

from snakemake.cli import get_argument_parser
from snakemake.io import IOFile

from metabo.errors import MetaboError
from metabo.plan import broken

# A plan has millions of objects, which Python's collector would go through again and again while it is made.
gc.set_threshold(100_000, 50, 100)

# Where it finds AVX-512, NumPy rounds logarithms and exponentials otherwise. Without it, tables that are read (not those
# that are collected by training) are the same on all x86-64 machines, and recorded results (evidence/), which name their
# tables by checksum, can be verified and restored there. What a user disables too stays disabled.
GIVEN = os.environ.get("NPY_DISABLE_CPU_FEATURES", "").replace(",", " ").split()
DISABLED = dict.fromkeys(["X86_V4", "AVX512_ICL", "AVX512_SPR", *GIVEN])
os.environ["NPY_DISABLE_CPU_FEATURES"] = " ".join(DISABLED)


def stop(error):
    """End Snakemake with one clear line: an error that it shows itself has its frames around it, or is not shown."""
    if line := globals().get("RUN_LINE"):  # what was to be run says nothing about it
        line.forget()
    print(f"metabo: {error}", file=sys.stderr)
    raise SystemExit(1) from None


def or_stop(work, *args):
    """Call `work`; a MetaboError stops Snakemake. Not for `onstart`: Snakemake would leave its folder locked."""
    try:
        return work(*args)
    except MetaboError as error:
        stop(error)


def or_fail(work, *args):
    """Call `work`; raise a MetaboError as an error of the workflow, and print it where `-q all` would hide it."""
    try:
        return work(*args)
    except MetaboError as error:
        if "ALL" in {kind.name for kind in workflow.output_settings.quiet or ()}:
            print(error, file=sys.stderr)
        raise WorkflowError(str(error)) from None


try:  # the plan reads tables in our modules, and is edited itself: a fault there is told without a traceback too
    from metabo.plan import catalogue, codegraph, collectors, digests, preflight, registry, specs, splits
    from metabo.plan import config as settings
    from metabo.plan.chain import parameters as notebook_parameters  # Snakemake has a global `chain` here
    from metabo.plan.names import no_result, no_target
    from metabo.plan.runs import ACQUISITIONS, OWN, SCORED
    from metabo.plan.trainings import prior_of as trained_for
    from metabo.plan.trainings import trainings
    from metabo.plan.typed import plain
    from metabo.plan.yaml_files import read_yaml
    from metabo.records import inventory
    from metabo.records.files import canonical, digest, remove_scratch
except MetaboError as error:
    stop(error)
except Exception as error:
    if (said := broken.told(error)) is None:
        raise
    stop(said)

if not Path("config.yaml").exists():
    stop(f"no config.yaml in {Path.cwd()}; call snakemake in the project's folder, or add --directory")
or_stop(read_yaml, Path("config.yaml"))  # Snakemake reads it too, but says neither line nor column of a fault


configfile: "config.yaml"


CATALOGUE = or_stop(catalogue.load)
SETTINGS = or_stop(settings.check, config, catalogue.papers(CATALOGUE))
or_stop(settings.check_scale, SETTINGS.scale, [Path(path).name for path in workflow.configfiles])

OUT = f"results/{SETTINGS.scale}"
_given = [
    os.path.relpath(path) for path in workflow.configfiles if Path(path).resolve() != Path("config.yaml").resolve()
]
OVERLAYS = ["--configfile", *_given] if _given else []
or_stop(preflight.require_writable, Path(OUT))
or_stop(digests.record)
GPU = 1 if SETTINGS.device == "gpu" else 0
ARTEFACTS = catalogue.artefacts(SETTINGS, CATALOGUE)
ENABLED = or_stop(catalogue.enabled, SETTINGS, ARTEFACTS)
METHODS = registry.methods()
BENCHMARKS = registry.benchmarks()


wildcard_constraints:
    benchmark="|".join(BENCHMARKS),
    split="|".join(splits.names()),
    method="|".join(METHODS),
    acquisition="|".join(ACQUISITIONS),


def written(spec):
    """Return a spec as a job takes it."""
    return canonical(plain(spec))


def made_with(spec):
    """Return the parameters of a rule for the spec of its jobs, a function of the wildcards: the spec as text, and a check.

    The check stops the plan at a result that was made with another spec if Snakemake has no note of that, so that it
    would take the result for the one that is wanted. It is a parameter of its own, since one that depends on the output
    is not compared with that of the last run.
    """

    def text(wildcards):
        return written(spec(wildcards))

    def checked(wildcards, output):
        noted = any(workflow.persistence.metadata(IOFile(path)) or preflight.is_marked(path) for path in output)
        if workflow.is_main_process and not noted and not forced():
            or_stop(preflight.require_same_spec, output, text(wildcards))
        return ""

    return {"spec": text, "checked": checked}


def forced():
    """Tell whether the user asks for jobs to be run again: which ones, this cannot know."""
    return workflow.dag_settings.forceall or bool(workflow.dag_settings.forcerun) or workflow.dag_settings.forcetargets


def code(stage, spec):
    """Return the file that stands for the package files that a job of this stage runs."""
    return or_stop(lambda: code_of(*codegraph.stage_roots(stage, spec)))


@cache  # the jobs of one method run the same modules
def code_of(*roots):
    return digests.listed(codegraph.inputs(roots))


def planned(wildcards, input):
    """Return the digest of the code that a job is planned with: the job stops if it finds other code."""
    return digests.value_of(input.code)


def relative(paths):
    return [os.path.relpath(path) for path in paths]


def memory(wildcards):
    """Return MiB for a job on this benchmark."""
    return registry.benchmark(wildcards.benchmark).memory_mb


def every_core():
    """Return the threads of a job that has this machine to itself.

    On a cluster the machine is a node, whose cores are not known here: the job asks Slurm for all of it (`slurm_extra`)
    and counts as one core.
    """
    here = workflow.local_exec and not workflow.remote_exec
    return workflow.cores if here else 1


@cache
def trained(benchmark, split):
    return trainings(SETTINGS, benchmark, split)


@cache
def prior_of(benchmark, split, method):
    """Return the (split, method) whose training makes the priors of a method on a split."""
    return trained_for(SETTINGS, benchmark, split, method, lambda config, *place: trained(*place))


def prior_file(benchmark, split, method):
    """Return the priors of a method on a split; those of equal settings are one file, so they are trained once."""
    place, trainer = prior_of(benchmark, split, method)
    return f"{OUT}/priors/{benchmark}/{place}/{trainer}.npz"


def fits_file(benchmark, split, method):
    """Return the priors that the training of a method starts from, those of another method on the same split."""
    fits = registry.method(method).fits
    return prior_file(benchmark, split, fits) if fits else []


def prior_files(artefact):
    runs = (*artefact.trajectories, *artefact.evaluations, *artefact.online)
    return sorted({prior_file(artefact.benchmark, run.split, run.method) for run in runs})


def table_files(artefact, *kinds):
    """Return the tables of some kinds (trajectories, evaluations, ...) that an artefact reads."""
    return [f"{OUT}/{path}" for kind in kinds for path in artefact.files.get(kind, [])]


def start_run():
    """Refuse a second run in this folder, and damaged results; called before the first job, not in a dry run."""
    if workflow.is_main_process:
        alone = or_fail(preflight.claim_folder)
        if alone and workflow.local_exec:
            if left := remove_scratch([*inventory.walk(Path("results"))[0], *Path(".cache").rglob(".*")]):
                logger.info(f"removed {left} unfinished files of killed jobs", extra={"tell": True})
        needed = needed_files()
        or_fail(preflight.require_intact, needed)
        if future := preflight.no_future(needed):
            said = f"{future} files were dated in the future; they have the present time now"
            logger.info(said, extra={"tell": True})
        if not workflow.local_exec:
            jobs, sent = submissions()
            logger.info(f"{jobs} jobs go to the cluster in {sent} submissions")
        begin_line()
    if workflow.local_exec:
        # Its limit of starts per second makes Snakemake (9.27) look at every ready job each second, once more for each
        # job that has finished: after 130 jobs that took all of a core. On a cluster it spares the queue.
        workflow.scheduler.job_rate_limiter = None


def needed_files():
    """Return the files that the jobs ahead read and that no job ahead makes: they stay as they are."""
    ahead = [job for job in workflow.dag.needrun_jobs() if not job.is_norun]
    made = {path for job in ahead for path in job.output}
    return sorted({path for job in ahead for path in job.input if path not in made and os.path.isfile(path)})


def end_failed_run():
    """Say when the disk is full: the logs of the jobs may have had no room to."""
    try:
        preflight.require_writable(Path(OUT))
    except MetaboError as error:
        logger.error(str(error))


def refuse_target(name):
    """Stop at a target that is neither a rule nor a result file, and name the nearest ones that exist."""
    raise no_target(name, [rule.name for rule in workflow.rules if not rule.has_wildcards()])


def refuse_paths(command):
    """Stop at a target in Snakemake's command that is the path of no result and that no rule makes, and name the nearest
    one that some makes. Snakemake itself knows its targets only once it has read all rules."""
    if "snakemake" not in Path(command[0]).parts[-2:] or not any("/" in text for text in command[1:]):
        return
    chosen, _ = get_argument_parser().parse_known_args(command[1:])
    for path in map(os.path.relpath, chosen.targets or ()):
        of_run = len(Path(path).parts) > 2 and not os.path.exists(path)  # a rule that a user appends may make others
        if of_run and not any(rule.is_producer(path) for rule in workflow.rules):
            raise no_result(path, makeable(), OUT)


def makeable():
    """Yield the result files that rules make, but for those of a unit of a collection."""
    own = {method: registry.method(method).acquisition for method in METHODS}
    scored = [(method, one) for method in METHODS for one in ([own[method]] if own[method] in OWN else SCORED)]
    places = [(benchmark, split) for benchmark in BENCHMARKS for split in splits.of(benchmark)]
    names = ("benchmark", "split", "method", "acquisition")
    filled = [dict(zip(names, (*place, *run))) for place in places for run in scored]
    filled += [{"study": study} for study in registry.studies()]
    for paper in registry.papers_with_checks():
        filled += [{"paper": paper, "check": check} for check in registry.checks(paper)]
    for file in (file for rule in workflow.rules for file in rule.output):
        named = re.sub(r"\{(\w+),[^{}]*\}", r"{\1}", str(file))
        wanted = set(file.get_wildcard_names())
        known = filled if wanted else [{}]
        yield from dict.fromkeys(named.format(**values) for values in known if wanted <= values.keys())


def constant(value):
    """Return a function of the wildcards that gives `value`: Snakemake would expand braces in a plain string."""
    return lambda wildcards: value
