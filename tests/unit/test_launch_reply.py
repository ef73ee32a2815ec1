"""What launch.sh says becomes types, and refusals become errors that name layer and advice."""

import pytest

from launchpad.command import Argv
from launchpad.errors import JobRefused, Layer, ShellError
from launchpad.frames import Frame
from launchpad.job import Identity, JobId
from launchpad.launch_reply import Existing, Launched, Refused, read_launch
from launchpad.refusals import _ERRORS, Refusal, refusal_error

COMMAND = Argv(("python3", "train.py"))


def read(name: str, *words: str, payload: bytes = b"") -> object:
    return read_launch(Frame(name, words, payload), where="pve1:101", command=COMMAND)


def test_a_launch_tells_who_the_process_is() -> None:
    words = ("71", "900", "71", "b-1", "30", "1767225600", "70")
    reply = read("launched", *words, "setsid", payload=b"/a\nb/log\nno tmux")
    identity = Identity(71, 900, 71, "b-1", 30)
    assert reply == Launched(identity, 1767225600, 70, "setsid", "no tmux", "/a\nb/log")


def test_a_process_that_does_not_lead_its_session_is_no_proof() -> None:
    with pytest.raises(ShellError):
        read("launched", "71", "900", "12", "b-1", "30", "1767225600", "70", "setsid")


@pytest.mark.parametrize("words", [(), ("71",), ("x",) * 8, ("71",) * 9])
def test_a_reply_that_cannot_be_read_is_an_error_of_the_shell(words: tuple[str, ...]) -> None:
    with pytest.raises(ShellError):
        read("launched", *words)


def test_other_frames_are_none_of_its_business() -> None:
    assert read("begin", "1") is None


def test_the_holder_of_a_key_is_named() -> None:
    assert read("existing", "train-k3f2ab") == Existing(JobId("train-k3f2ab"))


def test_a_missing_program_gives_127_and_its_name() -> None:
    reply = read("refused", "not-found", "127", payload=b"python3")
    assert isinstance(reply, Refused)
    assert isinstance(reply.error, JobRefused)
    assert reply.error.exit_code == 127
    assert "python3: not found in pve1:101" in reply.error.what


def test_conda_is_told_from_a_typing_error() -> None:
    refusal = Refusal("not-found", 127, "conda", "gpu", Argv(("conda", "activate", "x")))
    error = refusal_error(refusal)
    assert "conda run --no-capture-output -n x" in error.advice


@pytest.mark.parametrize("reason", [*sorted(_ERRORS), "something-new"])
def test_every_refusal_names_layer_place_and_advice(reason: str) -> None:
    error = refusal_error(Refusal(reason, 125, "/a/path", "pve1:101", COMMAND))
    assert error.layer in {Layer.JOB, Layer.SHELL, Layer.CONTAINER}
    assert error.advice
    assert "pve1:101" in error.what
    assert error.exit_code == {"not-found": 127}.get(
        reason, 126 if reason in {"not-executable", "is-directory", "exec"} else 125
    )


def test_details_that_are_not_utf8_survive() -> None:
    reply = read("refused", "directory", "125", payload=b"/a\xff\n b")
    assert isinstance(reply, Refused)
    assert "/a\udcff\n b" in reply.error.what
