"""Reference and table of position_past_table."""

import numpy as np


def angles(positions, dim):
    """Rotary angles, shape [positions, dim / 2]."""
    return np.asarray(positions)[:, None] * 10000.0 ** (-np.arange(dim // 2) / (dim // 2))


def rotary_table(shape):
    """Fill: cosines and sines of positions 0, 1, 2, ..."""
    angle = angles(np.arange(shape[0]), shape[1])
    return np.concatenate([np.cos(angle), np.sin(angle)], -1).astype(np.float32)


def rotate(x, prompt):
    """The rows of x at positions prompt, prompt + 1, ..., as if the table had no end."""
    half = x.shape[1] // 2
    angle = angles(prompt + np.arange(len(x)), x.shape[1])
    cosine, sine = np.cos(angle), np.sin(angle)
    first, second = x[:, :half].astype(np.float64), x[:, half:].astype(np.float64)
    return np.concatenate([first * cosine - second * sine, first * sine + second * cosine], -1).astype(np.float32)
