"""The configuration: aliases of targets and what holds for them, and defaults for all.

One file, ``$XDG_CONFIG_HOME/launchpad/config.toml`` (``~/.config``), or the one that was named.
Nothing is ever read from the current directory: a cloned repository must not decide where your
keys are sent.
"""

import os
from pathlib import Path

from launchpad.errors import ClientError
from launchpad.settings import Config


def default_path() -> Path:
    """Where the file is looked for. A relative ``XDG_CONFIG_HOME`` is invalid, and ignored."""
    configured = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(configured) if configured.startswith("/") else Path.home() / ".config"
    return base / "launchpad" / "config.toml"


def load(path: Path | None = None) -> Config:
    """The configuration in ``path``, or in the default file if there is one.

    Raises :class:`~launchpad.errors.ClientError` with file and line for what cannot be read or
    meant; also where ``path`` was named and is not there.
    """
    chosen = path or default_path()
    try:
        text = chosen.read_text("utf-8")
    except FileNotFoundError:
        if path is None:
            return Config()
        raise ClientError(
            f"there is no configuration file {path}", advice="--config, or LAUNCHPAD_CONFIG"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ClientError(
            f"the configuration {chosen} cannot be read", details=str(error)
        ) from error
    # Late: many have no such file.
    from launchpad.config_reader import parse

    return parse(text, chosen)
