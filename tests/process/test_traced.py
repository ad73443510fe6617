"""In a folder full of hostile names and links no command opens or executes anything beside its inputs.

The system calls of the command and its workers are traced, where strace is installed and allowed to.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import EXAMPLES, ROOT

_CALL = re.compile(r'(openat|open|execve|connect|unlink|rename)\([^"]*"((?:[^"\\]|\\.)*)"(.*)')
_LINKS = {"notes.cu": "/proc/self/environ", "header.cuh": "/etc/passwd", "library.py": "/etc/hosts"}
#: Where the interpreter, its packages and the system's libraries are.
_SYSTEM = ("/proc/", "/dev/", "/sys/", "/etc/ld.so", "/etc/localtime", "/lib", "/usr/", "/root/.pyenv/", "/opt/")


@pytest.fixture(scope="module")
def strace() -> str:
    found = shutil.which("strace")
    if found is None or subprocess.run([found, "-f", "true"], check=False, capture_output=True).returncode:
        pytest.skip("strace is not installed, or not allowed here")
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """200 names and links around one kernel, which names sources that lead elsewhere."""
    made = tmp_path / "inputs"
    made.mkdir()
    for name, behind in _LINKS.items():
        (made / name).symlink_to(behind)
    for name in sorted({*sys.stdlib_module_names, "numpy", "simpy", "rich"})[:150]:
        (made / f"{name}.py").write_text("raise SystemExit(66)\n")
    for name in ("-rf", "--sarif=x", "a b", "a\nb", "$(id)", "`id`", ";id", "|id", "%s", "\u202egpj", ".pipesim", "~"):
        (made / name).write_text("")
    for n in range(200 - len(list(made.iterdir()))):
        (made / f"link{n}.h").symlink_to(f"/etc/{('passwd', 'shadow', 'hostname')[n % 3]}")
    text = (EXAMPLES / "row_max.ptx").read_text()
    (made / "k.ptx").write_text(text.replace("docs/examples/row_max.cu", str(made / "notes.cu")))
    (made / "k.json").write_text((EXAMPLES / "row_max.json").read_text())
    return made


@pytest.mark.sampled(0, 1)
@pytest.mark.parametrize(
    "words",
    [
        ("check", "k.ptx", "--format", "sarif"),
        ("check", "k.ptx"),
        ("show", "k.ptx"),
        ("sweep", "producer_consumer", "-p", "tiles=2", "-p", "stages=1,2", "--jobs", "2"),
        ("export", "k.ptx", "--to", "promela"),
    ],
    ids=" ".join,
)
def test_what_is_opened_and_executed(folder: Path, tmp_path: Path, strace: str, words: tuple[str, ...]) -> None:
    script = tmp_path / "pipesim"
    script.write_text("import sys\nfrom pipesim.__main__ import run\nif __name__ == '__main__':\n    sys.exit(run())\n")
    log = tmp_path / "calls"
    line = [strace, "-f", "-qq", "-s", "4096", "-o", str(log), "-e", "trace=open,openat,execve,connect,unlink,rename"]
    given = os.environ | {"PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        [*line, sys.executable, str(script), *words], check=False, capture_output=True, text=True, cwd=folder, env=given
    )
    assert ran.returncode in (0, 1), ran.stderr
    assert "PATH=" not in ran.stdout
    assert "root:" not in ran.stdout
    calls = [found.groups() for found in map(_CALL.search, log.read_text(errors="replace").splitlines()) if found]
    assert len(calls) > 100, "something is traced"
    programs = {path for call, path, _ in calls if call == "execve"}
    assert {Path(path).resolve() for path in programs} == {Path(sys.executable).resolve()}
    mine = (str(ROOT), sys.prefix, sys.base_prefix, str(script), *_SYSTEM)
    opened = {
        path for call, path, how in calls if call != "execve" and not path.startswith(mine) and " = -1" not in how
    }
    inputs = {str(folder / name) for name in ("k.ptx", "k.json")} | {"k.ptx", "k.json", ".", str(folder)}
    beyond = {path for path in opened - inputs if not Path(path).is_dir()}
    assert beyond == set()
