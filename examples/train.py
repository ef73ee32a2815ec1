"""A stand-in for a training run: a line for each epoch, a progress bar, a checkpoint on SIGTERM."""

import signal
import sys
import time

EPOCHS = 3
STEPS = 40


def save_and_exit(_signal: int, _frame: object) -> None:
    """What a well-behaved training loop does when it is asked to end."""
    print("\nsaving checkpoint", flush=True)
    sys.exit(0)


def main() -> None:
    """Train nothing, visibly."""
    signal.signal(signal.SIGTERM, save_and_exit)
    print("loading config.yaml")
    for epoch in range(1, EPOCHS + 1):
        for step in range(1, STEPS + 1):
            loss = 4.0 / (epoch + step / STEPS)
            print(f"\repoch {epoch} step {step:3d}/{STEPS} loss {loss:.3f}", end="", flush=True)
            time.sleep(0.05)
        print()
    print("done")


if __name__ == "__main__":
    main()
