import zlib

import jax
import numpy as np

from metabo.compute.keys import stream


def bits(key):
    return tuple(np.asarray(jax.random.key_data(key)).tolist())


def test_streams_are_folded_checksums_of_their_names():
    assert zlib.crc32(b"prior") == 0xE5AEE812
    by_hand = jax.random.fold_in(jax.random.fold_in(jax.random.key(7), 0xE5AEE812), 3)
    assert bits(stream(7, "prior", 3)) == bits(by_hand)


def test_every_part_of_a_name_matters():
    names = [(0,), (1,), (0, "bo"), (0, "prior"), (0, "bo", "a"), (0, "a", "bo"), (0, "bo", "a", 0), (0, "bo", "a", 1)]
    names += [(0, "bo", "a", 0, 1), (0, "bo", "a", 1, 0), (0, "1"), (0, 1)]
    assert len({bits(stream(*name)) for name in names}) == len(names)


def test_streams_are_the_same_in_every_process_and_version():
    # Golden values: a change here would change every stored result.
    assert bits(stream(0, "bo", "task", 1, 2)) == (22386547, 2090881316)
    draws = jax.random.uniform(stream(0, "bo", "task", 1, 2), (3,), np.float64)
    np.testing.assert_allclose(draws, [0.96646336, 0.1700301, 0.64659115], atol=1e-8)
