"""space.yaml: what it means, and what each slip in it is answered with."""

import numpy as np
import pytest
import yaml

from metabo.data.history import description
from metabo.errors import ConfigError, DataError
from tests.tuner.conftest import SPACE


@pytest.fixture
def space(tmp_path):
    (tmp_path / "space.yaml").write_text(SPACE)
    return description.load(tmp_path / "space.yaml")


def changed(**changes):
    """The space with some top-level keys, or parameters ("p_name"), replaced; None removes."""
    data = yaml.safe_load(SPACE)
    for key, value in changes.items():
        part, name = (data["parameters"], key[2:]) if key.startswith("p_") else (data, key)
        if value is None:
            part.pop(name)
        else:
            part[name] = value
    return data


def test_every_point_of_the_cube_is_a_valid_configuration_that_encodes_into_the_cube(space):
    points = np.concatenate([np.random.default_rng(0).random((300, 5)), np.zeros((1, 5)), np.ones((1, 5))])
    found = space.at(points)
    assert all(space.read(one) == one for one in found)
    x = space.encode(found)
    assert x.shape == (302, space.space.dim) and x.min() >= 0 and x.max() <= 1
    assert {one["layers"] for one in found} == {1, 2, 3, 4, 5, 6} and {one["batch"] for one in found} == {16, 32, 64}
    assert {one["momentum"] is None for one in found if one["optimiser"] == "adam"} == {True}
    assert {one["momentum"] is None for one in found if one["optimiser"] == "sgd"} == {False}
    again = space.at(np.stack([space.units(one) for one in found]))
    for one, other in zip(found, again, strict=True):
        assert one == pytest.approx(other)


def test_whole_numbers_and_choices_have_equal_shares(space):
    found = space.at(np.stack([np.linspace(0, 1 - 1e-9, 6000)] * 5, axis=1))
    layers = [one["layers"] for one in found]
    assert [layers.count(n) for n in range(1, 7)] == [1000] * 6


def test_cells_are_read_as_a_table_writes_them(space):
    row = {"learning_rate": "1e-2", "layers": "3.0", "batch": "32.0", "optimiser": "adam", "momentum": "0.5"}
    assert space.read(row) == {
        "learning_rate": 0.01, "layers": 3, "batch": 32, "optimiser": "adam", "momentum": None,
    }  # fmt: skip
    flag = description.of_mapping(changed(p_flag={"type": "categorical", "choices": [True, False]}), "s")
    assert flag.fields[-1].read("FALSE") is False


def test_a_number_with_two_values_is_discrete_to_the_model():
    space = description.of_mapping({"name": "s", **changed(p_layers={"type": "int", "low": 0, "high": 1})}, "s").space
    assert [p.kind for p in space.parameters] == ["log", "ordinal", "ordinal", "categorical", "linear"]


def test_a_finite_space_is_listed_without_repeats():
    needed = {"type": "int", "low": 1, "high": 3, "when": {"a": "x"}}
    parameters = {"a": {"type": "categorical", "choices": ["x", "y"]}, "b": needed}
    outcome = {"column": "e", "goal": "maximise"}
    data = {"name": "s", "study": "d", "outcome": outcome, "parameters": parameters}
    space = description.of_mapping(data, "s")
    assert space.every(6) == [*({"a": "x", "b": b} for b in (1, 2, 3)), {"a": "y", "b": None}]
    assert space.every(5) is None


