"""Random streams: every key is derived from the run's seed and the names of what it is for."""

import zlib

import jax
from jaxtyping import Array, Key


def stream(seed: int, *names: str | int) -> Key[Array, ""]:
    """Return the key of one named stream, e.g. ``stream(0, "prior", fold, 3)``.

    Names are hashed (CRC-32), so a stream does not move when folds, tasks or spaces are added or removed.
    """
    key = jax.random.key(seed)
    for name in names:
        number = name if isinstance(name, int) else zlib.crc32(name.encode())
        key = jax.random.fold_in(key, number)
    return key
