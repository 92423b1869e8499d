"""Sizes that no machine can carry out are refused with what they would cost."""

import copy

import pytest
import yaml

from metabo.errors import ConfigError
from metabo.plan import config, costs
from tests.counts import ROOT


@pytest.fixture(scope="module")
def good():
    return yaml.safe_load((ROOT / "config.yaml").read_text())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("pretrain.adam_steps", 10**18),
        ("bo.iterations", 10**18),
        ("ladder.published.adam_steps", 10**18),
        ("maf.hidden", [32, 10**18]),
        ("benchmarks.mphd_s.points", 10**18),
        ("collect.pd1_mini.pilot", 10**18),
        ("methods", {"h_nll": {"pretrain": {"steps": 10**18}}}),
    ],
)
def test_a_size_without_end_is_refused_with_its_cost(good, key, value):
    raw = copy.deepcopy(good)
    *path, last = key.split(".")
    part = raw
    for name in path:
        part = part[name]
    part[last] = value
    with pytest.raises(ConfigError) as error:
        config.check(raw)
    (line,) = str(error.value).splitlines()
    assert line.startswith(f"config key '{key}") and "is 1000000000000000000, and 1,000,000,000 is the most" in line
    assert "take 32 million years, and 8,000,000,000 GB at 8 bytes each; lower it" in line


def test_a_seed_is_no_size(good):
    assert config.check({**good, "seed": 10**18}).seed == 10**18


def test_the_largest_size_is_taken(good):
    raw = {**good, "bo": {**good["bo"], "iterations": costs.LARGEST}}
    assert config.check(raw).bo.iterations == costs.LARGEST


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(90, "1.5 minutes"), (1e4, "2.8 hours"), (1e6, "12 days"), (1e9, "32 years"), (1e15, "32 million years"),
     (1e11, "3.2 thousand years"), (1e24, "31,688,088 billion years")],
)  # fmt: skip
def test_times_are_told_in_their_largest_unit(seconds, words):
    assert costs.in_words(seconds) == words
