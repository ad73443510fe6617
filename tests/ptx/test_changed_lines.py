"""A line of a kernel that is written otherwise: read by itself, the kernel is as if its whole file had been read."""

from pathlib import Path

import pytest

from pipesim.ptx.kernel import EditableKernel, launch_of, with_changed_lines
from pipesim.ptx.prepare import Kernel, prepare

PTX = Path(__file__).parent / "kernels" / "scale_ws_s3-sm_90a.ptx"
#: What is written instead of what, and whether it can be read by itself.
CHANGES = {
    "a number": ("setp.lt.u32 \t%p1, %r3, 4;", "setp.lt.u32 \t%p1, %r3, 5;", True),
    "a register": ("setp.lt.u32 \t%p1, %r3, 4;", "setp.lt.u32 \t%p1, %r2, 4; // %r2", True),
    "a guard": ("mov.b32 \t%r180, 0;", "@!%p1 mov.b32 \t%r180, 0;", True),
    "another instruction": ("mov.b32 \t%r180, 0;", "add.u32 \t%r180, %r2, -1;", True),
    "two instructions": ("mov.b32 \t%r180, 0;", "mov.b32 \t%r180, 0; bar.sync 1;", False),
    "none": ("mov.b32 \t%r180, 0;", "// mov.b32", False),
    "a branch": ("setp.lt.u32 \t%p1, %r3, 4;", "ret;", False),
    "a name": ("mov.b32 \t%r180, 0;", "mov.b32 \t%r180, other;", False),
    "no register": ("mov.b32 \t%r180, 0;", "mov.b32 \t%r999999, 0;", False),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_line_that_is_read_by_itself(name: str) -> None:
    was, new, alone = CHANGES[name]
    kernel = EditableKernel(PTX, None, (), PTX.read_text())
    text = kernel.text.split("\n")
    (number,) = (n for n, line in enumerate(text, 1) if line.strip() == was)
    found = with_changed_lines(kernel.prepared(), text, {number: new})
    assert (found is not None) is alone
    text[number - 1] = new
    if found is not None:
        assert _shape(found) == _shape(prepare(*launch_of("\n".join(text), PTX, None, ())))


def _shape(kernel: Kernel) -> tuple[object, ...]:
    uses, code = kernel.code.regions.uses, kernel.code
    body = [each._replace(begin=0) for each in kernel.function.body]
    reads = list(uses.reads), list(uses.writes), list(uses.needs)
    return body, reads, code.kept, code.opaque, code.valued, kernel.too_early, kernel.launch
