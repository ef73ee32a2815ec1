"""Whole calls, as the verbs send them in two parts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from launchpad.scripts import LAUNCH_SCRIPTS, RemoteCall, begun_call, launch_data

if TYPE_CHECKING:
    from launchpad.job import JobSpec


def launch_call(
    prefix: tuple[str, ...], state_directory: str, job: JobSpec, record: str, *, follow: bool
) -> RemoteCall:
    """The call that starts ``job``."""
    call = begun_call(prefix, LAUNCH_SCRIPTS)
    data = launch_data(call.marker, state_directory, job, record, follow=follow)
    return replace(call, data=call.data + data)
