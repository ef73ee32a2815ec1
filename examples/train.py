"""A stand-in for a training run: a line for each epoch, a progress bar, a checkpoint on SIGTERM."""

import argparse
import json
import signal
import sys
import time
from pathlib import Path

STEPS = 40


def save_and_exit(_signal: int, _frame: object) -> None:
    """What a well-behaved training loop does when it is asked to end."""
    print("\nsaving checkpoint", flush=True)
    sys.exit(0)


def main() -> None:
    """Train nothing, visibly."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=1e-3, help="learning rate")
    parser.add_argument("--config", type=json.loads, default={}, help="settings, as JSON")
    parser.add_argument("--out", type=Path, help="directory for the result")
    options = parser.parse_args()
    epochs = options.config.get("epochs", options.epochs)
    rate = options.config.get("lr", options.lr)

    signal.signal(signal.SIGTERM, save_and_exit)
    print(f"training with learning rate {rate}")
    loss = 4.0
    for epoch in range(1, epochs + 1):
        for step in range(1, STEPS + 1):
            loss = 4.0 / (epoch + step / STEPS) + rate
            print(f"\repoch {epoch} step {step:3d}/{STEPS} loss {loss:.3f}", end="", flush=True)
            time.sleep(0.05)
        print()
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "result.json").write_text(json.dumps({"lr": rate, "loss": round(loss, 3)}))
    print("done")


if __name__ == "__main__":
    main()
