"""Which data set a task is about, by the name of the task: results name tasks, and tasks repeat data sets.

A benchmark's file says it in `Task.group`; a test holds the two against each other. No job that trains, tunes or loads
reads this module: a new rule here changes intervals, and runs nothing again.
"""

from collections.abc import Iterable

from metabo.plan import registry

SPACE_AND_SET = "space/data set"
IDENTIFIER = "name,data set,model family,model,batch size"
DRAWN = "data set/task"
"""Of tasks that share a draw of what they are made of."""
FORMS = {
    "hpob": SPACE_AND_SET, "hpob_mini": SPACE_AND_SET, "cmbo_hpob": SPACE_AND_SET, "cmbo_mini": SPACE_AND_SET,
    "pd1": IDENTIFIER, "pd1_mini": IDENTIFIER, "pd1_mini_nan": IDENTIFIER, "cmbo_control": DRAWN,
}  # fmt: skip
"""Forms of the names of tasks, by benchmark. In all others every task is about a data set of its own."""


def of_tasks(benchmark: str, tasks: Iterable[str]) -> dict[str, str]:
    """Return the data set of each task of a benchmark, by the task's name.

    A benchmark made of others (`members`) has their names, with " (member)" behind one that two of them use
    (`metabo.data.combined`). All tasks of a benchmark that is one data set have one. Of a benchmark that is not
    registered every task is its own.
    """
    if registry.one_data_set(benchmark):
        return dict.fromkeys(tasks, benchmark)
    members = registry.benchmark(benchmark).members if benchmark in registry.benchmarks() else ()
    forms = {FORMS[name] for name in (benchmark, *members) if name in FORMS}
    return {task: _data_set(_plain(task, members), forms) for task in tasks}


def _plain(task: str, members: Iterable[str]) -> str:
    for member in members:
        task = task.removesuffix(f" ({member})")
    return task


def _data_set(task: str, forms: set[str]) -> str:
    fields = [field.strip() for field in task.split(",")]
    if IDENTIFIER in forms and len(fields) == IDENTIFIER.count(",") + 1:
        return fields[1]
    if DRAWN in forms:
        return task.rpartition("/")[0] or task
    _, slash, name = task.partition("/")
    return name if SPACE_AND_SET in forms and slash else task
