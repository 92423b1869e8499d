"""Sections that set how large pre-training and the runs of BO are."""

from typing import Annotated

from pydantic import Field

from metabo.plan.sections.base import Count, Natural, Positive, Section, Several

Seeds = Annotated[Count, Field(description="Priors per method and fold.")]
AdamSteps = Annotated[Count, Field(description="Steps of every method trained by Adam.")]
Decay = Annotated[
    float,
    Field(gt=0, le=1, description="Last rate of Adam as a share of the first, by half a cosine; 1: a constant rate."),
]
LBFGSSteps = Annotated[Count, Field(description="Steps of every method trained by L-BFGS.")]
MatchedPoints = Annotated[Natural, Field(description="Matched inputs per block that EKL reads, at most; 0: all.")]
BOSeeds = Annotated[Count, Field(description="Runs per task and prior, in place of bo.seeds.")]
Targets = Annotated[int, Field(ge=1, le=8, description="Runs per target, in place of bo.seeds.")]


class PretrainSizes(Section):
    """How large pre-training is: what holds for every prior unless a section below says otherwise."""

    seeds: Seeds
    adam_steps: AdamSteps
    learning_rate: Positive = Field(
        description="Of Adam in H-NLL and the methods like it; ABLR, MIMO and RFGP have their own."
    )
    ablr_learning_rate: Positive = Field(description="Of Adam in ABLR, whose features alone are its kernel.")
    decay: Decay
    lbfgs_steps: LBFGSSteps
    matched_points: MatchedPoints


class SweepSizes(Section):
    """Laid over `pretrain` where the data or the structure is varied (`sizes` in src/metabo/plan/splits.yaml); what is
    null or left out is as there."""

    seeds: Seeds | None = None
    adam_steps: AdamSteps | None = None
    learning_rate: Positive | None = Field(None, description="Of Adam, in place of pretrain.learning_rate.")
    decay: Decay | None = None
    lbfgs_steps: LBFGSSteps | None = None
    matched_points: MatchedPoints | None = None


class LadderSizes(Section):
    """Rungs of training in hyperbo_x12, each laid over `pretrain` on a split `ladder_{rung}`. At a constant rate a rung
    with fewer steps is the beginning of the longer ones: their mini-batches are the same."""

    constant_200: SweepSizes
    constant_500: SweepSizes
    constant_1000: SweepSizes
    constant_2000: SweepSizes
    constant_5000: SweepSizes
    decaying_2000: SweepSizes
    decaying_5000: SweepSizes
    published: SweepSizes = Field(description="As printed (hyperbo §7.2), with fewer seeds: the anchor of the others.")


class CrossingSizes(SweepSizes):
    """Likewise in hyperbo_x01, which crosses methods, points, steps and acquisitions."""

    short_adam_steps: Count = Field(description="The smaller of the two numbers of Adam steps.")
    short_lbfgs_steps: Count = Field(description="The smaller of the two numbers of L-BFGS steps.")
    bo_seeds: BOSeeds | None = None


class StructureSizes(Section):
    """Of the structures of mean and kernel that hyperbo_fig25 and hyperbo_fig26 compare."""

    adam_steps: AdamSteps


class EliminationSizes(Section):
    """Likewise in hegpucb_x04, where the priors of all seeds are the candidates of one run."""

    seeds: Several = Field(description="Candidate priors of each fold.")
    adam_steps: AdamSteps | None = None
    lbfgs_steps: LBFGSSteps | None = None
    matched_points: MatchedPoints | None = None
    bo_seeds: BOSeeds | None = None


class HPOBSizes(Section):
    """Likewise on hpob_mini, what HyperBO has on HPO-B in place of its sizes elsewhere."""

    features: Annotated[tuple[Count, ...], Field(min_length=1)] | None = Field(
        None, description="Hidden layers of H-NLL, FSBO, ABLR and STBO; also on super_mini, which has its spaces."
    )
    bo_seeds: BOSeeds | None = None


class MPHDSizes(Section):
    """Likewise on the benchmarks of MPHD, with the sizes of its own methods."""

    seeds: Count = Field(description="Priors per method and space.")
    adam_steps: AdamSteps
    learning_rate: Positive = Field(description="Of Adam in Step 1 of MPHD, H-NLL, FSBO and Base GP.")
    decay: Decay
    network_steps: Count = Field(description="Steps of Adam of the network of the hyperprior.")
    map_steps: Count = Field(description="Steps of L-BFGS of each MAP fit of a GP in BO.")
    bo_seeds: BOSeeds


class CMBOSizes(Section):
    """Likewise on the benchmarks of cm-BO, with the sizes of its own methods."""

    seeds: Seeds
    adam_steps: AdamSteps
    bo_seeds: Targets
    bo_iterations: Count = Field(description="Queries per run, in place of bo.iterations.")
    clusters: Count = Field(description="Most clusters of source tasks that are tried.")
    restarts: Count = Field(description="Restarts of k-means; the best is kept.")
    fit_steps: Count = Field(description="Steps of L-BFGS of each source task's GP, at most.")
    refit_steps: Count = Field(description="Steps of L-BFGS at each query of the target's GP, at most.")
    locations: Several = Field(description="Configurations at which source posteriors are compared.")
    grid: Several = Field(description="Candidates at which a distance in BO is taken, at most.")
    tolerance: Positive = Field(description="Relative residual of a Wasserstein barycenter.")
    samples: Count = Field(description="Samples of each GP in RGPE.")


