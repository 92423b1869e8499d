"""Names of runs: taken apart and put together, and what an acquisition that is not named is."""

import pytest

from metabo.errors import ConfigError
from metabo.plan.runs import RunId, acquisition_of, method_of, on_splits, resolved


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("h_nll", ("h_nll", "", "")),
        ("h_nll-pi", ("h_nll", "pi", "")),
        ("h_nll@held_out", ("h_nll", "", "held_out")),
        ("h_nll-pi@held_out", ("h_nll", "pi", "held_out")),
    ],
)
def test_a_name_is_its_parts(name, parts):
    assert RunId.parse(name) == parts and str(RunId(*parts)) == name
    assert method_of(name) == "h_nll"


def test_a_run_goes_to_another_split_with_its_acquisition():
    run = RunId.parse("h_nll-ei@held_out")
    assert str(run.on("others")) == "h_nll-ei@others" and str(run.on("")) == "h_nll-ei"
    assert on_splits(["rand", "mphd-ei"], ["first", "new_space"]) == ["rand@first", "mphd-ei@new_space"]


def test_an_acquisition_that_is_not_named_is_the_methods_own():
    assert (acquisition_of("stboh@others"), acquisition_of("stboh-ei@others")) == ("ucb18", "ei")
    assert resolved(RunId("stboh", split="others")) == RunId("stboh", "ucb18", "others")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("h_nl-pi", "unknown method 'h_nl'. Did you mean 'h_nll'?"),
        ("h_nll-pj", "unknown acquisition 'pj'. Did you mean 'pi'?"),
        (
            "h_nll-uniform@others",
            "'h_nll-uniform': 'uniform' is the acquisition of no other method than its own; for others there are pi, ",
        ),
        ("rand-pi", "'rand-pi': 'rand' suggests by 'uniform' alone; write 'rand'"),
    ],
)
def test_a_run_that_cannot_be_is_told(name, message):
    with pytest.raises(ConfigError) as error:
        resolved(RunId.parse(name))
    assert message in str(error.value)
