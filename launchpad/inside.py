"""The checks inside a container: what the facts of ``remote/doctor.sh`` mean. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from launchpad.errors import Layer
from launchpad.examination import Check, Facts

# Free space in the state directory below which a start is doubtful, and below which it fails (KiB).
_LITTLE_SPACE, _NO_SPACE = 100 * 1024, 64

# A clock that differs by more is worth a word (seconds).
_CLOCK_SKEW = 5.0


@dataclass(frozen=True, slots=True)
class Inside:
    """The facts about a container, and how to say what has to be done there.

    ``enter``: what to type in front of a command for it (``ssh pve1 pct exec 101 --``).
    ``skew``: seconds by which its clock is ahead of ours, as far as that can be told.
    """

    facts: Facts
    state_directory: str
    enter: str
    skew: float

    def value(self, key: str, default: str = "") -> str:
        """The first value of a fact."""
        return self.facts.get(key, (default,))[0]

    def has(self, key: str) -> bool:
        """Whether the fact is known."""
        return key in self.facts

    def number(self, key: str) -> int | None:
        """A fact that is a number."""
        text = self.value(key)
        return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None

    def run(self, command: str) -> str:
        """What to type to have ``command`` run in the container."""
        return f"{self.enter} {command}".strip()

    def install(self, package: str) -> str:
        """What to type to install a package."""
        match self.value("os_id"):
            case "debian" | "ubuntu":
                return self.run(f"apt-get install -y {package}")
            case "alpine":
                return self.run(f"apk add {package}")
            case _:
                return f"install {package} in the container"

    def checks(self) -> list[Check]:
        """All checks inside the container, in the order in which a start depends on them."""
        return [
            *self._system(),
            self._tools(),
            self._session(),
            self._profile(),
            *self._state(),
            self._terminal(),
            self._users(),
            self._clock(),
            self._counters(),
            self._gpus(),
            self._python(),
        ]

    def _system(self) -> Iterator[Check]:
        parts = [self.value("os", "unknown system")]
        parts.append(f"bash {self.value('bash')}" if self.has("bash") else "no bash")
        if self.has("sh"):
            parts.append(f"sh is {self.value('sh')}")
        fix = "" if self.has("bash") else self.install("bash")
        yield Check(
            "shell",
            Layer.SHELL,
            "ok",
            ", ".join(parts),
            "" if self.has("bash") else "-c lines are read by sh",
            f"optional: {fix}" if fix else "",
        )

    def _tools(self) -> Check:
        if not self.has("missing"):
            return Check("tools", Layer.CONTAINER, "ok", "all tools that a job needs")
        names = self.value("missing")
        return Check(
            "tools",
            Layer.CONTAINER,
            "fault",
            f"missing: {names}",
            fix=self.install("coreutils grep"),
        )

    def _session(self) -> Check:
        tool = self.value("session")
        match tool:
            case "setsid":
                return Check("setsid", Layer.CONTAINER, "ok", "setsid")
            case "":
                return Check(
                    "setsid",
                    Layer.CONTAINER,
                    "fault",
                    "nothing can detach a process: no setsid, python3, perl or nohup",
                    fix=self.install("util-linux"),
                )
            case "nohup":
                what = "no setsid, python3 or perl: nohup only, so that kill may miss processes"
            case _:
                what = f"no setsid: {tool}'s is used"
        return Check("setsid", Layer.CONTAINER, "note", what, fix=self.install("util-linux"))

    def _profile(self) -> Check:
        match self.value("profile"):
            case "good":
                return Check("profile", Layer.SHELL, "ok", "the login profile comes to its end")
            case "hangs":
                what = "the login profile hangs"
            case _:
                what = "the login profile exits, or becomes another program"
        return Check(
            "profile",
            Layer.SHELL,
            "fault",
            what,
            "a job would be refused before it starts",
            "run it with --no-login, or repair /etc/profile, /etc/profile.d, ~/.bash_profile or"
            " ~/.profile in the container",
        )

    def _state(self) -> Iterator[Check]:
        directory = self.state_directory
        name, layer = "state", Layer.CONTAINER
        if self.has("state_link"):
            link = self.value("state_link")
            yield Check(
                name, layer, "fault", f"{link} is a link: anybody could have put it there",
                fix=self.run(f"rm {link}"),
            )  # fmt: skip
            return
        if self.has("state_foreign"):
            foreign = self.value("state_foreign")
            yield Check(
                name,
                layer,
                "fault",
                f"{foreign} belongs to somebody else than {self.value('user', 'us')}",
                "whoever owns it could forge what is said of jobs",
                self.run(f"chown {self.value('user', 'root')} {foreign}"),
            )
            return
        if not self.has("state_writable"):
            point = self.value("mount_point", "/")
            yield Check(
                name,
                layer,
                "fault",
                f"{self.value('state_place', directory)} cannot be written",
                "is its file system read-only?",
                self.run(f"mount -o remount,rw {point}"),
            )
            return
        yield self._space()

    def _space(self) -> Check:
        directory, free = self.state_directory, self.number("free_kib")
        place, layer = self.value("mount_point", "/"), Layer.CONTAINER
        clear = self.run(f"du -xh -d1 {place}") + "   shows what fills it; launchpad prune --all"
        if self.number("free_inodes") == 0:
            return Check("state", layer, "fault", f"no inode is free in {directory}", fix=clear)
        if free is None:
            return Check("state", layer, "ok", f"{directory} can be written")
        what = f"{_size(free)} free in {directory}"
        if free <= _NO_SPACE:
            return Check("state", layer, "fault", what, "a job could not be recorded", clear)
        if free < _LITTLE_SPACE:
            return Check("state", layer, "note", what, "a log needs room", clear)
        return Check("state", layer, "ok", what)

    def _terminal(self) -> Check:
        if not self.has("pty"):
            return Check(
                "terminal",
                Layer.CONTAINER,
                "note",
                "no PTY can be had: --tmux falls back to setsid, and exec -t has no terminal",
                "is /dev/pts mounted, and /dev/ptmx there?",
                "on the node: look for lxc.pty.max and lxc.mount entries in the container's"
                " configuration, and restart it",
            )
        if not self.has("tmux"):
            return Check(
                "terminal",
                Layer.CONTAINER,
                "note",
                "PTY; no tmux: --tmux falls back to setsid",
                fix=self.install("tmux"),
            )
        return Check("terminal", Layer.CONTAINER, "ok", f"PTY, {self.value('tmux')}")

    def _users(self) -> Check:
        user, tool = self.value("user", "root"), self.value("switch")
        if tool or user != "root":
            how = f"; -u works through {tool}" if tool else ""
            return Check("user", Layer.CONTAINER, "ok", f"{user}{how}")
        return Check(
            "user",
            Layer.CONTAINER,
            "note",
            "root; -u does not work: neither setpriv nor busybox su",
            fix=self.install("util-linux"),
        )

    def _clock(self) -> Check:
        if abs(self.skew) <= _CLOCK_SKEW:
            return Check("clock", Layer.CONTAINER, "ok", "its clock agrees with this machine's")
        side = "ahead of" if self.skew > 0 else "behind"
        return Check(
            "clock",
            Layer.CONTAINER,
            "note",
            f"its clock is {abs(self.skew):.0f} s {side} this machine's",
            "durations are right all the same; times of day are the container's",
            "a container has its node's clock: look at chrony or timesyncd there, and here",
        )

    def _counters(self) -> Check:
        version = self.value("cgroup")
        shown = f"cgroup version {version}" if version else "no cgroup visible"
        if self.has("oom"):
            return Check(
                "memory", Layer.CONTAINER, "ok", f"{shown}, its own OOM counter is visible"
            )
        return Check(
            "memory",
            Layer.CONTAINER,
            "note",
            f"{shown}; no OOM counter of its own: of a SIGKILL one can only say that memory was"
            " probably short",
        )

    def _gpus(self) -> Check:
        layer = Layer.CONTAINER
        devices = ", ".join(self.facts.get("gpu_device", ()))
        if gpus := self.facts.get("gpu", ()):
            return Check("GPU", layer, "ok", "; ".join(map(_gpu_words, gpus)))
        match self.value("gpu_fault"):
            case "hangs":
                return Check(
                    "GPU", layer, "note", "nvidia-smi hangs: the driver is stuck", devices,
                    "dmesg on the node; it often takes a reboot of the node",
                )  # fmt: skip
            case "fails":
                return Check(
                    "GPU", layer, "note", "nvidia-smi fails in the container", devices,
                    self.run("nvidia-smi") + "   shows why: most often its version is not that of"
                    " the node's driver",
                )  # fmt: skip
        if devices:
            return Check("GPU", layer, "note", f"{devices}; no nvidia-smi in the container")
        return Check("GPU", layer, "note", "none visible in the container")

    def _python(self) -> Check:
        if self.has("python"):
            return Check("python", Layer.CONTAINER, "ok", self.value("python"))
        return Check("python", Layer.CONTAINER, "note", "no python3 (jobs do not need it)")


def _gpu_words(line: str) -> str:
    """``0, NVIDIA A100, 81920`` as nvidia-smi prints it."""
    index, _, rest = line.partition(",")
    name, _, memory = rest.rpartition(",")
    if not re.fullmatch(r"[0-9]{1,18}", memory.strip()):
        return line
    return f"{index.strip()} {name.strip()} {_size(int(memory) * 1024)}"


def _size(kib: int) -> str:
    size = float(kib)
    for unit in ("KiB", "MiB", "GiB"):
        if size < 1024:  # noqa: PLR2004
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
