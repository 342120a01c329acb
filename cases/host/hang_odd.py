"""A program without CUDA that hangs on odd sizes: workers are paired, and one without a partner waits for ever."""

import argparse
import threading


def exchange(workers):
    """Every worker swaps its number with its partner; returns what each has got."""
    met = [threading.Barrier(2) for _ in range((workers + 1) // 2)]
    got = list(range(workers))

    def run(worker):
        met[worker // 2].wait()  # the last of an odd number is alone here
        got[worker] = worker ^ 1

    threads = [threading.Thread(target=run, args=(worker,)) for worker in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return got


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, required=True)
    arguments = parser.parse_args()
    print(f"{arguments.workers} workers", flush=True)
    print(f"exchanged, checksum {sum(exchange(arguments.workers))}")


if __name__ == "__main__":
    main()
