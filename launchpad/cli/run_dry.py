"""``launchpad run --dry-run``: a line to paste; all else on stdout is shell comment."""

import os
import sys
from collections.abc import Iterator

from launchpad.cli.common import Session, write_json
from launchpad.command import pasted_word, to_text
from launchpad.dryrun import LINE_LIMIT, DryRun, dry_run
from launchpad.launcher.request import RunRequest
from launchpad.launcher.way import way_to
from launchpad.printable import printable


def show(session: Session, request: RunRequest) -> int:
    """Print what would be done; start nothing."""
    dry = dry_run(request.spec, way_to(session.desk(), request.target))
    push = _push_line(request)
    if session.json:
        write_json(
            {
                "schema": 1,
                "dry_run": dry.line,
                "push": push,
                "needs": list(dry.needs),
                "layers": [{"who": sight.who, "sees": list(sight.sees)} for sight in dry.sights],
            }
        )
    else:
        lines = _lines(dry) if push is None else (push, *_lines(dry))
        sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


def _push_line(request: RunRequest) -> str | None:
    """What copies the tree by hand, and comes first."""
    push = request.push
    if push is None:
        return None
    user = [] if push.user is None else ["-u", push.user]
    words = [*user, to_text(os.fsencode(push.source)), f"{request.target}:{push.path}"]
    return " ".join(map(pasted_word, ["launchpad", "push", *words]))


def _lines(dry: DryRun) -> Iterator[str]:
    yield dry.line
    if dry.needs:
        yield f"# takes from your shell: {' '.join(dry.needs)}"
    if dry.is_too_long:
        yield (
            f"# longer than a command line can be ({LINE_LIMIT} bytes): it cannot be pasted;"
            " launchpad sends it on stdin"
        )
    yield "#"
    for number, sight in enumerate(dry.sights, 1):
        yield f"# {number}. {sight.who} sees:"
        for line in sight.sees:
            yield f"#      {printable(line)}"
    yield "#"
    yield "# launchpad run does the same, and proves the start, records the end, finds it again."
