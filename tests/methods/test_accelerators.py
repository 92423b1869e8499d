"""Programs of training and of BO lower for an NVIDIA GPU, on a machine without one.

Lowering finds what has no form there: an operation of the CPU alone, a call back into Python, a size that does not fit.
It says nothing of speed or of results.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from metabo.bo import loop
from metabo.bo.trajectories import optimise
from metabo.plan import registry
from metabo.tasks.training_set import training_sets_of
from tests import tiny
from tests.methods.test_conformance import METHODS, QUICK


def lower(function, *args, **kwargs):
    """Export `function` for CUDA as one program, whose inputs are the arrays among the arguments.

    Returns its text, and what it returns, with zeros for the arrays.
    """
    arrays, static = eqx.partition((args, kwargs), eqx.is_array)
    others = []

    def program(arrays):
        args, kwargs = eqx.combine(arrays, static)
        made, other = eqx.partition(function(*args, **kwargs), eqx.is_array)
        others.append(other)
        return made

    exported = jax.export.export(jax.jit(program), platforms=["cuda"])(arrays)
    zeros = [jnp.zeros(made.shape, made.dtype) for made in exported.out_avals]
    return exported.mlir_module(), eqx.combine(jax.tree.unflatten(exported.out_tree, zeros), others[0])


class Lowered(Exception):
    """BO's program was lowered: nothing is left to run."""


@pytest.fixture
def lowered(monkeypatch, method):
    """The texts of the programs that are lowered. They are lowered in place of being run where what follows needs the
    shapes of their results alone; the clusters of cm-BO need the numbers."""
    texts, original = [], eqx.filter_jit

    def jit(function, **options):
        def call(*args, **kwargs):
            text, zeros = lower(function, *args, **kwargs)
            texts.append(text)
            return original(function, **options)(*args, **kwargs) if method.startswith("cm_") else zeros

        return call

    def stop(*args):
        texts.append(lower(chunks, *args)[0])
        raise Lowered

    chunks = loop._in_chunks
    monkeypatch.setattr(eqx, "filter_jit", jit)
    monkeypatch.setattr(loop, "_in_chunks", stop)
    return texts


METHODS_BY_SPEED = [pytest.param(m, marks=[] if m in QUICK else pytest.mark.slow) for m in METHODS]


@pytest.mark.parametrize("method", METHODS_BY_SPEED)
def test_training_and_bo_lower_for_cuda(method, lab, lowered):
    spec = tiny.spec(method, iterations=4)
    prior = lab.train(spec, accelerator=True)
    trained = len(lowered)
    assert trained or not registry.method(method).pretrain
    past = registry.made_of(method).uses_past
    (training,) = training_sets_of(lab.benchmark, spec) if past else (None,)
    with pytest.raises(Lowered):
        optimise(lab.benchmark, prior, *tiny.job(spec), None, training)
    assert len(lowered) == trained + 1
    assert all("stablehlo" in text and "callback" not in text for text in lowered)


def test_a_program_for_cpus_alone_is_found():
    """The control: a call back into Python."""
    with pytest.raises((ValueError, NotImplementedError)):
        lower(lambda x: jax.pure_callback(lambda v: v, jax.ShapeDtypeStruct(x.shape, x.dtype), x), jnp.ones(3))
