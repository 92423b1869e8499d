"""Stretches of one compiled program against `jax.lax.map` and NumPy."""

import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metabo.compute import mapping, progress
from metabo.compute.mapping import one_by_one

KEYS = jax.random.split(jax.random.key(0), 13)
FACTORS = jnp.linspace(1.0, 2.0, 13)


def walk(entry, scale, steps, power):
    """A loop of some length whose rounding would show if it were compiled in another way."""
    key, factor = entry
    noise = jax.random.normal(key, (5,))

    def step(x, number):
        return jnp.sin(x * factor) ** power + scale @ noise / (1.0 + number), x.sum()

    last, sums = jax.lax.scan(step, noise, jnp.arange(steps))
    return {"last": last, "sums": sums, "count": jnp.sum(last > 0), "sound": jnp.isfinite(last).all()}


@pytest.fixture
def scale():
    return jnp.asarray(np.random.default_rng(0).normal(size=(5, 5)))


@pytest.mark.parametrize("seconds", [0.0, 1e-3, 100.0])
def test_stretches_of_any_length_give_what_one_program_gives(monkeypatch, scale, seconds):
    monkeypatch.setattr(mapping, "SECONDS", seconds)
    whole = jax.jit(lambda entries: jax.lax.map(lambda e: walk(e, scale, 30, 3), entries))((KEYS, FACTORS))
    found = one_by_one(walk, (KEYS, FACTORS), (scale, 30, 3), "walks")
    assert jax.tree.structure(found) == jax.tree.structure(whole)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(whole), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_one_entry_and_numpy(scale):
    found = one_by_one(lambda x, by: x @ by, np.eye(5)[:1], (np.asarray(scale),), "rows")
    np.testing.assert_allclose(found, np.asarray(scale)[:1], rtol=1e-15)


def test_no_entries_give_empty_results(scale):
    found = one_by_one(walk, (KEYS[:0], FACTORS[:0]), (scale, 30, 3), "walks")
    assert {name: leaf.shape for name, leaf in found.items()} == {
        "last": (0, 5), "sums": (0, 30), "count": (0,), "sound": (0,)
    }  # fmt: skip


def test_one_program_traced_once_serves_all_stretches_and_calls(monkeypatch, scale, caplog):
    monkeypatch.setattr(mapping, "SECONDS", 0.0)  # a stretch for every entry
    traced = []

    def run(entry, scale, steps):
        traced.append(steps)
        return walk(entry, scale, steps, 2)

    with jax.log_compiles(), caplog.at_level(logging.WARNING, "jax"):
        for shift in (0.0, 1.0):
            one_by_one(run, (KEYS, FACTORS + shift), (scale + shift, 10), "walks")
    programs = [r.getMessage() for r in caplog.records if r.getMessage().startswith("Compiling jit(_stretch)")]
    assert traced == [10] and len(programs) == 1
    one_by_one(run, (KEYS, FACTORS), (scale, 11), "walks")
    assert traced == [10, 11]


def test_inside_a_program_it_is_a_map(scale):
    inside = jax.jit(lambda entries, scale: one_by_one(walk, entries, (scale, 30, 3), "walks"))((KEYS, FACTORS), scale)
    outside = one_by_one(walk, (KEYS, FACTORS), (scale, 30, 3), "walks")
    for a, b in zip(jax.tree.leaves(inside), jax.tree.leaves(outside), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_every_stretch_is_reported(monkeypatch, scale):
    monkeypatch.setattr(mapping, "SECONDS", 0.0)
    seen = []
    monkeypatch.setattr(
        progress, "_report", lambda: seen.append([(x.what, x.done, x.total) for x in progress._job.levels])
    )
    one_by_one(walk, (KEYS, FACTORS), (scale, 5, 1), "walks")
    assert seen == [[("walks", done, 13)] for done in range(1, 14)]
