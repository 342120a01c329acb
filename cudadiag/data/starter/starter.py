"""The function under test. An exception is a fault; so is a signal, a CUDA error, or a hang."""


def step(batch, size):
    print("batch", batch, "size", size)
    if size > 8 and size % 2:
        raise RuntimeError(f"cannot split {size} in halves")
