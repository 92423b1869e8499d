# One line on the terminal in place of Snakemake's messages, which are in its log (src/metabo/plan/terminal.py).
from metabo.plan import terminal
from metabo.plan import typical as typical_times
from metabo.plan.ahead import Ahead, Expected
from metabo.plan.work import RULES

# The log of a job takes its output and messages. Where the terminal shows all (a cluster, METABO_PROGRESS=full), lines on a
# job's progress go there too (src/metabo/compute/progress.py).
shell.prefix("exec 3>&2; export METABO_TERMINAL=3; ")

# A job ends with its run (src/metabo/compute/orphans.py). A process that the run starts for a job inherits the run's number.
if not workflow.subprocess_exec:
    os.environ["METABO_RUN"] = str(os.getpid())

QUIET = {kind.name for kind in workflow.output_settings.quiet or ()}
SHORT_OUTPUT = (
    workflow.is_main_process
    and or_stop(terminal.wanted)
    and "ALL" not in QUIET
    and not (workflow.output_settings.dryrun or workflow.output_settings.verbose or workflow.output_settings.debug_dag)
)
RUN_LINE = terminal.take_over(logger) if SHORT_OUTPUT else None


def begin_line():
    """Show the line from here on; on a cluster, all that Snakemake writes."""
    if RUN_LINE and workflow.local_exec:
        shell.prefix("")  # a job's own lines would come between: they are in its log
        ahead = expected_jobs()
        RUN_LINE.begin(Ahead(ahead, workflow.cores, RUN_LINE.clock()), workflow.logger_manager.get_logfile())
    elif RUN_LINE:
        RUN_LINE.hand_back()


def expected_jobs():
    """Return the jobs ahead by Snakemake's number, with the jobs that they wait for."""
    jobs = [job for job in workflow.dag.needrun_jobs() if not job.is_norun]
    known = {job.jobid for job in jobs}
    return {
        job.jobid: Expected(
            *typical(job),
            cores=min(max(job.threads, 1), workflow.cores),
            after=known.intersection(other.jobid for other in workflow.dag.dependencies[job]),
        )
        for job in jobs
    }


def typical(job):
    """Return the group of a job and its typical seconds."""
    names = dict(job.wildcards.items())
    if job.rule.name in RULES:
        return typical_times.of_numeric(NumericJob(job.rule.name, **names), SETTINGS)
    return typical_times.of_rule(job.rule.name, names.get("study", ""))


def tell_report():
    """Say what the report has found, if it was written."""
    made = [job for job in workflow.dag.needrun_jobs() if job.rule.name == "report"]
    for path in made and made[0].log:
        logger.info(Path(path).read_text().rstrip(), extra={"tell": True})
