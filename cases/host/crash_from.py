"""A program without CUDA that dies from a size on.

rows * columns values are packed into a table of 4096, and nobody asks whether they fit.
"""

import argparse
import ctypes


def pack(rows, columns):
    """Sums of the rows, by way of the table."""
    table = [0] * 4096
    sums = []
    for row in range(rows):
        for column in range(columns):
            place = row * columns + column
            if place >= len(table):
                ctypes.string_at(0)  # what an unchecked write behind the table ends in: SIGSEGV
            table[place] = column
        sums.append(sum(table[row * columns : (row + 1) * columns]))
    return sums


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--columns", type=int, required=True)
    arguments = parser.parse_args()
    print(f"packing {arguments.rows} rows of {arguments.columns}", flush=True)
    sums = pack(arguments.rows, arguments.columns)
    print(f"packed, last sum {sums[-1]}")


if __name__ == "__main__":
    main()
