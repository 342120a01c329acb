"""References of the fault cases: what the kernels compute where they do not fail."""

import numpy as np


def read_at(p, index):
    """The 32 elements from `index` on; nothing where they do not exist."""
    return p[index : index + 32] if index + 32 <= len(p) else np.full(32, np.nan, np.float32)


def count_up(n):
    """0, 1, 2, ... as float32."""
    return np.arange(n, dtype=np.float32)


def load_vectors(p, offset):
    """128 floats from `offset` on."""
    return p[offset : offset + 128]


def block_of_ones():
    """128 times 1: what a shift by 0 leaves in shared memory."""
    return np.ones(128, np.float32)


def warp_of_ones():
    """32 times 1."""
    return np.ones(32, np.float32)


def two_paths(n):
    """The path that large inputs take, or the other."""
    x = np.arange(32, dtype=np.float32)
    return x * x + x if n > 4 else x


def call_table(offset):
    """Twice or three times the thread's number."""
    return np.arange(32, dtype=np.float32) * (2 + offset // 8)


def twice():
    """Twice the thread's number."""
    return 2 * np.arange(32, dtype=np.float32)


def recurse(p, depth):
    """Sixteen entries a level, p[i % 4] + level each."""
    levels = np.arange(depth + 1, dtype=np.int64)
    return np.array([(levels.size * 4 * int(p.sum()) + 16 * int(levels.sum())) & 0xFFFFFFFF], np.uint32).view(np.int32)


def row_numbers(rows):
    """The number of every row."""
    return np.arange(rows, dtype=np.float32)
