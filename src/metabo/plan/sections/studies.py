"""Section `studies`: the sizes of the synthetic studies. Their functions and points are the papers' and stand in the
modules that run them."""

from typing import Annotated

from pydantic import Field

from metabo.plan.sections.base import UNIQUE, Count, Grid, Level, Natural, Positive, Section, Several, Some
from metabo.plan.sections.benchmarks import SyntheticSection

LBFGS = Annotated[Count, Field(description="Steps of L-BFGS, at most.")]
Adam = Annotated[Count, Field(description="Steps of Adam.")]
Repeats = Annotated[Count, Field(description="Repeats of each timing.")]
Seeds = Annotated[Several, Field(description="Independent runs.")]
Numbers = Annotated[tuple[Count, ...], Field(min_length=2, json_schema_extra=UNIQUE)]
Domains = Annotated[Numbers, Field(description="Numbers of training domains.")]


class LandscapeSizes(Section):
    """Losses along one parameter."""

    draws: Count = Field(description="Training sets drawn.")
    grid: Several = Field(description="Points per parameter.")


class EstimateSizes(Section):
    """Posteriors from estimated priors."""

    draws: Several = Field(description="Draws of training and test functions.")
    steps: LBFGS


class TransferSizes(Section):
    """Pre-training on three functions."""

    seeds: Seeds
    points: Annotated[int, Field(ge=3)] = Field(description="Points per function.")
    steps: Count = Field(description="Steps of L-BFGS for the pre-trained GP.")
    single_steps: Count = Field(description="Steps of L-BFGS for the single-task GP.")
    snapshots: Some[Natural] = Field(description="Steps that the illustration shows besides the last.")


class ComplexitySizes(Section):
    """Times of the losses: the grids of the sizes of Table 1."""

    repeats: Repeats
    points: Grid = Field(description="M, the points per function.")
    functions: Grid = Field(description="N, the functions; the first one where M varies.")
    small: Several = Field(description="M where N varies.")
    multiples: Grid = Field(description="N of the overhead, in units of `small`.")
    steps: Grid = Field(description="K, the steps.")
    batches: Grid = Field(description="B, the batch sizes; the last one is M there.")


class TrainingLossSizes(Section):
    """EKL and NLL along one run."""

    steps: Adam


class AsymptoticsSizes(SyntheticSection):
    """Super-dataset S of MPHD: how estimates approach the truth."""

    seeds: Seeds
    train: Domains
    steps: LBFGS
    samples: Count = Field(description="GPs drawn from each prior.")
    subsamples: Count = Field(description="Sub-samples of each test function.")


class DivergenceSizes(SyntheticSection):
    """Super-dataset L of MPHD: the divergence from the true prior."""

    seeds: Seeds
    train: Domains
    adam_steps: Count = Field(description="Steps of Adam in Step 1.")
    learning_rate: Positive = Field(description="Of Adam in Step 1.")
    network_steps: Count = Field(description="Steps of Adam in Step 2.")


class SingleGPSizes(Section):
    """Estimates of one GP."""

    functions: Numbers = Field(description="Numbers of functions.")
    runs: Several = Field(description="Runs of each.")
    steps: LBFGS


class Lemma1Sizes(Section):
    """Lemma 1 in one dimension."""

    grid: Several = Field(description="Points of a drawn function.")


class CMBOTimingSizes(Section):
    """Times of cm-BO."""

    repeats: Repeats
    tasks: Grid = Field(description="Numbers of source tasks; the third is used where other sizes vary.")
    clusters: Grid = Field(description="Numbers of clusters.")
    locations: Count = Field(description="Locations of the clustered posteriors.")
    sizes: Grid = Field(description="Other numbers of locations.")
    grid: Count = Field(description="Locations of the distances in BO.")
    steps: Count = Field(description="Timed steps of HyperBO's training.")


class ProblemSizes(Section):
    """One problem of HE-GP-UCB."""

    points: Annotated[tuple[Several, ...], Field(min_length=1)] = Field(description="Points of its grid, by axis.")
    initial: Natural = Field(description="Initial points.")
    iterations: Count = Field(description="Iterations.")


class Problems(Section):
    """The problems of HE-GP-UCB (hegpucb §7)."""

    lengthscale: ProblemSizes
    period: ProblemSizes
    decomposition: ProblemSizes
    mean: ProblemSizes


class ProblemSeeds(Section):
    """Seeds per problem."""

    lengthscale: Seeds
    period: Seeds
    decomposition: Seeds
    mean: Seeds


Delta = Annotated[Level, Field(description="Level δ.")]
Norm = Annotated[Positive, Field(description="Bound B of the norm.")]
Beta = Annotated[Positive, Field(description="Constant β of the profile `figure`.")]
Noise = Annotated[Positive, Field(description="Noise variance.")]


class EliminationRunSizes(Section):
    """Problems of HE-GP-UCB."""

    delta: Delta
    norm: Norm
    beta: Beta
    noise: Noise
    problems: Problems
    seeds: ProblemSeeds


class SensitivitySizes(Section):
    """The same over a grid of what the paper leaves open; the first value of each is also that of the other variants of
    a function."""

    delta: Delta
    problems: Problems
    seeds: Several = Field(description="Seeds of every problem.")
    beta: Some[Positive] = Field(description="Constants β.")
    noise: Some[Positive] = Field(description="Noise variances.")
    standardise: Some[bool] = Field(description="Whether outputs are standardised.")
    height: Some[Positive] = Field(description="Heights of the hills of problem `mean`.")
    width: Some[Positive] = Field(description="Widths of these hills.")


class CommonLengthscaleSizes(ProblemSizes):
    """Problem `period` with candidates that share a length-scale."""

    delta: Delta
    beta: Beta
    noise: Noise
    seeds: Several = Field(description="Seeds.")
    lengthscales: Some[Positive] = Field(description="Shared length-scales, besides that of the true candidate.")


class RobustSizes(ProblemSizes):
    """HE-StableOpt on problem `lengthscale`."""

    delta: Delta
    norm: Norm
    noise: Noise
    seeds: Several = Field(description="Seeds.")
    epsilon: Annotated[float, Field(ge=0)] = Field(description="How far the adversary moves a query, at most.")


class PeriodicFitSizes(Section):
    """Fits of periodic kernels."""

    seeds: Count = Field(description="Draws of points.")
    points: Several = Field(description="Points of a piece.")
    whole_points: Several = Field(description="Points of the whole.")
    periods: Several = Field(description="Periods on the grid.")
    lengthscales: Several = Field(description="Length-scales on the grid.")


class StudySections(Section):
    """The sizes of the synthetic studies."""

    landscapes: LandscapeSizes
    estimates: EstimateSizes
    transfer: TransferSizes
    complexity: ComplexitySizes
    training_losses: TrainingLossSizes
    mphd_asymptotics: AsymptoticsSizes
    mphd_divergence: DivergenceSizes
    mphd_single: SingleGPSizes
    mphd_lemma1: Lemma1Sizes
    cmbo_timing: CMBOTimingSizes
    hegpucb_runs: EliminationRunSizes
    hegpucb_sensitivity: SensitivitySizes
    hegpucb_common: CommonLengthscaleSizes
    hegpucb_robust: RobustSizes
    hegpucb_fits: PeriodicFitSizes
