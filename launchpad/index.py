"""The memory of this machine: which job was started where. A convenience, never the truth.

One sqlite3 file, 0600 in a 0700 directory, for any number of processes and threads at once: every
call opens, works in one transaction, and closes. The rollback journal is kept (no WAL), because
homes lie on NFS at times, where WAL's shared memory does not work.
"""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from launchpad.command import to_bytes, to_text
from launchpad.errors import ClientError, UsageError
from launchpad.job import Identity, JobId
from launchpad.state_directory import own_state_directory
from launchpad.target import Target, ThisMachine, parse_target

SCHEMA_VERSION = 1

# How long a call waits for other processes that are writing (seconds).
PATIENCE = 30.0

# Text that comes from elsewhere is kept as bytes: it need not be UTF-8, and sqlite's TEXT must be.
_SCHEMA = """
CREATE TABLE job (
  sequence INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  target TEXT NOT NULL,
  host BLOB,
  node BLOB,
  ctid INTEGER,
  state_directory BLOB NOT NULL,
  log BLOB NOT NULL,
  record TEXT NOT NULL,
  created_at REAL NOT NULL,
  identity TEXT,
  end TEXT,
  end_shown INTEGER NOT NULL DEFAULT 0,
  seen TEXT
);
CREATE INDEX job_name ON job (name);
CREATE INDEX job_time ON job (created_at);
CREATE INDEX job_open ON job (created_at) WHERE end IS NULL;
CREATE INDEX job_unshown ON job (created_at) WHERE end IS NOT NULL AND end_shown = 0;
"""

_COLUMNS = (
    "id, target, host, node, ctid, state_directory, log, record, created_at, identity, end,"
    " end_shown, seen"
)
_NEWEST_FIRST = "ORDER BY created_at DESC, sequence DESC"


@dataclass(frozen=True, slots=True)
class Entry:
    """What this machine remembers of one job.

    ``target``: as :func:`launchpad.target.parse_target` reads it without any alias, so that it
    outlives changes of the configuration. ``record``: the job's spec, one line of JSON.
    ``created_at``: seconds since the epoch by this machine's clock. ``end``: the known end as JSON
    data, None while none is known; ``end_shown``: whether a user has seen it. ``seen``: how it
    stood when its container last answered: ``{"state": …, "at": epoch seconds}``.
    """

    id: JobId
    target: str
    host: str | None
    node: str | None
    ctid: int | None
    state_directory: str
    log: str
    record: str
    created_at: float
    identity: Identity | None = None
    end: dict[str, Any] | None = None
    end_shown: bool = False
    seen: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        """The job's name."""
        return self.id.name

    @property
    def place(self) -> Target:
        """The target, with the number of the very container in which the job was started.

        A container's name may be given to another one; and a name has to be looked up. Raises
        :class:`~launchpad.errors.UsageError` where the target cannot be read.
        """
        target = parse_target(self.target)
        return target if isinstance(target, ThisMachine) else replace(target, number=self.ctid)

    @property
    def spec(self) -> dict[str, Any]:
        """The record as data; empty where it cannot be read."""
        try:
            data = json.loads(self.record)
        except ValueError:
            return {}
        return data if isinstance(data, dict) else {}


def by_container(entries: Iterable[Entry]) -> list[tuple[Entry, ...]]:
    """The jobs that one call can ask about, in groups; in the order in which they came."""
    groups: dict[tuple[str, int | None, str], list[Entry]] = {}
    for entry in entries:
        key = (entry.target, entry.ctid, entry.state_directory)
        groups.setdefault(key, []).append(entry)
    return [tuple(group) for group in groups.values()]


