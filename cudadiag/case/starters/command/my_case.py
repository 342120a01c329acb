"""Stands for your own program: prints what it does and ends with status 0."""

import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, required=True)
parser.add_argument("--tokens", type=int, required=True)
given = parser.parse_args()
print(f"{given.tokens} tokens in {given.batch} batches")
print("done")
