"""The schema and the tables of config/README.md say what the types say, and the types take what the files have."""

import json
import shutil
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from metabo.errors import ConfigError
from metabo.plan import config, reference
from metabo.plan.schema import violations
from metabo.plan.sections.config import Config

ROOT = Path(__file__).parents[2]


def typed(settings: dict) -> Config:
    return Config.model_validate_json(json.dumps(settings))


def test_the_files_are_those_that_the_types_give(tmp_path):
    for place in (reference.SCHEMA, reference.README, Path("config.yaml")):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / place, tmp_path / place)
    reference.write(tmp_path)
    for place in (reference.SCHEMA, reference.README):
        assert (tmp_path / place).read_text() == (ROOT / place).read_text(), f"run `make reference`: {place}"


def test_a_changed_default_shows_in_the_readme():
    values = yaml.safe_load((ROOT / "config.yaml").read_text())
    values["bo"]["iterations"] = 12345
    text = (ROOT / reference.README).read_text()
    assert "`12345`" not in text and "| `iterations` | `12345` | an integer ≥ 1 |" in reference.readme(text, values)


def test_a_readme_without_marks_is_refused():
    with pytest.raises(ConfigError, match=r"config/README\.md: the marks"):
        reference.readme("no marks here", {})


@pytest.mark.parametrize(
    "overlay", [None, *sorted((ROOT / "config").glob("*.yaml"))], ids=lambda p: p.stem if p else "-"
)
def test_the_types_take_every_scale_and_keep_its_values(overlay):
    settings = config.read(ROOT, (overlay,) if overlay else ())
    kept = typed(settings).model_dump(mode="json", exclude_unset=True)
    assert kept == json.loads(json.dumps(settings))


def fields(schema: dict, path: str = "") -> list[tuple[str, dict]]:
    found = []
    for name, field in schema.get("properties", {}).items():
        found += [(f"{path}{name}", field), *fields(field, f"{path}{name}.")]
    return found


WRONG = [-1, 0, 0.5, 1, 1.5, 9, "x", True, None, [], [0], [1], ["x"], [1, 1], {"x": 1}]


LEAVES = [name.split(".") for name, field in fields(reference.schema()) if "properties" not in field]


@pytest.mark.parametrize("path", LEAVES, ids=".".join)
def test_types_and_schema_refuse_the_same_values(path):
    """Only repeats in a list are seen by the schema alone."""
    settings = config.read(ROOT)
    place = settings
    for key in path[:-1]:
        place = place[key]
    for value in WRONG:
        if value == [1, 1]:
            continue
        place[path[-1]] = value
        faults = violations(settings, reference.schema(), "config")
        try:
            typed(settings)
        except ValidationError:
            assert faults, (path, value)
        else:
            assert not faults, (path, value, faults)


def test_no_key_is_without_a_word_on_what_it_sets():
    assert [name for name, field in fields(reference.schema()) if not field.get("description")] == []
