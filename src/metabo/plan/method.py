"""What methods are made of: one `Method` for each way to train and to suggest, in a module without JAX."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Method:
    """The parts of a method, as dotted names below `metabo`, so that the plan reads them without importing JAX, and so
    that an edit of one part re-runs only the jobs that run it.

    `pretrain`: the module with `start` and `pretrain`.
    `policy`: the module with `policy`: BO on a table; None: there is none.
    `online`: the module with `online`: tuning with real evaluations; None: there is none.
    `pads_inputs`: columns of zeros after the inputs change nothing that the policy does (`metabo.tasks.padding`).
    `uses_past`: the policy is given the training rows of its prior.
    `across_spaces`: it learns from all spaces at once, by `pretrain_across` in place of `pretrain`.
    `draws`: it draws its queries at random, so that runs from the same given points differ: it may have more runs of a
    task than the task has given initialisations.
    `tunes`: its policy suggests from a user's trials and past studies alone, so that the tuner has it (`metabo.tuner`).
    `remarks`: the function that tells what a person should know of the priors that the training starts from.
    `report`: the function that tells more of a prior than its losses, for the sidecar.
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
