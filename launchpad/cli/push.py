"""``launchpad push``."""

from pathlib import Path

import click

from launchpad.cli.common import LOCAL_PATH, Session, verb

_EPILOG = """\b
PATH gets SRC's contents, whether or not it exists: nothing is put "into" it,
and what it has besides stays. It is absolute or begins with ~/ (quoted, or your
own shell puts your home there):
  launchpad push . pve1:101:/workspace/proj
  launchpad push data.bin gpu:'~/data.bin'

\b
Of a directory, what .gitignore names and .git itself stay behind (all of it
comes with --no-ignore). Everything arrives before any of it takes its place:
a push that is cut off changes nothing.
"""


@verb(epilog=_EPILOG)
@click.argument("source", metavar="SRC", type=LOCAL_PATH)
@click.argument("destination", metavar="TARGET:PATH")
@click.option(
    "--exclude",
    "excludes",
    multiple=True,
    metavar="GLOB",
    help="Leave these out of a directory, as in .gitignore; repeat it.",
)
@click.option("--no-ignore", is_flag=True, help="Take what .gitignore names too, and .git.")
@click.option("-u", "--user", help="User in the container, who owns the files (default: root).")
def push(
    session: Session,
    /,
    *,
    source: Path,
    destination: str,
    excludes: tuple[str, ...],
    no_ignore: bool,
    user: str | None,
) -> int:
    """Copy a file or directory into the container."""
    from launchpad.cli.transfer_screen import Bar, check_order, finish, remote_path
    from launchpad.launcher import transfer
    from launchpad.printable import printable

    check_order(str(source), destination, "push")
    there = remote_path(session, destination, "push")
    with Bar(session, f"pushing {printable(source.name or str(source))}") as bar:
        request = transfer.Push(
            source=source,
            target=there.target,
            path=there.path,
            user=user or there.user,
            excludes=excludes,
            gitignore=not no_ignore,
            measured=bar.enabled,
            on_progress=bar.show,
        )
        done = transfer.push(session.desk(), request)
    finish(done, "pushed", f"to {destination}")
    return 0
