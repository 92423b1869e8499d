"""Measure how to train many small convolutional networks on one core: how to convolve, and map against vmap.

python benchmarks/networks.py [--quick] prints milliseconds per training (one configuration) and ratios; the cases take
turns (A B C A B C ...) as in run.py, whose protocol `CASES` follows.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from statistics import median

from metabo.compute.cores import own_cores, own_process

if __name__ == "__main__":
    own_process()
    own_cores(1, 0)

import jax
import jax.numpy as jnp
import numpy as np
from case import Case

from metabo.collect import networks
from metabo.collect.training import train

BATCH, STEPS, SIDE, CLASSES, EXAMPLES, SHOWN = 64, 96, 14, 10, 1024, 256


def library(x: jax.Array, kernel: jax.Array, stride: int) -> jax.Array:
    """Convolve by JAX's own operation, padded as `networks.patches` pads."""
    ends = [(w // 2, w // 2) for w in kernel.shape[:-2]]
    return jax.lax.conv_general_dilated(x, kernel, (stride, stride), ends, dimension_numbers=("NHWC", "HWIO", "NHWC"))


def im2col(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """Convolve with stride 1 as patches times a matrix."""
    return networks.patches(x, kernel.shape[:-2], 1) @ kernel.reshape(-1, kernel.shape[-1])


def max_pool(x: jax.Array) -> jax.Array:
    """Halve height and width by the maximum of 2 x 2 places, an odd last one left out."""
    n, height, width, channels = x.shape
    x = x[:, : height // 2 * 2, : width // 2 * 2]
    return x.reshape(n, height // 2, 2, width // 2, 2, channels).max(axis=(2, 4))


OPERATIONS = {
    "metabo": networks.Operations(networks.halved, networks.pooled),
    "im2col": networks.Operations(networks.halved, lambda x, k: max_pool(im2col(x, k))),
    "library": networks.Operations(lambda x, k: library(x, k, 2), lambda x, k: max_pool(library(x, k, 1))),
}
"""`metabo` and `im2col` differ in convolution followed by pooling only."""


def program(variant: str, operations: str, vmapped: bool, number: int, steps: int) -> tuple[Callable, tuple]:
    """Return the jitted training of `number` configurations and its arguments: images of noise, a stable point."""
    network = networks.build(variant, (SIDE, SIDE, 1), CLASSES, OPERATIONS[operations])
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.normal(size=(EXAMPLES, SIDE, SIDE, 1)), jnp.float32)
    y = jnp.asarray(rng.integers(0, CLASSES, EXAMPLES), jnp.int32)
    one = partial(train, network, (x, y, x[:SHOWN], y[:SHOWN]), BATCH, steps, SHOWN // 2)
    points = jnp.tile(jnp.asarray([0.9, 0.01, 1.0, 0.9], jnp.float32), (number, 1))
    given = (jax.random.split(jax.random.key(0), number), points)
    return jax.jit(jax.vmap(one) if vmapped else lambda *c: jax.lax.map(lambda a: one(*a), c)), given


def case(variant: str, operations: str, vmapped: bool, quick: bool = False) -> Case:
    """Compile one way to train; a unit is the training of one configuration."""
    number = 2 if quick else 8
    function, given = program(variant, operations, vmapped, number, 8 if quick else STEPS)
    start = time.perf_counter()
    lowered = function.lower(*given)
    traced = time.perf_counter()
    compiled = lowered.compile()
    ready = time.perf_counter()

    def repeat() -> int:
        jax.block_until_ready(compiled(*given))
        return number

    return Case(repeat, traced - start, ready - traced)


VARIANTS = ("max_pool_relu", "max_pool_tanh", "simple_cnn")
WAYS = {f"{name}_{'vmap' if v else 'map'}": (name, v) for name, v in product(OPERATIONS, (False, True))}
CASES = {variant: {way: partial(case, variant, *arguments) for way, arguments in WAYS.items()} for variant in VARIANTS}


def measure(variant: str, rounds: int, quick: bool) -> dict[str, list[float]]:
    """Return milliseconds per training of each way, one number per turn."""
    cases = {name: make(quick=quick) for name, make in CASES[variant].items()}
    times: dict[str, list[float]] = {name: [] for name in cases}
    for made in cases.values():
        made.repeat()
    for _ in range(rounds):
        for name, made in cases.items():
            start = time.perf_counter()
            units = made.repeat()
            times[name].append(1e3 * (time.perf_counter() - start) / units)
    return times


def main() -> None:
    """Print one table per network."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="toy sizes: its times mean nothing")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each way")
    given = parser.parse_args()
    print(f"{SIDE} x {SIDE} images, batch {BATCH}, {STEPS} steps: ms per training, ratio to metabo_map (medians)")
    for variant in VARIANTS:
        times = measure(variant, given.rounds, given.quick)
        print(f"\n{variant}")
        for name, taken in times.items():
            ratio = median(t / r for t, r in zip(taken, times["metabo_map"], strict=True))
            print(f"  {name:14}{median(taken):10.1f}{ratio:8.2f}")


if __name__ == "__main__":
    main()
