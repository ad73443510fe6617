"""What a confined process cannot do, each beside what it can; and that commands do their work in it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import EXAMPLES, ROOT

TRIES = """
import errno, os, socket, sys, threading
from pathlib import Path
from pipesim.process.sandbox import confine
from pipesim.inputs import confined
inside, outside, out = map(Path, sys.argv[1:])
lacks = confine([inside], [out])
assert confined

def answer(does):
    try:
        does()
    except OSError as error:
        return errno.errorcode[error.errno]
    return "done"

def run():
    os.execv("/bin/true", ["true"])

def thread():
    started = threading.Thread(target=lambda: None)
    started.start()
    started.join()

print(lacks)
print("read inside", answer(lambda: (inside / "k.ptx").read_text()))
print("read outside", answer(lambda: (outside / "secret.cu").read_text()))
print("read a link to it", answer(lambda: (inside / "link.cu").read_text()))
print("list outside", answer(lambda: os.listdir(outside)))
print("write inside", answer(lambda: (inside / "new").write_text("")))
print("write for output", answer(lambda: (out / "new").write_text("")))
print("replace an output", answer(lambda: os.replace(out / "new", out / "old")))
print("write outside", answer(lambda: (outside / "new").write_text("")))
print("socket", answer(lambda: socket.socket()))
print("fork", answer(os.fork))
print("program", answer(run))
print("thread", answer(thread))
print("memory", Path(f"/proc/{os.getpid()}/statm").read_text() != "")
"""


def test_what_is_refused_and_what_is_not(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("inside", "outside", "out")]
    for folder in folders:
        folder.mkdir()
    (folders[0] / "k.ptx").write_text("")
    (folders[1] / "secret.cu").write_text("word")
    (folders[0] / "link.cu").symlink_to(folders[1] / "secret.cu")
    line = [sys.executable, "-c", TRIES, *map(str, folders)]
    ran = subprocess.run(line, check=False, capture_output=True, text=True, cwd=ROOT)
    assert ran.returncode == 0, ran.stderr
    lacks, *said = ran.stdout.splitlines()
    if lacks != "()":
        assert "this kernel" in lacks or "this system" in lacks
        pytest.skip(lacks)
    assert said == [
        "read inside done",
        "read outside EACCES",
        "read a link to it EACCES",
        "list outside EACCES",
        "write inside EACCES",
        "write for output done",
        "replace an output done",
        "write outside EACCES",
        "socket EPERM",
        "fork EPERM",
        "program EPERM",
        "thread done",
        "memory True",
    ]


COMMANDS = [
    (("check", "row_max.ptx", "--quick"), 1),
    (("check", "row_max.ptx", "--quick", "--sarif", "out.sarif"), 1),
    (("show", "row_max.ptx"), 0),
    (("export", "row_max.ptx", "--to", "html", "--picture", "counterexample"), 0),
    (("diff", str(ROOT / "traces/h100/producer_consumer-al1-cw2-s4-tb16384-t64-w600-g1.parquet")), 0),
    (("check", "row_max.ptx", "--untrusted", "--quick", "--launch", "/etc/passwd"), 2),
]


@pytest.mark.parametrize(
    ("words", "code"),
    [pytest.param(*each, marks=pytest.mark.slow if n == 1 else pytest.mark.long) for n, each in enumerate(COMMANDS)],
)
def test_a_command_says_the_same(tmp_path: Path, words: tuple[str, ...], code: int) -> None:
    said = []
    for name in ("plain", "confined"):
        folder = tmp_path / name
        folder.mkdir()
        for suffix in ("cu", "ptx", "json"):
            (folder / f"row_max.{suffix}").write_text((EXAMPLES / f"row_max.{suffix}").read_text())
        more = ["--untrusted"] if name == "confined" else []
        line = [sys.executable, "-m", "pipesim", *words, *more]
        given = os.environ | {"PYTHONPATH": str(ROOT)}
        ran = subprocess.run(line, check=False, capture_output=True, text=True, cwd=folder, env=given)
        said.append((ran.returncode, ran.stdout, sorted(path.name for path in folder.iterdir())))
        assert ran.returncode == code, ran.stderr
    assert said[0] == said[1]


@pytest.mark.sampled(1, 2)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("check", "k.py"), "k.py is not run"),
        (("check", "k.py:f"), "k.py is not run"),
        (("show", "k.py:f"), "k.py is not run"),
        (("export", "k.py:f", "--to", "promela"), "k.py is not run"),
        (("export", "producer_consumer", "--to", "html", "--open"), "--untrusted: --open starts a browser"),
        (("autopsy", "--pid", "1"), "--untrusted: --pid starts a debugger"),
        (("check", "k.ptx", "--fix", "--write"), "--untrusted: --write edits a source file"),
    ],
)
def test_what_goes_beyond_the_inputs_is_refused(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    (tmp_path / "k.py").write_text("open('RAN', 'w').close()\ndef f(): pass\n")
    line = [sys.executable, "-m", "pipesim", *words, "--untrusted"]
    given = os.environ | {"PYTHONPATH": str(ROOT)}
    ran = subprocess.run(line, check=False, capture_output=True, text=True, cwd=tmp_path, env=given)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert said in ran.stderr
    assert not (tmp_path / "RAN").exists()


@pytest.mark.sampled(1, 1)
@pytest.mark.parametrize("name", ["out/new/x.sarif", "out/x.sarif", "out/../x.sarif"])
def test_an_output_is_not_written_through_a_link_of_the_inputs(tmp_path: Path, name: str) -> None:
    for folder in ("inputs", "elsewhere/new"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "inputs/out").symlink_to(tmp_path / "elsewhere")
    given = os.environ | {"PYTHONPATH": str(ROOT)}
    for where in (tmp_path, tmp_path / "inputs"):
        path = tmp_path / "inputs" / name
        words = ["check", str(EXAMPLES / "row_max.ptx"), "--quick", "--untrusted", "--launch"]
        words += [str(EXAMPLES / "row_max.json"), "--sarif", str(path) if where == tmp_path else name]
        line = [sys.executable, "-m", "pipesim", *words]
        ran = subprocess.run(line, check=False, capture_output=True, text=True, cwd=where, env=given)
        assert (ran.returncode, ran.stdout) == (2, "")
        assert "out is a link beside the inputs" in ran.stderr
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
