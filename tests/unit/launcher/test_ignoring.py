"""What stays behind of a directory: compared with what git itself says."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from launchpad.errors import UsageError
from launchpad.launcher.ignoring import Excludes
from launchpad.launcher.packing import make_ignoring, walk

GIT = ["git", "-c", "core.excludesFile=/dev/null", "-c", "init.defaultBranch=main"]


def put(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")


def kept(root: Path, *excludes: str, gitignore: bool = True) -> list[str]:
    ignoring = make_ignoring(root, excludes, gitignore=gitignore)
    steps = walk(os.fsencode(root), ignoring)
    return sorted(os.fsdecode(b"/".join(step.parts)) for step in steps if not step.is_directory)


def git_says(root: Path) -> list[str]:
    """The files that git would take."""
    words = [*GIT, "-C", str(root), "ls-files", "-z", "--others", "--exclude-standard"]
    done = subprocess.run(words, capture_output=True, check=True)
    return sorted(name for name in os.fsdecode(done.stdout).split("\0") if name)


def init(root: Path) -> None:
    subprocess.run([*GIT, "init", "-q", str(root)], check=True)


_PATTERNS = st.lists(
    st.sampled_from(
        [
            "*.pt",
            "!keep.pt",
            "build/",
            "/build",
            "a/b",
            "a/**/c",
            "**/c",
            "c/**",
            "*",
            "!*/",
            "!a/",
            "# comment",
            "",
            "x y",
            "trailing  ",
            "\\#hash",
            "[ab]",
            "[!a]*",
            "?",
            "!",
            "a/*",
            "!a/b/",
            "a/**",
            "!a/b",
            "***/c",
            "a**",
            "/**",
            "**/",
            "[[:alpha:]]",
            "[]a-c]",
            "[^z-a]",
            "[b-a]",
            "a/[!b]",
            "\\a",
            "\\",
            "b\r",
            "c\t",
            "/",
            "//",
            "a//b",
            "**/a/**/b",
        ]
    ),
    max_size=6,
)
_FILES = st.lists(
    st.lists(
        st.sampled_from(["a", "b", "c", "build", "keep.pt", "x.pt", "x y", "#hash", "trailing"]),
        min_size=1,
        max_size=4,
    ).map("/".join),
    max_size=8,
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_PATTERNS, _PATTERNS, _PATTERNS, _FILES)
def test_what_git_ignores_is_ignored(
    top: list[str], inner: list[str], info: list[str], names: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as place:
        root = Path(place) / "repository"
        init(root)
        for name in names:
            path = root / name
            try:
                put(root, name)
            except (FileExistsError, NotADirectoryError, IsADirectoryError):
                assert path.exists() or any(each.is_file() for each in path.parents)
        (root / ".gitignore").write_text("\n".join([*top, "!.gitignore"]))
        (root / ".git/info/exclude").write_text("\n".join(info))
        if (root / "a").is_dir():
            (root / "a/.gitignore").write_text("\n".join([*inner, "!.gitignore"]))
        assert kept(root) == git_says(root)


def test_a_part_of_a_repository_is_under_the_rules_above_it(tmp_path: Path) -> None:
    init(tmp_path)
    put(tmp_path, "src/keep", "src/x.pt", "src/out/y", "src/deep/out/y", "other/z")
    (tmp_path / ".gitignore").write_text("*.pt\n/src/out\n")
    assert kept(tmp_path / "src") == ["deep/out/y", "keep"]
    # Whoever names an ignored directory wants what is in it.
    assert kept(tmp_path / "src/out") == ["y"]
    # Without a repository nobody looks above.
    (tmp_path / ".git").rename(tmp_path / "dotgit")
    assert kept(tmp_path / "src") == ["deep/out/y", "keep", "out/y", "x.pt"]


def test_what_the_command_line_says_counts_more(tmp_path: Path) -> None:
    put(tmp_path, "a.pt", "b.pt", "log", ".git/config", "sub/.git")
    (tmp_path / ".gitignore").write_text("*.pt\n")
    assert kept(tmp_path) == [".gitignore", "log"]
    assert kept(tmp_path, "!a.pt", "log") == [".gitignore", "a.pt"]
    assert kept(tmp_path, "!.git/") == [".git/config", ".gitignore", "log"]
    everything = [".git/config", ".gitignore", "a.pt", "b.pt", "log", "sub/.git"]
    assert kept(tmp_path, gitignore=False) == everything
    assert kept(tmp_path, ".git", gitignore=False) == [".gitignore", "a.pt", "b.pt", "log"]


def test_names_of_any_bytes_are_matched(tmp_path: Path) -> None:
    for name in (b"\xff.pt", b"\xff.py", b"new\nline.pt"):
        (tmp_path / os.fsdecode(name)).write_text("x")
    assert kept(tmp_path, "*.pt") == [os.fsdecode(b"\xff.py")]


@pytest.mark.parametrize("pattern", ["", "   ", "# comment", "!", "a/[z"])
def test_what_is_no_pattern_is_wrong_usage(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(UsageError, match="is no pattern"):
        kept(tmp_path, pattern)


def test_only_what_every_tar_reads_the_same_is_left_to_tar() -> None:
    patterns = ["checkpoints", "*.pt", "a/b", "data/", "[ab]", "a*b", "?"]
    assert Excludes(patterns).for_tar() == ["checkpoints", "*.pt"]
    assert Excludes(["checkpoints", "!checkpoints/best"]).for_tar() == []
