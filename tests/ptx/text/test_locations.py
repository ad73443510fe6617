"""Source lines of instructions: ``.file``, ``.loc``, and functions that were inlined into each other."""

import pytest

from pipesim.ptx.text.instruction import Frame, SourceLine
from pipesim.ptx.text.read import read_module
from tests.support.ptx_text import ptx

STRINGS = """
.file 1 "/src/kernel.cu"
.file 2 "include" "ring.cuh", 1234, 99
.section .debug_str
{
$L__info_string0:
.b8 97,99,113,117,105,114,101,0
.b8 120,0
$L__info_string1:
.b8 0x77, 0x61, 0x69, 0x74, 0
}
"""


def sources(body: str) -> list[SourceLine | None]:
    made = read_module(ptx(body) + STRINGS, "k.ptx")
    return [each.source for each in made.entries[0].body]


def test_a_line_inside_inline_asm_is_none_of_the_authors():
    """LLVM adds the line of the asm's own text, as in Triton's waits; what follows has the line before the asm."""
    body = """.loc 1 7 3
    // begin inline asm
    {
    .loc 1 10 3
    wait: mov.u32 %r1, 0;
    }
    // end inline asm
    mov.u32 %r1, 1;
    .loc 1 8 1
    ret;"""
    assert [each.line for each in sources(body) if each is not None] == [7, 7, 8]


def test_an_inlined_function_is_at_the_line_that_calls_it():
    body = """.loc 1 20 5
    mov.u32 %r1, 0;
    .loc 2 9 1, function_name $L__info_string0, inlined_at 1 20 5
    mov.u32 %r1, 1;
    .loc 2 3 5, function_name $L__info_string1, inlined_at 2 9 1
    mov.u32 %r1, 2;"""
    outer, ring = Frame("/src/kernel.cu", 20, "k", 5), Frame("include/ring.cuh", 9, "acquire", 1)
    assert sources(body)[1:] == [
        SourceLine("/src/kernel.cu", 20, "k", (outer, ring)),
        SourceLine("/src/kernel.cu", 20, "k", (outer, ring, Frame("include/ring.cuh", 3, "wait", 5))),
    ]


def test_the_latest_loc_of_a_place_is_the_one_that_is_referred_to():
    """The same line is inlined at two places: what is inlined into it belongs to the place before it in the text."""
    body = """.loc 1 20 5
    .loc 2 9 1, function_name $L__info_string0, inlined_at 1 20 5
    .loc 1 30 5
    .loc 2 9 1, function_name $L__info_string0, inlined_at 1 30 5
    .loc 2 3 5, function_name $L__info_string1, inlined_at 2 9 1
    mov.u32 %r1, 2;"""
    (found,) = sources(body)
    assert found is not None
    assert [each.line for each in found.frames] == [30, 9, 3]


def test_what_a_compiler_moves_to_the_line_where_the_function_begins_keeps_the_place_inside():
    body = """.loc 1 20 0
    .loc 1 20 1
    .loc 2 9 1, function_name $L__info_string0, inlined_at 1 20 1
    mov.u32 %r1, 1;
    .loc 1 25 5
    .loc 2 9 1, function_name $L__info_string0, inlined_at 1 25 5
    mov.u32 %r1, 2;"""
    ring = Frame("include/ring.cuh", 9, "acquire", 1)
    moved, called = sources(body)
    assert moved == SourceLine("include/ring.cuh", 9, "acquire", (ring,))
    assert called is not None
    assert (called.line, called.frames[1]) == (25, ring)


CALLED = """.loc 1 {} 5
    .loc 2 9 1, function_name $L__info_string0, inlined_at 1 {} 5
    .loc 2 7 1, function_name $L__info_string1, inlined_at 2 9 1
    mov.u32 %r1, 0;
"""
AGAIN = ".loc 2 5 1, function_name $L__info_string1, inlined_at 2 9 1\n"
INSIDE = ".loc 2 3 5, function_name $L__info_string1, inlined_at 2 5 1\nmov.u32 %r1, 2;"


@pytest.mark.parametrize(
    ("rest", "line", "sure"),
    [
        (AGAIN + INSIDE, 30, True),  # the call in the function that is called at line 20 was said before
        (INSIDE, 20, True),
        (AGAIN + "mov.u32 %r1, 1;\n" + INSIDE, 30, False),  # an instruction of its own: nothing new is called
        (CALLED.replace("{}", "40") + AGAIN + INSIDE, 40, False),  # of line 30 or of line 40
    ],
)
def test_a_call_that_is_said_again_is_that_of_the_place_that_had_none(rest: str, line: int, sure: bool) -> None:
    first, second = (CALLED.replace("{}", number) for number in ("20", "30"))
    last = sources(first + AGAIN + INSIDE + second + rest)[-1]
    assert last is not None
    assert (last.line, last.sure) == (line, sure)
