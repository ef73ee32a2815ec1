"""``launchpad completion``: the scripts for the shells, and the words that they ask for.

The scripts call ``launchpad completion SHELL -- WORD...`` with the words of the line so far, the
last one unfinished. What comes from elsewhere than the command line's own grammar is this
machine's index and configuration: nothing is asked over the network.
"""

import sys
from collections.abc import Callable, Iterable, Iterator

import click

from launchpad.cli.arguments import CommandVerb, command_words
from launchpad.cli.common import Session, verb
from launchpad.errors import LaunchpadError
from launchpad.index import Index

# The answer that stands for "names of files": the shell knows those itself.
FILES = ":files"

# More than that, and nobody would look through them.
_LIMIT = 200

_BASH = r"""# launchpad completion bash
_launchpad() {
  local line=${COMP_LINE:0:COMP_POINT} word found=()
  local -a words
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  word=${words[${#words[@]} - 1]}
  mapfile -t found < <(launchpad completion bash -- "${words[@]:1}" 2>/dev/null)
  if [[ ${found[0]-} == :files ]]; then
    compopt -o default
    COMPREPLY=()
    return
  fi
  # readline completes only what follows the last colon.
  if [[ $word == *:* && $COMP_WORDBREAKS == *:* ]]; then
    found=("${found[@]#"${word%"${word##*:}"}"}")
  fi
  COMPREPLY=("${found[@]}")
}
complete -o nosort -F _launchpad launchpad
"""

_ZSH = r"""#compdef launchpad
# launchpad completion zsh
_launchpad() {
  local -a found
  found=("${(@f)$(launchpad completion zsh -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ ${found[1]-} == :files ]]; then
    _files
  else
    compadd -V launchpad -- ${found:#}
  fi
}
if [[ ${funcstack[1]-} == _launchpad ]]; then
  _launchpad "$@"
else
  compdef _launchpad launchpad
fi
"""

_FISH = r"""# launchpad completion fish
function __launchpad_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found (launchpad completion fish -- $words[2..] 2>/dev/null)
    if test "$found[1]" = :files
        __fish_complete_path (commandline -ct)
    else
        printf '%s\n' $found
    end
end
complete -c launchpad -f -k -a '(__launchpad_complete)'
"""

SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}

_EPILOG = """\b
bash:  launchpad completion bash >~/.local/share/bash-completion/completions/launchpad
zsh:   launchpad completion zsh >~/.zfunc/_launchpad     (with fpath+=~/.zfunc before compinit)
fish:  launchpad completion fish >~/.config/fish/completions/launchpad.fish
"""


class _Completion(CommandVerb):
    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return super(CommandVerb, self).collect_usage_pieces(ctx)


@verb(cls=_Completion, epilog=_EPILOG)
@click.argument("shell", metavar="bash|zsh|fish", type=click.Choice(list(SCRIPTS)))
@click.pass_context
def completion(ctx: click.Context, session: Session, /, shell: str) -> None:
    """Print the script that completes launchpad's words in a shell."""
    words = command_words(ctx)
    if words is None:
        sys.stdout.write(SCRIPTS[shell])
        return
    sys.stdout.writelines(f"{word}\n" for word in complete(session, words or ("",)))


def complete(session: Session, words: tuple[str, ...]) -> list[str]:
    """What the last of ``words`` may become; :data:`FILES` alone for the name of a file.

    Never raises: a line that is half typed is wrong in many ways.
    """
    from click.shell_completion import ShellComplete

    from launchpad.cli import launchpad

    *finished, word = words
    if "--" in finished:
        return [FILES]
    try:
        completer = ShellComplete(launchpad, {"obj": session}, "launchpad", "")
        items = completer.get_completions(finished, word)
    except (click.ClickException, LaunchpadError, click.exceptions.Exit):
        return []
    if any(item.type in {"file", "dir"} for item in items):
        return [FILES]
    # A word with blanks or control characters would be several to the shells.
    found = (item.value for item in items if item.value.isprintable() and " " not in item.value)
    return list(dict.fromkeys(found))[:_LIMIT]


def job_words(session: Session) -> Iterator[str]:
    """Names and ids of jobs, those of the newest first."""
    del session
    yield from _or_nothing(Index().names)


def target_words(session: Session) -> Iterator[str]:
    """Aliases, targets that jobs have had, and ``local``."""
    yield from _or_nothing(lambda: list(session.config.targets))
    yield from _or_nothing(Index().targets)
    yield "local"


def _or_nothing(ask: Callable[[], Iterable[str]]) -> Iterable[str]:
    try:
        return ask()
    except LaunchpadError:
        return ()
