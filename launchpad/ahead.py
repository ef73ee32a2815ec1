"""``ssh -G`` for the host that stands on the command line, asked before anything else is loaded.

What it costs passes while click and the verb are loaded. It is a guess: whoever connects takes the
answer only where the question was the right one.
"""

from collections.abc import Sequence
from pathlib import Path

from launchpad.errors import LaunchpadError
from launchpad.sshconfig import Ahead, Question, ssh_program
from launchpad.target import RemoteContainer, parse_target


def look_ahead(words: Sequence[str], config_file: str | None) -> Ahead:
    """Ask about the first of the command line's words that reads ``HOST:CTID``, if there is one.

    ``config_file``: as the environment names it; one on the command line stops the search.
    """
    for word in words:
        if word == "--" or word.startswith(("-F", "--ssh-config")):
            break
        _host, colon, number = word.rpartition(":")
        if not colon or not number.isdigit() or word.startswith("-"):
            continue
        program = ssh_program()
        try:
            target = parse_target(word)
            if program is None or not isinstance(target, RemoteContainer):
                break
            host = target.host
            file = Path(config_file).expanduser() if config_file else None
            return Ahead(Question(program, host.name, host.user, host.port, file))
        except LaunchpadError:
            # Whoever needs it says what is wrong.
            break
    return Ahead()
