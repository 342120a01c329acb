"""Signatures: versioned keys made of device facts, for telling one bug from another; comparison; people's
judgements."""

from cudadiag.signature.compare import Comparison, Likeness, explain_difference
from cudadiag.signature.families import family, may_be_one
from cudadiag.signature.judgements import Judgements, Merge, read_judgements
from cudadiag.signature.key import VERSION, Signature, signature
from cudadiag.signature.normal import normal_file, normal_kernel

__all__ = [
    "VERSION",
    "Comparison",
    "Judgements",
    "Likeness",
    "Merge",
    "Signature",
    "explain_difference",
    "family",
    "may_be_one",
    "normal_file",
    "normal_kernel",
    "read_judgements",
    "signature",
]
