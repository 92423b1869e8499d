"""STBO and STBOH: a GP is fitted to the test task alone (hyperbo §7.2)."""

from metabo.plan.method import Method

METHOD = Method(
    pretrain="methods.single_task.policy",
    policy="methods.single_task.policy",
    online="methods.single_task.online",
    pads_inputs=True,
    tunes=True,
)
