"""What no file of the repository may hold: where its maker downloads from, or where it lay on somebody's disk."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.contract.deploy.files import ROOT, text

# Put together here, so that this file does not hold what it looks for.
REGISTRIES = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("crates", "io"),
        ("proxy", "golang", "org"),
        ("repo1", "maven", "org"),
        ("repo", "maven", "apache", "org"),
        ("deb", "debian", "org"),
        ("archive", "ubuntu", "com"),
    )
]
HOME = re.compile(r"/(?:home|Users)/(?!app\b)[A-Za-z][\w.-]*/|/root/\w|[A-Z]:\\\\?Users\\")


def files() -> Iterator[tuple[str, str]]:
    """Every text file that is not made by a tool, with its content."""
    made = {line.rstrip("/") for line in text(".gitignore").splitlines()} | {".git"}
    for path in walk(ROOT, made):
        try:
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError):  # binary, or gone since it was listed
            continue


def walk(folder: Path, left_out: set[str]) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name in left_out or path.is_symlink():
            continue
        if path.is_dir():
            yield from walk(path, left_out)
        else:
            yield path


def test_the_walk_finds_the_repository() -> None:
    found = {name for name, _ in files()}
    assert {"Makefile", "requirements.lock", "proto/taskexecutor/v1/job.proto", "flake.nix"} <= found


def test_no_file_names_a_package_registry() -> None:
    assert [(name, host) for name, content in files() for host in REGISTRIES if host in content] == []


def test_no_file_names_a_folder_of_a_developers_machine() -> None:
    places = [(name, match[0]) for name, content in files() for match in HOME.finditer(content)]
    assert places == []


def test_no_file_names_the_folder_that_this_checkout_lies_in() -> None:
    assert [name for name, content in files() if len(ROOT.parts) > 2 and f"{ROOT}/" in content] == []
