"""Diagnosis: what several observers say of one shape, and which explanations of its failure stand.

Everything here decides from a ledger's probes and runs nothing; `cudadiag/session` runs what is asked for.
"""
