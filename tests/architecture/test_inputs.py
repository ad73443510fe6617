"""Files are opened, and JSON is parsed, in pipesim/inputs.py alone; bounds are stated in pipesim/bounds.py alone."""

import ast
from pathlib import Path

import pytest

from pipesim import bounds

ROOT = Path(__file__).parents[2]
#: Calls that read a file or parse JSON: the receiver ("" for any but an InputKind, which is in capitals), and the name.
READS = {
    ("", "read_text"), ("", "read_bytes"), ("json", "loads"), ("json", "load"), ("np", "load"), ("np", "fromfile"),
    ("pq", "ParquetFile"), ("pq", "read_table"), ("pq", "read_schema"), ("pq", "read_metadata"),
}  # fmt: skip

#: Module and call, each with the reason why it may read by itself.
ALLOWED = {
    ("pipesim/inputs.py", "loads"): "the one place",
    ("pipesim/inputs.py", "read_bytes"): "the one place",
    ("pipesim/trace/files.py", "ParquetFile"): "on bytes that inputs.py has read",
    ("hwkernels/capture/arguments.py", "load"): "of a file that inputs.py has opened, after its header",
    ("pipesim/doctor/examine.py", "read_text"): "what pip wrote of our own package",
    ("pipesim/doctor/examine.py", "loads"): "what pip wrote of our own package",
    ("pipesim/cli/protocols/sweep.py", "read_bytes"): "an output of the size that it writes",
    ("pipesim/cli/protocols/new.py", "read_text"): "a template of the package",
    ("pipesim/cli/agents/skill.py", "read_text"): "a text of the package",
    ("pipesim/cli/agents/tools.py", "loads"): "what a command of this package has printed",
    ("pipesim/formats/html/page.py", "read_text"): "the style and the scripts of the package",
    ("pipesim/process/limits.py", "read_text"): "the limit of a container, in /sys",
    ("pipesim/process/system.py", "read_text"): "the kernel's numbers in /proc",
    ("hwkernels/device/presence.py", "read_text"): "the driver's version in /proc",
    ("pipesim/launches/observe/loaded_images.py", "read_bytes"): "of the observed process, without the rest of pipesim",
    ("pipesim/launches/hooks/install.py", "read_text"): "of a compiler in this process, without the rest of pipesim",
    ("pipesim/launches/hooks/install.py", "loads"): "what the process that checks has written",
    ("pipesim/launches/hooks/checker.py", "loads"): "what the process that checks has printed",
    ("pipesim/launches/hooks/worker.py", "read_text"): "what a compiler's hook has written",
    ("pipesim/launches/hooks/worker.py", "loads"): "what a compiler's hook has written",
    ("pipesim/hang/processes.py", "read_bytes"): "the processes of a program in /proc",
    ("pipesim/launches/observe/cupti.py", "read_text"): "the libraries of this process in /proc",
    ("pipesim/confirm/chip.py", "fromfile"): "as many bytes as are asked for, of a copy that pipesim has written",
    ("hwkernels/rewriter/assemble.py", "read_bytes"): "of the cubin that ptxas has just written for it",
}


def reads(source: str) -> set[str]:
    """The calls of a module that read a file or parse JSON, but for those of an InputKind."""
    found: set[str] = set()
    if not any(f"{name}(" in source for _, name in READS):
        return found
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            receiver = ast.unparse(node.func.value)
            of_a_kind = receiver.isupper() or receiver.startswith("InputKind(")
            if not of_a_kind and {("", node.func.attr), (receiver, node.func.attr)} & READS:
                found.add(node.func.attr)
    return found


@pytest.mark.slow
def test_nobody_else_reads_a_file() -> None:
    found = set()
    for package in ("pipesim", "hwkernels"):
        for path in (ROOT / package).rglob("*.py"):
            module = path.relative_to(ROOT).as_posix()
            found |= {(module, name) for name in reads(path.read_text(encoding="utf-8"))}
    assert found <= set(ALLOWED), found - set(ALLOWED)


def test_a_bound_is_a_whole_number_that_somebody_uses() -> None:
    names = {name for name in vars(bounds) if name.isupper()}
    assert {type(getattr(bounds, name)) for name in names} == {int}
    files = [path for package in ("pipesim", "hwkernels") for path in (ROOT / package).rglob("*.py")]
    used = " ".join(path.read_text(encoding="utf-8") for path in files if path.name != "bounds.py")
    assert {name for name in names if name not in used} == set()
