"""Functions for python targets; never run."""

from os.path import join


def some(n, mode="x", *, other=3):
    return n


def everything(**kwargs):
    return kwargs


def needs_more(n, unknown_thing):
    return n


imported = join
