"""Changes of code that changed no result: jobs keep the digests that they had before, so nothing is made again.

A module that many jobs run cannot be given, say, a clearer error otherwise without all recorded results being of other
code. An entry says why the results are the same, and which test shows it. It holds for one version of a module: the
next edit has another hash, and everything that runs the module is made again, unless that edit has an entry too.
`python -m tests.plan.test_equivalent` prints the hashes of what was edited.
"""

from typing import NamedTuple


class Change(NamedTuple):
    """A change of a module (its path in the package): the hashes before and since, of what it contains and of that
    with all it refers to (`metabo.plan.digests`), and why no result differs."""

    module: str
    content: tuple[str, str]
    digest: tuple[str, str]
    why: str


CHANGES = (
    Change(
        "compute/mapping.py", ("765ccdce5ad9137b", "341947d7e5a82c19"), ("765ccdce5ad9137b", "341947d7e5a82c19"),
        "It keeps, and counts, what is finished, between calls of one program: tests/compute/test_checkpoint.py",
    ),
    Change(
        "tasks/task.py", ("207c242e6ba279af", "e9d6df71e938e7bd"), ("207c242e6ba279af", "e9d6df71e938e7bd"),
        "It refuses tasks that no loader makes: tests/tasks/test_benchmark.py",
    ),
    Change(
        "tasks/checks.py", ("fe92e7c2cd18ffa3", "47b1b9261b597145"), ("db6dd0432f59176a", "10fb3228f6c535d0"),
        "It refuses benchmarks that no loader makes: tests/tasks/test_benchmark.py",
    ),
    Change(
        "records/files.py", ("93484fc73d1a0554", "37d6139a594131fe"), ("93484fc73d1a0554", "37d6139a594131fe"),
        "Files with the same content have other permissions: tests/records/test_files.py",
    ),
    Change(
        "methods/hierarchical/policy.py",
        ("858c353650879db8", "051baac938052a67"), ("cab208407a23f026", "34b7602f91f64292"),
        "What it can do now is done if a setting says so: tests/methods/hierarchical/test_policy.py",
    ),
)  # fmt: skip


def before(value: str | None, changes: tuple[Change, ...] = CHANGES) -> str | None:
    """Return the hash that a module had before the changes that changed no result."""
    for change in reversed(changes):
        for old, new in (change.content, change.digest):
            if value == new:
                value = old
    return value
