"""Stands for your own program: prints what it does and ends with status 0."""

import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, required=True)
parser.add_argument("--tokens", type=int, required=True)
given = parser.parse_args()
print("%d tokens in %d batches" % (given.tokens, given.batch))
print("done")
