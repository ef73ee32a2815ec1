"""What the configuration says for options of verbs: sections ``[defaults.VERB]``."""

from collections.abc import Iterator, MutableMapping
from typing import Any, NoReturn

import click

from launchpad.cli.common import ConnectionOption, Session


class Defaults(MutableMapping[str, Any]):
    """Values by the names of click's parameters, as click wants a ``default_map``.

    The file is read when click comes to the first option that was not given: those that were given,
    ``--config`` among them, it has seen by then.
    """

    def __init__(self, session: Session, verb: click.Command) -> None:
        self._session = session
        self._verb = str(verb.name)
        self._keys = option_keys(verb)

    def _said(self) -> dict[str, Any]:
        said = self._session.config.verbs.get(self._verb, {})
        return {name: said[key] for name, key in self._keys.items() if key in said}

    def __getitem__(self, name: str) -> Any:
        return self._said()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._said())

    def __len__(self) -> int:
        return len(self._said())

    def __setitem__(self, name: str, value: Any) -> NoReturn:
        raise NotImplementedError

    def __delitem__(self, name: str) -> NoReturn:
        raise NotImplementedError


def option_keys(verb: click.Command) -> dict[str, str]:
    """The key in ``[defaults.VERB]`` of each option, by its parameter's name."""
    return {
        str(param.name): max(param.opts, key=len).removeprefix("--").replace("-", "_")
        for param in verb.params
        if isinstance(param, click.Option) and not isinstance(param, ConnectionOption)
    }


def chosen_mode(
    session: Session, verb: str, *, follow: bool | None, wait: bool | None
) -> tuple[bool, bool]:
    """Whether to follow, and whether to wait. What was said here goes before any habit.

    ``--json`` is one document: no habit puts a log in front of it.
    """
    said = session.config.verbs.get(verb, {})
    if follow is None and wait is None:
        return bool(said.get("follow")) and not session.json, bool(said.get("wait"))
    return bool(follow), bool(wait)