@pytest.mark.parametrize(
    ("data", "parts"),
    [
        (changed(paramters={}), ["key 'paramters' is unknown", "Did you mean 'parameters'?", "outcome", "study"]),
        (changed(study=None), ["key 'study' is missing"]),
        (changed(p_layers={"type": "integer", "low": 1, "high": 3}), ["parameters.layers.type", "float, int, ordinal"]),
        (changed(p_layers={"typ": "int"}), ["parameters.layers.typ' is unknown", "Did you mean 'type'?", "choices"]),
        (changed(p_layers={"type": "int", "low": 1}), ["parameters.layers.high' is missing: type int needs it"]),
        (changed(p_layers={"type": "int", "low": 3, "high": 1}), ["parameters.layers.low' is 3, not below high (1)"]),
        (changed(p_layers={"type": "int", "low": 1.5, "high": 3}), ["bounds of an int are whole numbers"]),
        (changed(p_layers={"type": "float", "low": "1e-4", "high": 1}), ["the text '1e-4'", "write 1.0e-04"]),
        (changed(p_learning_rate={"type": "float", "low": 0, "high": 1, "scale": "log"}), ["needs low above 0"]),
        (changed(p_batch={"type": "ordinal", "low": 1, "high": 2}), ["choices' is missing", "no such key; remove it"]),
        (changed(p_momentum={"type": "float", "low": 0, "high": 1, "when": {"optimizer": "sgd"}}),
         ["parameters.momentum.when' names 'optimizer'", "Did you mean 'optimiser'?", "batch, optimiser"]),
        (changed(p_momentum={"type": "float", "low": 0, "high": 1, "when": {"optimiser": "sdg"}}),
         ["parameters.momentum.when.optimiser' is sdg; choose among sgd, adam"]),
        (changed(p_momentum={"type": "float", "low": 0, "high": 1, "when": {"optimiser": "x" * 600}}),
         ["parameters.momentum.when.optimiser' is xxxxxxxxxxxxxxxx [...] xxxxxxxx; choose among sgd, adam"]),
        (changed(outcome={"column": ["error", "time"], "goal": "minimise"}), ["key 'outcome.column' names several"]),
        (changed(outcome={"column": "error", "goal": ["minimise", "maximise"]}), ["one is tuned at a time; name one"]),
        (changed(outcome=[{"column": "error", "goal": "minimise"}] * 2), ["key 'outcome' names several"]),
        (changed(outcome={"column": "error", "goal": "minimum"}), ["outcome.goal", "Did you mean 'minimise'?"]),
        (changed(ignore=["layers"]), ["column 'layers' has two roles"]),
        (changed(p_layers={"type": "int", "low": 0, "high": 1e30}), ["parameters.layers'", "within ±9007199254740992"]),
        (changed(p_momentum={"type": "float", "low": -1e308, "high": 1e308}), ["from 1e-300 to 1e+300 in size"]),
        (changed(p_momentum={"type": "float", "low": 0.0, "high": 1e-305}), ["1e-300 apart, got 0.0 and 1e-305"]),
        (changed(p_batch={"type": "ordinal", "choices": [True, 1, 2]}), ["has True and 1, which count as equal"]),
        (changed(p_batch={"type": "ordinal", "choices": [16]}),
         ["parameters.batch.choices' has one choice, 16; give two choices at least, or remove the parameter"]),
        (changed(p_batch={"type": "ordinal", "choices": []}), ["parameters.batch.choices' has no choice; give two"]),
        (changed(p_batch={"type": "ordinal", "choices": ["sgd", "a", "sgd"]}),
         ["parameters.batch.choices': 'sgd' stands twice; delete one"]),
        (changed(p_batch={"type": "ordinal", "choices": [1, 2, 1.0]}), ["batch.choices': 1 stands twice; delete"]),
        (changed(**{"p_=lr": {"type": "float", "low": 0, "high": 1}}), ["column '=lr' begins like a formula"]),
        (changed(**{"p_ lr ": {"type": "float", "low": 0, "high": 1}}), ["column ' lr ' has outer spaces"]),
    ],
)  # fmt: skip
def test_a_slip_names_the_key_and_what_is_valid(tmp_path, data, parts):
    path = tmp_path / "space.yaml"
    path.write_text(yaml.safe_dump(data, sort_keys=False))
    with pytest.raises(ConfigError) as error:
        description.load(path)
    for part in [str(path), *parts]:
        assert part in str(error.value)


@pytest.mark.parametrize(("said", "goal"), [("minimize", "minimise"), ("max", "maximise"), ("maximize", "maximise")])
def test_a_goal_has_several_spellings_and_is_kept_in_one(said, goal):
    def space(first, second):
        data = changed(outcome={"column": "error", "goal": first})
        return data | {"studies": {"d0": {"goal": first}, "d1": {"goal": second}}}

    data = space(said, "min")
    found, plain = (description.of_mapping(one, "s") for one in (data, space(goal, "minimise")))
    assert found == plain and found.source == plain.source and data["outcome"]["goal"] == said
    assert found.maximise == (goal == "maximise") and not found.studies["d0"].flipped


