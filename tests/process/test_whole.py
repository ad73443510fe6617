"""Files appear whole or not at all, and only as ordinary files; one function writes all of them."""

import ast
import errno
import os
import re
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from pipesim.errors import OutputExistsError, UsageError
from pipesim.process.files import write_whole
from tests.support.paths import ROOT


def test_a_disk_that_is_full_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", full)
    (tmp_path / "out").write_bytes(b"before")
    with pytest.raises(UsageError, match="cannot be written") as raised:
        write_whole(tmp_path / "out", b"after", force=True)
    assert raised.value.cause == "No space left on device"
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("out", b"before")]


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("links", [True, False])
def test_what_another_process_wrote_meanwhile_is_kept(
    links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk without links cannot tell: there the last one stays."""
    path = tmp_path / "out"
    if not links:
        monkeypatch.setattr(Path, "hardlink_to", full)
    monkeypatch.setattr(os, "fsync", lambda _: path.write_bytes(b"another"))
    with pytest.raises(OutputExistsError) if links else nullcontext():
        write_whole(path, b"mine")
    assert [(each, each.read_bytes()) for each in tmp_path.iterdir()] == [(path, b"another" if links else b"mine")]


class TestOrdinaryFiles:
    @pytest.mark.parametrize("force", [False, True])
    def test_a_fifo_is_refused_and_not_waited_for(self, tmp_path: Path, *, force: bool) -> None:
        os.mkfifo(tmp_path / "out")
        with pytest.raises(UsageError, match="is not an ordinary file"):
            write_whole(tmp_path / "out", b"", force=force)

    @pytest.mark.parametrize(
        "path", ["/dev/null", "/dev/full", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/dev/new", "/dev/../dev/new"]
    )
    def test_nothing_is_put_among_the_devices(self, path: str) -> None:
        with pytest.raises(UsageError, match="is not an ordinary file"):
            write_whole(Path(path), b"", force=True)

    def test_a_link_to_nothing_is_replaced_only_by_force(self, tmp_path: Path) -> None:
        link = tmp_path / "out"
        link.symlink_to(tmp_path / "nothing")
        with pytest.raises(OutputExistsError):
            write_whole(link, b"")
        write_whole(link, b"here", force=True)
        assert (link.is_symlink(), link.read_bytes(), (tmp_path / "nothing").exists()) == (False, b"here", False)


#: Where else a file is written, and why it need not appear whole.
OTHERS = {
    "hwkernels/capture/subprocess_capture.py": "in a folder of its own, which only the two processes know",
    "hwkernels/device/source_ptx.py": "in a folder of its own, in which a source is compiled",
    "hwkernels/rewriter/assemble.py": "in a folder of its own, which only ptxas reads",
    "hwkernels/source_recorder/table_file.py": "in a folder of its own, read back at once",
    "pipesim/cli/programs/autopsy.py": "it has a kernel and its launch file saved, by a method of that name",
    "pipesim/confirm/chip.py": "a line for each launch, in a folder of its own: of a cut line nothing is read",
    "pipesim/confirm/launches.py": "in a folder of its own, which only the two processes know",
    "pipesim/launches/hooks/checker.py": "in a folder of its own, under another name until it is whole",
    "pipesim/launches/hooks/install.py": "the same: imported by a program that is not ours",
    "pipesim/launches/hooks/worker.py": "the same: it reads them itself",
    "pipesim/launches/inject.py": "in the spool folder, before a process that reads it begins",
    "pipesim/launches/record/requests.py": "in the spool folder, under another name until it is whole",
    "pipesim/launches/observe/site/sitecustomize.py": "a note in the spool folder: of a cut line the reader says so",
}


MADE = {"write_text", "write_bytes", "NamedTemporaryFile", "mkstemp", "mktemp", "save", "savez"}
PERHAPS = re.compile(rf"open\(|{'|'.join(MADE)}")


@pytest.mark.slow
def test_one_function_writes_every_file() -> None:
    texts = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for package in ("pipesim", "hwkernels")
        for path in (ROOT / package).rglob("*.py")
    }
    found = {name for name, text in texts.items() if PERHAPS.search(text) and any(writes(ast.parse(text)))}
    assert found == OTHERS.keys()


def writes(tree: ast.AST) -> Iterator[bool]:
    """True for every call that opens a file for writing or makes a temporary one; not for /dev/null."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            given = [*node.args, *(each.value for each in node.keywords)]
            modes = [each.value for each in given if isinstance(each, ast.Constant) and isinstance(each.value, str)]
            opens = name == "open" and any(set(mode) <= set("rwabx+t") and set(mode) & set("wax+") for mode in modes)
            ours = isinstance(node.func, ast.Name) and name == "write_text"  # of cli.output, to standard output
            if (name in MADE and not ours) or (opens and "devnull" not in ast.unparse(node.func)):
                yield True
