"""``launchpad doctor``."""

import sys

import click

from launchpad.cli.common import Session, say, verb, write_json

_EPILOG = """\b
Read-only: nothing is started, changed or left behind. Each fault comes with
its fix; a note is worth knowing and keeps no job from starting. Exit code 0
only if a job could start, else 125.
"""

_COLOURS = {"ok": "green", "note": "yellow", "fault": "red", "skipped": "red"}


@verb(epilog=_EPILOG)
@click.argument("target", metavar="TARGET")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def doctor(session: Session, target: str, *, as_json: bool) -> int:
    """Check each layer of a target, and name the fix of each fault."""
    from launchpad.cli.progress import Progress
    from launchpad.examination import Check
    from launchpad.launcher.doctor import examine
    from launchpad.printable import printable, printable_lines

    desk = session.desk()
    place = desk.target(target)
    colour = session.colour(sys.stdout)

    def show(check: Check) -> None:
        progress.stop()
        verdict = (
            click.style(f"{check.verdict:<8}", fg=_COLOURS[check.verdict])
            if colour
            else (f"{check.verdict:<8}")
        )
        cost = "" if check.milliseconds is None else f"   {check.milliseconds:.0f} ms"
        lines = [f"  {verdict}{check.name:<12} {printable(check.what)}{cost}"]
        indent = " " * 23
        lines += [f"{indent}| {line}" for line in printable_lines(check.details)]
        lines += [f"{indent}fix: {line}" for line in printable_lines(check.fix)]
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()

    progress = Progress(f"examining {place}", enabled=session.colour(sys.stderr))
    progress.start()
    try:
        report = examine(desk, place, (lambda _check: None) if as_json else show)
    finally:
        progress.stop()
    if as_json:
        write_json(report.document())
    elif report.ok:
        say(f"a job can start here: launchpad run {target} -- COMMAND")
    else:
        say("no job can start here: see the faults above")
    return report.exit_code
