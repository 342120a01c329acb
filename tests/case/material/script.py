"""Functions for python targets; never run."""

from os.path import join

import reference


def some(n, mode="x", *, other=3):
    return n


def everything(**kwargs):
    return kwargs


def needs_more(n, unknown_thing):
    return reference.scale(n, unknown_thing)


imported = join