@pytest.mark.parametrize("data", [changed(outcome="max"), changed(outcome={"goal": 1}) | {"studies": ["min"]}])
def test_a_goal_that_is_none_is_refused_as_before(data):
    with pytest.raises(ConfigError, match="key 'outcome"):
        description.of_mapping(data, "s")


def test_text_in_place_of_a_number_has_no_hint_at_the_workflow():
    """The schema's messages are those of config.yaml, whose values may follow --config."""
    with pytest.raises(ConfigError) as error:
        description.of_mapping(changed(p_layers={"type": "float", "low": "1e-4", "high": 1}), "s")
    assert str(error.value) == (
        "s key 'parameters.layers.low' is the text '1e-4', must be a number; YAML reads quoted numbers, and exponents "
        "without a dot (1e-4), as text: write 1.0e-04"
    )


@pytest.mark.parametrize(
    ("written", "plain"),
    [("1e-3", "1.0e-03"), ("1e5", "100000"), ("1.0e5", "100000"), ("+2.5E5", "250000"), (".5e5", "50000")],
)
def test_choices_that_yaml_takes_for_text_and_their_author_for_numbers(tmp_path, written, plain):
    path = tmp_path / "space.yaml"
    path.write_text(SPACE.replace("[16, 32, 64]", f"[16, {written}]"))
    with pytest.raises(ConfigError) as error:
        description.load(path)
    assert f"{path} key 'parameters.batch.choices' has {written}, which YAML reads as text: write {plain}, or " in str(
        error.value
    )
    path.write_text(SPACE.replace("[16, 32, 64]", f"[16, {plain}]"))
    assert description.load(path).fields[2].choices == (16, float(plain))
    path.write_text(SPACE.replace("[16, 32, 64]", f"[16, '{written}']"))
    space = description.load(path)
    assert space.fields[2].choices == (16, written)
    assert description.of_mapping(space.source, "study.json").fields == space.fields  # as the study's folder keeps it


@pytest.mark.parametrize("choices", ["['1', '2']", "[v1e-3, 3.10.1]", "['3.10', \"1.0e-3\"]", "[inf, e5]"])
def test_choices_that_are_text_on_purpose(tmp_path, choices):
    path = tmp_path / "space.yaml"
    path.write_text(SPACE.replace("[16, 32, 64]", choices))
    assert all(isinstance(choice, str) for choice in description.load(path).fields[2].choices)


def test_yes_and_no_that_yaml_takes_for_true_and_false(tmp_path):
    path = tmp_path / "space.yaml"
    path.write_text(SPACE.replace("[16, 32, 64]", "[no, yes]"))
    batch = description.load(path).fields[2]
    assert batch.read("true") is True
    with pytest.raises(ValueError, match=r"is not one of False, True\. YAML reads .*put yes/no/on/off in quotes"):
        batch.read("no")
    path.write_text(SPACE.replace("[16, 32, 64]", "['no', 'yes']"))
    assert description.load(path).fields[2].read("no") == "no"


def test_a_file_that_is_no_mapping_or_not_there(tmp_path):
    (tmp_path / "space.yaml").write_text("- a")
    with pytest.raises(ConfigError, match="must be a mapping with the keys study, outcome"):
        description.load(tmp_path / "space.yaml")
    with pytest.raises(ConfigError, match="cannot read it"):
        description.load(tmp_path / "spaec.yaml")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layer": 3}, "unknown parameter 'layer'. Did you mean 'layers'?"),
        ({10**5000: 3}, "unknown parameter 'a value of type int that is too large to be shown'. Parameters: "),
        ({"layers": None}, "parameter 'layers' has no value; give a whole number from 1 to 6"),
        ({"layers": 7}, "parameter 'layers': 7 is outside [1, 6]"),
        ({"layers": True}, "parameter 'layers': True is not a whole number"),
        ({"batch": 24}, "parameter 'batch': 24 is not one of 16, 32, 64"),
    ],
)
def test_a_configuration_from_python_is_checked(space, change, message):
    good = {"learning_rate": 0.01, "layers": 3, "batch": 32, "optimiser": "sgd", "momentum": 0.5}
    assert space.read(good) == good
    with pytest.raises(DataError) as error:
        space.read(good | change)
    assert message in str(error.value)
