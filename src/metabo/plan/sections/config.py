"""The whole of config.yaml as one type."""

from functools import cached_property
from typing import Literal

from pydantic import Field, JsonValue

from metabo.plan.sections import sizes
from metabo.plan.sections.base import Natural, Section, Some
from metabo.plan.sections.benchmarks import BenchmarkSections
from metabo.plan.sections.studies import StudySections


class RunSection(Section):
    """What the default target makes."""

    papers: Some[str] = Field(description="Papers whose tables and figures are made.")
    benchmarks: Some[str] = Field(
        description="Benchmarks that they are made for. The first one gives artefacts their short names."
    )
    artefacts: Some[str] | None = Field(
        None,
        description="Of these figures and tables only the named ones, with those made on request; null: all but these.",
    )


class Config(Section):
    """Every knob of the workflow. `metabo.plan.config` reads it."""

    scale: Literal["smoke", "laptop", "published", "paper"] = Field(
        description="Name of the size setting; part of every result path (results/{scale}/...)."
    )
    seed: Natural = Field(description="Root of every random stream; another seed gives another, independent run.")
    device: Literal["cpu", "gpu"] = Field(
        description='Where JAX computes. "gpu" lets one job at a time use the accelerator.'
    )
    run: RunSection
    benchmarks: BenchmarkSections
    pretrain: sizes.PretrainSizes
    sweep: sizes.SweepSizes
    ladder: sizes.LadderSizes
    structures: sizes.StructureSizes
    crossing: sizes.CrossingSizes
    hpob: sizes.HPOBSizes
    mphd: sizes.MPHDSizes
    elimination: sizes.EliminationSizes
    cmbo: sizes.CMBOSizes
    cmbo_first: sizes.CMBOFirstSizes
    cmbo_control: sizes.CMBOControlSizes
    bo: sizes.BOSizes
    online: sizes.OnlineSizes
    mimo: sizes.MIMOSizes
    rfgp: sizes.RFGPSizes
    maf: sizes.MAFSizes
    theory: sizes.TheorySizes
    studies: StudySections
    collect: sizes.CollectSizes
    methods: dict[str, dict[str, JsonValue]] = Field(
        description=(
            "Overrides of registered method settings, e.g. {h_nll: {pretrain: {learning_rate: 5.0e-4}}}; names and "
            "types are checked against src/metabo/plan/methods.yaml."
        )
    )

    @cached_property
    def sizes(self) -> dict[str, dict[str, JsonValue]]:
        """The keys of every section, by name, without those that were left out: what a registration names as
        "@section.key", and what one section lays over another. A rung of `ladder` is a section "ladder.{rung}"."""
        sections = {name: getattr(self, name) for name in type(self).model_fields}
        rungs = {f"ladder.{name}": getattr(self.ladder, name) for name in type(self.ladder).model_fields}
        return {
            name: section.model_dump(mode="json", exclude_unset=True)
            for name, section in (sections | rungs).items()
            if isinstance(section, Section)
        }
