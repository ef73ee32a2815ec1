#!/usr/bin/env python3
"""Renders the pictures of the README from a real run.

    LAUNCHPAD_SSH_CONFIG=… docs/make_pictures.py [--target pve1:101] [--output docs/pictures]

Each command runs on a terminal of its own, and what it shows becomes an SVG, colours included.
The jobs that it starts are ended and removed again.
"""

import argparse
import fcntl
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

HERE = Path(__file__).resolve().parent
COLUMNS, ROWS = 96, 30

# What a command may take (seconds).
PATIENCE = 60.0

TRAIN = """
import itertools, time
for step in itertools.count(1):
    print(f"step {step} loss {2.5 / (1 + step / 20):.3f}", flush=True)
    time.sleep(0.1)
"""

# A picture's name, and what is typed in it. {target}: where; {train}: a training loop.
PICTURES: dict[str, tuple[str, ...]] = {
    "life": (
        "launchpad run -n train {target} -- python3 -c {train}",
        "launchpad status train",
        "launchpad kill train",
    ),
    "crash": (
        "launchpad run {target} -- python3 -c 'import nosuchmodule'",
        "launchpad status",
    ),
}


def on_terminal(command: str, environment: Mapping[str, str]) -> str:
    """Run ``command`` on a pty; all that it showed. Raises TimeoutError where it does not end."""
    primary, secondary = pty.openpty()
    fcntl.ioctl(primary, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    words = [sys.executable, "-m", *shlex.split(command)]
    process = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=secondary, stderr=secondary, env=environment
    )
    os.close(secondary)
    ends = time.monotonic() + PATIENCE
    shown = b""
    while True:
        if time.monotonic() > ends:
            process.kill()
            process.wait()
            raise TimeoutError(command)
        try:
            piece = os.read(primary, 65536)
        except OSError:  # the other side is closed
            break
        if not piece:
            break
        shown += piece
    os.close(primary)
    process.wait()
    return shown.decode("utf-8", "replace").replace("\r\n", "\n")


def typed(command: str) -> str:
    """A command as one would type it in a picture: the loop's text is too long for one."""
    return command.replace("python3 -c {train}", "python3 train.py")


def render(name: str, commands: Sequence[str], target: str, environment: Mapping[str, str]) -> str:
    """One picture, as SVG."""
    # To nowhere: it only keeps what is printed.
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Console(
            record=True, file=nowhere, width=COLUMNS, force_terminal=True, color_system="truecolor"
        )
        for command in commands:
            console.print(Text(f"$ {typed(command).format(target=target)}", "bold"))
            line = command.format(target=target, train=shlex.quote(TRAIN))
            # What was taken away again, such as a line about waiting, ends with an erasure.
            shown = re.sub(r"[^\n]*\r\x1b\[K", "", on_terminal(line, environment))
            console.print(Text.from_ansi(shown.rstrip("\n")))
        # The picture is to load nothing from anywhere.
        form = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
        svg = console.export_svg(title="launchpad", code_format=form, unique_id=name)
    return re.sub(r"[ \t]+\n", "\n", svg)


def main() -> None:
    """Make all of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--target", default="pve1:101")
    parser.add_argument("--output", type=Path, default=HERE / "pictures")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    for name, commands in PICTURES.items():
        with tempfile.TemporaryDirectory(prefix="launchpad-pictures-") as home:
            environment = {
                **{key: value for key, value in os.environ.items() if key != "NO_COLOR"},
                "HOME": home,
                "XDG_STATE_HOME": f"{home}/state",
                "XDG_CONFIG_HOME": f"{home}/config",
                "PYTHONPATH": str(HERE.parent),
                "TERM": "xterm-256color",
            }
            try:
                svg = render(name, commands, options.target, environment)
            finally:
                clean_up(environment)
        (options.output / f"{name}.svg").write_text(svg, "utf-8")


def clean_up(environment: Mapping[str, str]) -> None:
    """End and forget the jobs of this home, and no others."""
    launchpad = [sys.executable, "-m", "launchpad"]
    done = subprocess.run(
        [*launchpad, "status", "-q", "--all"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if jobs := done.stdout.split():
        subprocess.run(
            [*launchpad, "kill", "-s", "KILL", *jobs],
            env=environment, capture_output=True, check=False,
        )  # fmt: skip


if __name__ == "__main__":
    main()
