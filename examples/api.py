"""The Python API: a sweep in threads, and the best of it. ``python3 examples/api.py TARGET``."""

import json
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import launchpad

HERE = Path(__file__).parent


def train(target: str, rate: float) -> dict[str, float]:
    """Train with one learning rate, and fetch the result."""
    place = f"/opt/api/{rate}"
    job = launchpad.run(
        target,
        ["python3", "train.py", "--lr", str(rate), "--epochs", "1", "--out", place],
        name="api",
        cwd="/opt/api",
    )
    if job.wait(timeout=120) != 0:
        status = job.status()
        raise RuntimeError(f"{job.id} {status.state} ({status.reason}): {job.tail(5)}")
    with tempfile.TemporaryDirectory() as directory:
        launchpad.pull(target, place, directory)
        result: dict[str, float] = json.loads((Path(directory) / "result.json").read_text())
    return result


def main() -> None:
    """Three learning rates at once, over one connection."""
    target = sys.argv[1]
    try:
        launchpad.push(HERE / "train.py", target, "/opt/api/train.py")
        with ThreadPoolExecutor() as threads:
            results = list(threads.map(lambda rate: train(target, rate), (1e-2, 1e-3, 1e-4)))
    except launchpad.LaunchpadError as error:
        # Which layer, what happened, what to do.
        sys.exit(str(error))
    best = min(results, key=lambda result: result["loss"])
    print(f"best: learning rate {best['lr']} with loss {best['loss']}")


if __name__ == "__main__":
    main()