class Index:
    """The index file at ``path`` (by default in this user's state directory).

    Every method raises :class:`~launchpad.errors.ClientError` where the file cannot be used. A file
    that does not exist yet is an empty index.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or own_state_directory() / "index.sqlite3"

    def add(self, entry: Entry) -> Entry:
        """Remember a job that is about to be started; gives back ``entry``."""
        with self._writing() as connection:
            connection.execute(_INSERT, _row(entry))
        return entry

    def learn(self, entries: Iterable[Entry]) -> None:
        """Remember jobs that were found in a container; what is known already is completed."""
        with self._writing() as connection:
            for entry in entries:
                connection.execute(
                    f"{_INSERT} ON CONFLICT (id) DO UPDATE SET"
                    " host = coalesce(excluded.host, host), node = coalesce(excluded.node, node),"
                    " ctid = coalesce(excluded.ctid, ctid), log = excluded.log,"
                    " identity = coalesce(excluded.identity, identity),"
                    " end = coalesce(end, excluded.end)",
                    _row(entry),
                )

    def note_started(
        self, job: JobId, identity: Identity, node: str | None, ctid: int | None
    ) -> None:
        """Remember who the job's main process is, and where its container was met."""
        with self._writing() as connection:
            connection.execute(
                "UPDATE job SET identity = ?, node = coalesce(?, node), ctid = coalesce(?, ctid)"
                " WHERE id = ?",
                (_identity_text(identity), _blob(node), ctid, job.text),
            )

    def forget(self, *jobs: JobId) -> None:
        """Remove jobs; nothing where one is not there."""
        with self._writing() as connection:
            connection.executemany("DELETE FROM job WHERE id = ?", [(job.text,) for job in jobs])

    def note_ends(self, ends: Mapping[JobId, dict[str, Any]]) -> None:
        """Remember how these jobs ended. A known end stays: ends do not change."""
        with self._writing() as connection:
            connection.executemany(
                "UPDATE job SET end = ? WHERE id = ? AND end IS NULL",
                [(json.dumps(end), job.text) for job, end in ends.items()],
            )

    def note_seen(self, jobs: Iterable[JobId], state: str, at: float) -> None:
        """Remember how these jobs stood at ``at`` (epoch seconds), for when nobody answers."""
        text = json.dumps({"state": state, "at": at})
        with self._writing() as connection:
            connection.executemany(
                "UPDATE job SET seen = ? WHERE id = ?", [(text, job.text) for job in jobs]
            )

    def mark_shown(self, jobs: Iterable[JobId]) -> None:
        """The user has seen how these jobs ended."""
        with self._writing() as connection:
            connection.executemany(
                "UPDATE job SET end_shown = 1 WHERE id = ? AND end IS NOT NULL",
                [(job.text,) for job in jobs],
            )

    def get(self, job: JobId) -> Entry | None:
        """The job of that id."""
        return next(iter(self._select("WHERE id = ?", job.text)), None)

    def find(self, word: str) -> list[Entry]:
        """The jobs that ``word`` may mean, newest first: by id, else by name, else by id prefix.

        More than one entry is a name that several jobs have, or an ambiguous prefix.
        """
        if not word or not word.isascii():
            return []
        return (
            self._select("WHERE id = ?", word)
            or self._select("WHERE name = ?", word)
            or self._select("WHERE substr(id, 1, ?) = ?", len(word), word)
        )

    def newest(self) -> Entry | None:
        """The job that was created last."""
        return next(iter(self._select(limit=1)), None)

    def open_entries(self) -> list[Entry]:
        """The jobs whose end is not known, newest first."""
        return self._select("WHERE end IS NULL")

    def unshown(self) -> list[Entry]:
        """The jobs whose end is known and was never shown, newest first."""
        return self._select("WHERE end IS NOT NULL AND end_shown = 0")

    def entries(self, since: float | None = None) -> list[Entry]:
        """All jobs, or those created at ``since`` (epoch seconds) or later; newest first."""
        if since is None:
            return self._select()
        return self._select("WHERE created_at >= ?", since)

    def names(self) -> list[str]:
        """All ids and names: for completion, and for "did you mean"."""
        with self._reading() as connection:
            if connection is None:
                return []
            rows = connection.execute(
                "SELECT id, name FROM job ORDER BY created_at DESC, sequence DESC"
            ).fetchall()
        return list(dict.fromkeys(word for row in rows for word in row))

    def targets(self) -> list[str]:
        """The targets of all jobs, those of the newest job first."""
        with self._reading() as connection:
            if connection is None:
                return []
            rows = connection.execute(
                "SELECT target FROM job GROUP BY target ORDER BY max(created_at) DESC"
            ).fetchall()
        return [target for (target,) in rows]

    def _select(self, where: str = "", *values: object, limit: int = -1) -> list[Entry]:
        with self._reading() as connection:
            if connection is None:
                return []
            query = f"SELECT {_COLUMNS} FROM job {where} {_NEWEST_FIRST} LIMIT ?"  # noqa: S608
            return [_entry(row) for row in connection.execute(query, (*values, limit))]

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection | None]:
        with self._translated():
            if not self.path.exists():
                yield None
                return
            with closing(self._connect()) as connection:
                # One look from before the first commit of another process: an empty file.
                yield connection if self._version(connection) else None

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._translated():
            self._create_file()
            with closing(self._connect()) as connection:
                connection.execute("BEGIN IMMEDIATE")
                if self._version(connection) == 0:
                    for statement in _SCHEMA.split(";\n"):
                        connection.execute(statement)
                    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
                yield connection
                connection.execute("COMMIT")

    def _create_file(self) -> None:
        directory = self.path.parent
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if directory.stat().st_mode & 0o077 and directory.stat().st_uid == os.geteuid():
            directory.chmod(0o700)
        # sqlite gives its journal the mode of the file itself.
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))

    def _connect(self) -> sqlite3.Connection:
        # No implicit transactions: they begin where _writing says so.
        return sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None)

    def _version(self, connection: sqlite3.Connection) -> int:
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if version > SCHEMA_VERSION:
            raise ClientError(
                f"the index {self.path} was written by a newer launchpad (format {version},"
                f" this one knows {SCHEMA_VERSION})",
                advice="use the newer launchpad, or let this one have an index of its own:"
                " XDG_STATE_HOME=DIRECTORY launchpad …",
            )
        return version

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ClientError(
                f"the index {self.path} cannot be used",
                details=str(error),
                advice=f"is {self.path.parent} yours, and writable? Or set XDG_STATE_HOME",
            ) from error
        except sqlite3.OperationalError as error:
            if str(error).startswith(("no such", "table ")):
                raise self._damaged(error) from error
            raise ClientError(
                f"the index {self.path} cannot be used",
                details=str(error),
                advice=(
                    "another process holds it: try again"
                    if "locked" in str(error)
                    else f"is {self.path.parent} writable, and its disk not full?"
                ),
            ) from error
        except sqlite3.IntegrityError as error:
            raise ClientError(
                "the new job's id is in the index already", details=str(error), advice="try again"
            ) from error
        except (sqlite3.DatabaseError, UsageError, ValueError, TypeError) as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> ClientError:
        return ClientError(
            f"the index {self.path} is damaged",
            details=str(error),
            advice=f"mv {self.path} {self.path}.damaged; no job is lost:"
            " launchpad status TARGET finds them again",
        )


