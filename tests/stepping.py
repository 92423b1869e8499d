"""The steps of a policy, compiled: outside of a compiled function, every call compiles the loops of a fit again."""

import equinox as eqx


@eqx.filter_jit
def begin(policy, candidates, key):
    return policy.init(candidates, key)


@eqx.filter_jit
def select(policy, state, mask, key):
    return policy.select(state, mask, key)


@eqx.filter_jit
def observe(policy, state, index, y):
    return policy.observe(state, index, y)
