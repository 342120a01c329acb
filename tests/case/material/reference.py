"""References and fills for the test cases; never run."""


def scale(x, n):
    return 2 * x


def mask(shape, seed):
    return None