class CMBOFirstSizes(Section):
    """Laid over `cmbo` on the split of one space that Figure 3 of cm-BO is made on."""

    bo_seeds: Targets


class CMBOControlSizes(Section):
    """Laid over `cmbo` on the cases in which its methods must work (gates of claims)."""

    bo_seeds: Targets


class BOSizes(Section):
    """How large the runs of BO on tables are."""

    iterations: Count = Field(description="Queries per run.")
    seeds: Count = Field(description="Runs per task and prior.")
    random_seeds: Count = Field(
        description="Runs of random search per task and pre-training seed, where no section has bo_seeds of its own."
    )
    refit_steps: Count = Field(description="Optimiser steps per refit, for methods that refit at each iteration.")


class OnlineSizes(Section):
    """How large online tuning is, where every evaluation trains a network."""

    iterations: Count = Field(description="Evaluations per run.")
    seeds: Count = Field(description="Runs per task; also the priors trained for them.")
    adam_steps: AdamSteps
    retrain_steps: Count = Field(description="Optimiser steps of the re-training after each evaluation.")
    matched_points: Natural = Field(description="Matched points per block of the EKL term; 0: all.")
    starts: Several = Field(description="Halton points at which the acquisition is evaluated.")
    polish: Count = Field(description="Best starts that L-BFGS polishes.")
    polish_steps: Count = Field(description="L-BFGS steps per polished start.")


class MIMOSizes(Section):
    """The training of MIMO, an ensemble of networks."""

    learning_rate: Positive = Field(description="Of Adam.")
    steps: Natural = Field(description="Mini-batches of the pre-training, at most; 0: all of its epochs.")
    retrain_steps: Natural = Field(description="Mini-batches at each BO iteration, likewise.")
    warm_start: bool = Field(description="Whether a training at a BO iteration goes on from the one before.")


class RFGPSizes(MIMOSizes):
    """RFGP, a GP of random Fourier features, and its training."""

    random_features: Count = Field(description="Random Fourier features.")
    ridge: Positive = Field(description="Noise variance of the standardised outputs.")
    lengthscale: Positive = Field(description="Of the squared exponential kernel, in the unit cube.")


class MAFSizes(Section):
    """The neural acquisition function MAF and its training by reinforcement learning."""

    iterations: Count = Field(description="Training iterations.")
    episodes: Count = Field(description="Episodes of BO per iteration.")
    horizon: Count = Field(description="Queries per episode; later ones of a longer run see this time step.")
    candidates: Natural = Field(description="Candidates of an episode, drawn from a task's points; 0: all.")
    minibatches: Count = Field(description="Mini-batches that an iteration's queries are split into.")
    learning_rate: Positive = Field(description="Of Adam.")
    hidden: Annotated[tuple[Count, ...], Field(min_length=1)] = Field(
        description="Hidden layers of the policy network and of the value network."
    )
    evaluate_every: Count = Field(description="Iterations between evaluations that choose the best one.")
    points: Natural = Field(description="Distinct points kept of each task, the best among them; 0: all.")
    gp_points: Natural = Field(description="Points that each task's GP is fitted to; 0: all.")
    gp_steps: Count = Field(description="Steps of that fit by L-BFGS.")


class TheorySizes(Section):
    """The theory checks."""

    share: Positive = Field(
        description="Share of each check's replicates; below 1 claims, and negative controls, may stay undecided."
    )


class PD1MiniTrainings(Section):
    """Trainings per task."""

    pilot: Count = Field(description="Phase 0, run twice: matched and unmatched.")
    matched: Count = Field(description="Phase 1, configurations that all tasks share.")
    unmatched: Count = Field(description="Phase 1, configurations of the task's own.")


class PD1MiniRepeats(Section):
    """Trainings per task in version 2, in which all tasks share all configurations."""

    matched: Count = Field(description="Configurations; the first ones are those of version 1, phase 1.")
    repeats: Count = Field(description="Trainings of each, with different random streams.")


class HPOBMiniTrainings(Section):
    """Configurations per data set and space."""

    shared: Count = Field(description="Shared by all data sets.")
    own: Annotated[int, Field(ge=4)] = Field(description="The data set's own.")
    pool: Annotated[int, Field(ge=4)] = Field(description="Own of the tasks that BO runs on.")


class CollectSizes(Section):
    """A re-collection of the embedded benchmarks, by version; the shipped tables have the sizes of config.yaml."""

    pd1_mini: PD1MiniTrainings
    pd1_mini_2: PD1MiniRepeats
    hpob_mini: HPOBMiniTrainings
    hpob_mini_2: HPOBMiniTrainings
