"""H-NLL, H-EKL, FSBO, ABLR and similar methods, which learn a GP from past tasks (hyperbo §7.2)."""

from dataclasses import replace

from metabo.plan.method import Method

METHOD = Method(
    pretrain="methods.pretrained.train",
    policy="bo.fixed_prior",
    online="methods.pretrained.online",
    pads_inputs=True,
    tunes=True,
)

ONCE = replace(METHOD, policy="bo.once", online=None, tunes=False)
"""A candidate is queried once."""

READING = replace(METHOD, policy="bo.readings", uses_past=True, online=None, tunes=False)
"""Other readings of the acquisitions, with the same prior."""
