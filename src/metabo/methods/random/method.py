"""Random search, with replacement (hyperbo §7.2) and without (cm-BO)."""

from metabo.plan.method import Method

METHOD = Method(
    pretrain="methods.random.policy",
    policy="methods.random.policy",
    online="methods.random.online",
    draws=True,
    tunes=True,
)

ONCE = Method(pretrain="methods.random.once", policy="methods.random.once", draws=True)
"""A candidate is queried once."""
