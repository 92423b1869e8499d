# Tell a cluster how long each job may take, and which short jobs travel in one submission. On one machine neither counts:
# time limits stop no job there, and only a profile with `group-components` makes groups.
from metabo.plan import limits
from metabo.plan.work import NumericJob


@cache
def numeric_minutes(rule, benchmark, split, method, acquisition=""):
    return limits.minutes(NumericJob(rule, benchmark, split, method, acquisition), SETTINGS)


def minutes(rule):
    """Return the function that gives the time limit of a numeric job; a second attempt has twice as long."""
    return lambda wildcards, attempt: attempt * numeric_minutes(rule, **dict(wildcards.items()))


def quick(wildcards, attempt):
    return attempt * limits.QUICK


def load_minutes(wildcards, attempt):
    """Return minutes: reading an archive, or what is made of one, takes longer than embedded tables do."""
    return attempt * (limits.QUICK if shared_load(wildcards) else limits.SHORT)


def long(wildcards, attempt):
    return attempt * limits.LONG


def together(rule, shared):
    """Return the `group` of a rule's jobs: those for which `shared` gives the same name travel together.

    As many share a submission as `group-components` of the profile says of the rule, which Snakemake knows only after it
    has read the rules; where it says nothing, jobs have no group. A job for which `shared` gives None goes alone.
    """

    def group(wildcards):
        if rule not in workflow.group_settings.group_components:
            return None
        name = shared(wildcards)
        if name is not None:
            workflow.parent_groupids[name] = rule  # under which Snakemake looks up how many
        return name

    return group


def shared_theory(wildcards):
    return f"check_theory-{wildcards.paper}"


def shared_load(wildcards):
    """Return the name that the loads of embedded and synthetic benchmarks share: others wait for their downloads."""
    sources = [wildcards.benchmark, *registry.benchmark(wildcards.benchmark).members]
    return None if any(dataset(source) for source in sources) else "load"


def shared_numeric(rule):
    """Return the function that names what a short numeric job shares: with those of its benchmark.

    One that waits for a long training shares with the others that wait for this method's, so that it holds up no other.
    """

    def shared(wildcards):
        if not limits.short(numeric_minutes(rule, **dict(wildcards.items()))):
            return None
        held_up = [method for _, method in long_trainings(rule, wildcards)]
        return "-".join([rule, wildcards.benchmark, *held_up])

    return shared


@cache
def waited_for(rule, benchmark, split, method):
    """Return the (split, method) of the trainings behind a numeric job, itself not among them."""
    first = (split, method) if rule == "pretrain" else prior_of(benchmark, split, method)
    fits = registry.method(first[1]).fits
    behind = [] if rule == "pretrain" else [first]
    return behind + ([prior_of(benchmark, first[0], fits)] if fits else [])


def long_trainings(rule, job):
    places = waited_for(rule, job.benchmark, job.split, job.method)
    return [place for place in places if not limits.short(numeric_minutes("pretrain", job.benchmark, *place))]


def shared_notebook(artefact):
    """Return the function that names what a notebook shares: with those of its paper and benchmark.

    One that waits for a long job goes alone, since no two of them wait for the same.
    """

    def shared(wildcards):
        tables = {"run_bo": artefact.trajectories, "evaluate": artefact.evaluations, "run_online": artefact.online}
        if any(waits_long(rule, artefact.benchmark, *run) for rule, runs in tables.items() for run in runs):
            return None
        return f"notebook-{artefact.entry.paper}-{artefact.benchmark or 'none'}"

    return shared


@cache
def waits_long(rule, benchmark, method, acquisition, split):
    """Tell whether a table, or the priors behind it, takes long to make."""
    own = numeric_minutes(rule, benchmark, split, method, acquisition)
    behind = [numeric_minutes("pretrain", benchmark, *place) for place in waited_for(rule, benchmark, split, method)]
    return not all(map(limits.short, [own, *behind]))


def submissions():
    """Return how many jobs go to the cluster, and in how many submissions."""
    ahead = [job for job in workflow.dag.needrun_jobs() if not job.is_norun and not job.is_local]
    return len(ahead), len({workflow.dag.get_job_group(job) or job for job in ahead})
