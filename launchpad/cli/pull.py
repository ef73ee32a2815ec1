"""``launchpad pull``."""

from pathlib import Path

import click

from launchpad.cli.common import LOCAL_PATH, Session, verb

_EPILOG = """\b
DEST gets the contents of PATH, whether or not it exists, and what it has
besides stays. PATH is absolute or begins with ~/ (quoted):
  launchpad pull pve1:101:/workspace/results results
  launchpad pull gpu:'~/proj' . --exclude checkpoints --exclude '*.pt'

\b
.gitignore is not heeded here: results are what it names. Links come as links
and are never followed; nothing is written outside of DEST.
"""


@verb(epilog=_EPILOG)
@click.argument("source", metavar="TARGET:PATH")
@click.argument("destination", metavar="DEST", type=LOCAL_PATH)
@click.option(
    "--exclude",
    "excludes",
    multiple=True,
    metavar="GLOB",
    help="Leave these out of a directory, as in .gitignore; repeat it.",
)
@click.option("-u", "--user", help="User in the container who reads the files (default: root).")
def pull(
    session: Session,
    /,
    *,
    source: str,
    destination: Path,
    excludes: tuple[str, ...],
    user: str | None,
) -> int:
    """Copy a file or directory out of the container."""
    from launchpad.cli.transfer_screen import Bar, check_order, finish, remote_path
    from launchpad.launcher import transfer
    from launchpad.printable import printable

    check_order(source, str(destination), "pull")
    there = remote_path(session, source, "pull")
    with Bar(session, f"pulling {printable(there.path.rstrip('/').rpartition('/')[2])}") as bar:
        request = transfer.Pull(
            target=there.target,
            path=there.path,
            destination=destination,
            user=user or there.user,
            excludes=excludes,
            measured=bar.enabled,
            on_progress=bar.show,
        )
        done = transfer.pull(session.desk(), request)
    finish(done, "pulled", f"from {source}")
    return 0
