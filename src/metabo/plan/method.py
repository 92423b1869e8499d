"""The parts of methods: one `Method` for each way to train and to suggest, in a module without JAX."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Method:
    """The parts of a method, as dotted names below `metabo`. The plan can read these without importing JAX, and an edit
    of one part re-runs only the jobs that run it.

    `pretrain`: the module with `start` and `pretrain`.
    `policy`: the module with `policy`, for BO on a table; None if there is none.
    `online`: the module with `online`, for tuning with real evaluations; None if there is none.
    `pads_inputs`: columns of zeros after the inputs do not change what the policy does (`metabo.tasks.padding`).
    `uses_past`: the policy gets the training rows of its prior.
    `across_spaces`: it learns from all spaces at once, by `pretrain_across` instead of `pretrain`.
    `draws`: it draws its queries at random, so runs from the same given points differ, and a task may have more runs
    than given initialisations.
    `tunes`: its policy suggests from a user's trials and past studies alone, so the tuner offers it (`metabo.tuner`).
    `remarks`: the function that returns what a person should know about the priors that the training starts from.
    `report`: the function that returns more about a prior than its losses, for the sidecar.
    `advice`: what to do about unsound steps, if not to change learning rate or steps.
    """

    pretrain: str
    policy: str | None = None
    online: str | None = None
    pads_inputs: bool = False
    uses_past: bool = False
    across_spaces: bool = False
    draws: bool = False
    tunes: bool = False
    remarks: str | None = None
    report: str | None = None
    advice: str | None = None
