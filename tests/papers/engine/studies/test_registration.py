"""Studies are registered as data, read unimported, and their jobs read their own sizes only."""

from pathlib import Path

import pytest

from metabo.errors import ConfigError
from metabo.plan import codegraph, config, registry

ROOT = Path(__file__).parents[4]


def test_every_study_has_sizes_at_every_scale_and_a_module_with_run():
    for overlays in ((), ("smoke",), ("paper",)):
        settings = config.load(ROOT, tuple(ROOT / "config" / f"{name}.yaml" for name in overlays))
        assert sorted(settings.sizes["studies"]) == registry.studies()
    for study in registry.studies():
        spec = config.study_spec(settings, study)
        assert spec == {"study": study, "seed": settings.seed, **settings.sizes["studies"][study]}
        run = set(map(codegraph.module_name, codegraph.inputs(codegraph.stage_roots("study", spec))))
        others = {registry.study_module(s) for s in registry.studies() if s != study}
        assert registry.study_module(study) in run and not run & others


def test_an_unknown_study_lists_the_names():
    with pytest.raises(ConfigError, match=r"unknown study 'landscape'. Did you mean 'landscapes'\?"):
        registry.study_module("landscape")
