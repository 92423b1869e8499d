"""MIMO and RFGP: networks with an embedding of each task, trained at every iteration (hyperbo §7.2)."""

from dataclasses import replace

from metabo.plan.method import Method

MIMO = Method(
    pretrain="methods.embedding.mimo",
    policy="methods.embedding.policy",
    online="methods.embedding.online",
    uses_past=True,
)

RFGP = replace(MIMO, pretrain="methods.embedding.rfgp")
