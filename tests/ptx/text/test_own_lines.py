"""Which of the lines into which an instruction was inlined is named."""

from pipesim.ptx.text.instruction import Frame, Instruction, SourceLine
from pipesim.ptx.text.locations import with_own_lines

LIBRARY = "/usr/local/cuda/include/"


def at(*frames: str, opcode: str = "mbarrier") -> Instruction:
    """``FILE:LINE FUNCTION`` for each place, the outermost first."""
    parts = [each.partition(" ") for each in frames]
    found = tuple(Frame(place.split(":")[0], int(place.split(":")[1]), name) for place, _, name in parts)
    return Instruction(opcode, (), (), None, 7, SourceLine(*found[0][:3], found), 0)


def named(*body: Instruction) -> list[str]:
    return [f"{each.source.file}:{each.source.line}" for each in with_own_lines(body) if each.source is not None]


def role(call: int, line: int, *inside: str, name: str = "role") -> Instruction:
    return at(f"k.cu:{call} kernel", f"k.cu:{line} {name}", *inside)


def test_a_line_of_a_role_is_named_and_not_the_call_of_the_role_nor_what_wraps_one_instruction():
    wait, copy = "asm.cuh:2 wait", "asm.cuh:5 copy"
    body = (role(90, 20, wait), role(90, 21, copy), at("k.cu:80 kernel", wait), at("k.cu:80 kernel"))
    assert named(*body) == ["k.cu:20", "k.cu:21", "k.cu:80", "k.cu:80"]


def test_a_role_that_is_called_for_two_groups_is_entered_and_a_helper_that_is_called_as_often_is_not():
    helper = [(line, f"k.cu:{inside} expect_and_copy") for line in (20, 21) for inside in (5, 6)]
    body = [role(call, line, inside) for call in (90, 91) for line, inside in helper]
    assert named(*body, role(90, 22)) == ["k.cu:20", "k.cu:20", "k.cu:21", "k.cu:21"] * 2 + ["k.cu:22"]


def test_what_a_helper_calls_is_at_the_call_of_the_helper():
    deep = ["k.cu:5 helper", "k.cu:1 inner"], ["k.cu:5 helper", "k.cu:2 inner"], ["k.cu:5 helper", "k.cu:3 inner"]
    body = [role(90, line, *frames) for line in (20, 21) for frames in deep]
    assert named(*body) == ["k.cu:20"] * 3 + ["k.cu:21"] * 3


def test_a_function_of_a_header_is_entered_if_it_has_several_lines():
    short, long = ([role(90, 20, f"ring.cuh:{line} f") for line in range(5, 5 + n)] for n in (3, 4))
    assert named(*short, role(90, 22)) == ["k.cu:20"] * 3 + ["k.cu:22"]
    assert named(*long, role(90, 22)) == ["ring.cuh:5", "ring.cuh:6", "ring.cuh:7", "ring.cuh:8", "k.cu:22"]


def test_lines_of_a_library_are_named_where_there_are_no_others():
    inside = [at(f"{LIBRARY}launch.h:7 launch", f"k.cu:{line} run", f"{LIBRARY}barrier:3 arrive") for line in (4, 5)]
    assert named(*inside, at(f"{LIBRARY}a.h:9 f", f"{LIBRARY}b.h:3 g")) == ["k.cu:4", "k.cu:5", f"{LIBRARY}a.h:9"]


def test_lines_of_addresses_and_parameters_tell_no_functions_apart():
    """They are named as the instruction that they are for."""
    body = [at("k.cu:20 kernel", f"k.cu:{n} wait", opcode=op) for n, op in ((5, "mbarrier"), (6, "add"), (7, "cvta"))]
    assert named(*body, at("k.cu:30 kernel")) == ["k.cu:20"] * 3 + ["k.cu:30"]
