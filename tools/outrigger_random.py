"""Outrigger's counter-based random numbers (common/random.h) in numpy: PyTorch starts from the same weights."""

import functools
import hashlib

import numpy

INITIAL_WEIGHTS = 5
SYNTHETIC_DATA = 8


def _mix(x):
    x = (x + 0x9E3779B97F4A7C15) % 2**64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    return x ^ (x >> 31)


def numbers(seed, use, a, count, b=0):
    """The first `count` 32-bit numbers of RandomStream(seed, use, a, b), as uint64."""
    key = _mix(seed ^ _mix(use))
    k0, k1 = key % 2**32, key >> 32
    blocks = (count + 3) // 4
    c = [numpy.arange(blocks, dtype=numpy.uint64)]
    c += [numpy.full(blocks, value, dtype=numpy.uint64) for value in (b, a % 2**32, a >> 32)]
    low = numpy.uint64(2**32 - 1)
    half = numpy.uint64(32)
    for _ in range(10):
        p0, p1 = c[0] * numpy.uint64(0xD2511F53), c[2] * numpy.uint64(0xCD9E8D57)
        c = [(p1 >> half) ^ c[1] ^ numpy.uint64(k0), p1 & low, (p0 >> half) ^ c[3] ^ numpy.uint64(k1), p0 & low]
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return numpy.stack(c, axis=1).reshape(-1)[:count]


def normal(seed, use, a, count):
    pairs = numbers(seed, use, a, 2 * count).astype(numpy.float64).reshape(-1, 2)
    u, v = (pairs[:, 0] + 1) * 2.0**-32, pairs[:, 1] * 2.0**-32
    return (numpy.sqrt(-2 * numpy.log(u)) * numpy.cos(2 * numpy.pi * v)).astype(numpy.float32)


def uniform(seed, use, a, count):
    return (numbers(seed, use, a, count) >> numpy.uint64(8)).astype(numpy.float64) * 2.0**-24


def below_power_of_two(seed, use, a, count, bound):
    assert bound & (bound - 1) == 0
    return (numbers(seed, use, a, count) * numpy.uint64(bound)) >> numpy.uint64(32)


def _stream_of(name):
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")


@functools.lru_cache(maxsize=None)
def initial(name, shape, seed, kind, groups=1, fan_in=None):
    """What nn::initialize draws for a parameter, read-only.

    kind: convolution, arcface, linear (also for biases), one, zero or slope.
    """
    count = int(numpy.prod(shape))
    if kind in ("convolution", "arcface"):
        values = normal(seed, INITIAL_WEIGHTS, _stream_of(name), count).astype(numpy.float64)
        deviation = 0.01 if kind == "arcface" else (2.0 / (shape[0] * shape[2] * shape[3] // groups)) ** 0.5
        values = deviation * values
    elif kind == "linear":
        values = fan_in**-0.5 * (2 * uniform(seed, INITIAL_WEIGHTS, _stream_of(name), count) - 1)
    else:
        values = numpy.full(count, {"one": 1, "zero": 0, "slope": 0.25}[kind], dtype=numpy.float64)
    values = values.astype(numpy.float32).reshape(shape)
    values.flags.writeable = False
    return values