_INSERT = (
    "INSERT INTO job (id, name, target, host, node, ctid, state_directory, log, record,"
    " created_at, identity, end, end_shown, seen)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


def _blob(text: str | None) -> bytes | None:
    return None if text is None else to_bytes(text)


def _text(data: bytes | None) -> str | None:
    return None if data is None else to_text(data)


def _identity_text(identity: Identity | None) -> str | None:
    if identity is None:
        return None
    fields = [identity.pid, identity.ticks, identity.session, identity.boot_id, identity.boot_ticks]
    return json.dumps(fields)


def _row(entry: Entry) -> tuple[object, ...]:
    return (
        entry.id.text,
        entry.name,
        entry.target,
        _blob(entry.host),
        _blob(entry.node),
        entry.ctid,
        _blob(entry.state_directory),
        _blob(entry.log),
        entry.record,
        entry.created_at,
        _identity_text(entry.identity),
        None if entry.end is None else json.dumps(entry.end),
        int(entry.end_shown),
        None if entry.seen is None else json.dumps(entry.seen),
    )


def _entry(row: Sequence[Any]) -> Entry:
    (
        job,
        target,
        host,
        node,
        ctid,
        state_directory,
        log,
        record,
        created_at,
        identity,
        end,
        shown,
        seen,
    ) = row
    return Entry(
        id=JobId(job),
        target=target,
        host=_text(host),
        node=_text(node),
        ctid=ctid,
        state_directory=to_text(state_directory),
        log=to_text(log),
        record=record,
        created_at=created_at,
        identity=None if identity is None else Identity(*json.loads(identity)),
        end=None if end is None else json.loads(end),
        end_shown=bool(shown),
        seen=None if seen is None else json.loads(seen),
    )
