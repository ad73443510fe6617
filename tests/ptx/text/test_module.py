"""Files: directives, parameters, variables, functions, and what is not PTX."""

import pytest

from pipesim.errors import PtxError
from pipesim.ptx.text.declarations import Param, Variable
from pipesim.ptx.text.locations import MAX_CHARACTERS
from pipesim.ptx.text.read import read_module
from tests.support.ptx_text import HEAD, kernel, module, ptx


def test_the_head_and_the_directives_of_a_kernel():
    directives = "\n.maxntid 384, 1, 1\n.reqnctapercluster 2 , 1, 1\n.explicitcluster\n.maxnreg 168\n"
    made = module("ret;", directives=directives)
    (function,) = made.entries
    assert (made.name, made.version, made.target, made.address_size) == ("k.ptx", (8, 7), ("sm_90a",), 64)
    assert function.is_entry
    assert (function.name, function.line) == ("k", 4)
    assert function.directives == {
        "maxntid": (384, 1, 1),
        "reqnctapercluster": (2, 1, 1),
        "explicitcluster": (),
        "maxnreg": (168,),
    }


@pytest.mark.parametrize("end", ["\0", "\n\0", "\0\0\n", " \0 \0\r\n"])
def test_a_text_may_end_as_a_string_of_c(end: str) -> None:
    text = f"{HEAD}.entry k() {{ ret; }}"
    assert read_module(text + end, "k.ptx") == read_module(text, "k.ptx")
    with pytest.raises(PtxError, match="the file is not text"):
        read_module(text + end + "x", "k.ptx")


def test_parameters_are_laid_out_in_order():
    params = (
        "\n.param .align 64 .b8 map[128],\n.param .u32 n,\n.param .u64 .ptr .global .align 16 p,\n.param .b8 flag,"
        "\n.param .u16 half, .param .align 4 .b8 rest[6]"
    )
    assert kernel("ret;", params).params == (
        Param("map", "b8", 128, 64, 0),
        Param("n", "u32", 4, 4, 128),
        Param("p", "u64", 8, 8, 136, "global"),
        Param("flag", "b8", 1, 1, 144),
        Param("half", "u16", 2, 2, 146),
        Param("rest", "b8", 6, 4, 148),
    )


def test_shared_variables_of_the_kernel_and_of_the_file_that_it_uses():
    before = (
        ".shared .align 8 .b64 used[4];\n.shared .b32 unused[100];\n.extern .shared .align 1024 .b8 dynamic[];\n"
        ".func helper() { .reg .b32 %r<2>; .shared .align 16 .b8 inner[24]; mov.u32 %r1, inner; ret; }\n"
    )
    body = ".shared .b32 own;\nmov.u32 %r1, used;\nmov.u32 %r2, own;\nmov.u32 %r3, dynamic;\ncall helper;\nret;"
    function = kernel(body, before=before)
    found = {each.name: (each.size, each.align, each.offset) for each in function.shared}
    assert (function.shared_bytes(0), function.shared_bytes(96)) == (1024, 1120)
    assert found == {"used": (32, 8, 0), "inner": (24, 16, 32), "own": (4, 4, 56), "dynamic": (0, 1024, 1024)}


def test_initial_values_and_addresses():
    before = (
        ".global .align 4 .u32 words[4] = {1, 0x10, -1};\n.const .b8 text[] = {104, 105, 0};\n"
        ".global .align 8 .u64 at[2] = {words, generic(text)+1};\n.global .f32 one = 0f3F800000;\n"
        ".visible .global .align 8 .b64 two[2][2] = {{1, 2}, {3, 4}};\n"
    )
    found = {each.name: each for each in module("ret;", before=before).globals}
    assert found["words"] == Variable(
        "words", "global", "u32", 16, 4, 0, 4, False, b"\1\0\0\0\x10\0\0\0\xff\xff\xff\xff", ()
    )
    assert (found["text"].size, found["text"].init) == (3, b"hi\0")
    assert found["at"].addresses == ((0, "words"), (8, "text"))
    assert found["one"].init == bytes.fromhex("0000803f")
    assert (found["two"].size, found["two"].init[8:16]) == (32, b"\2" + bytes(7))


def test_functions_with_parameters_results_and_without_a_body():
    before = (
        ".extern .func (.param .b32 r) outside (.param .b64 a, .param .align 8 .b8 s[16]) ;\n"
        ".func (.reg .b32 %res) inside (.reg .b32 %x)\n{ add.u32 %res, %x, 1; ret; }\n"
    )
    made = module("ret;", before=before)
    outside, inside, entry = made.functions
    assert outside.declared_only
    assert [each.offset for each in outside.params] == [0, 8]
    assert outside.results[0].size == 4
    assert inside.params == (Param("%x", "b32", 4, 4, 0, "", in_register=True),)
    assert inside.registers == {"%res": "b32", "%x": "b32"}
    assert made.entries == (entry,)
    assert made.function("inside") is inside
    assert made.function("none") is None


def test_a_directive_that_is_not_known_is_listed():
    made = module('.pragma "nounroll";\n.novel 1, 2;\nret;', before=".alias a, b;\n.strange thing;\n")
    assert made.unread == ((5, ".strange"), (13, ".novel"))
    assert made.entries[0].pragmas == ((12, "nounroll"),)


@pytest.mark.parametrize(
    ("text", "fact", "line"),
    [
        ("", "this is not PTX", 1),
        ("\n\nhello", "this is not PTX", 1),
        ("\x7fELF\2\1\1\0\0\3", "the file is not text", 1),
        (".global .b32 x;", "this is not PTX", 1),
        (".version 8.7\n.target sm_90a\nfoo", "a statement is expected", 2),
        (".version x\n", ".version has no number", 1),
        (".version 8.0\n.target\n", ".target names no architecture", 2),
        (f"{HEAD}.address_size 16\n", ".address_size is neither 32 nor 64", 4),
        (f"{HEAD}/* open\n\n", "a comment is not closed", 4),
        (f"{HEAD}.global .b32 x\n", "the directive .global is not closed", 4),
        (f"{HEAD}.global .b32 x[2] = {{1,2,3}};\n", "x has 8 bytes, and its initial values have 12", 4),
        (f"{HEAD}.global .b32 x[9999999999999999];\n", "is not a size of an array", 4),
        (f"{HEAD}.global .align 3 .b32 x;\n", "does not declare a name", 4),
        (f"{HEAD}.section .debug_str {{ x\n", "a section is not closed", 4),
        (f"{HEAD}.entry k( .param .q8 x ) {{ ret; }}", "one state space and one type (a parameter of k)", 4),
        (f"{HEAD}.entry k .maxntid abc\n{{ ret; }}", "the directive .maxntid has a value that is not a number", 4),
        (f"{HEAD}.entry ( {{ ret; }}", "a function's header cannot be read", 4),
        (f"{HEAD}.entry k() {{\nret;\n", "a function's body is not closed", 6),
    ],
)
def test_what_is_not_ptx(text, fact, line):
    with pytest.raises(PtxError) as raised:
        read_module(text, "some/file.ptx")
    assert fact in raised.value.fact
    assert raised.value.place.startswith(f"some/file.ptx, line {line}, column ")
    assert raised.value.cause


def test_a_text_that_is_too_large():
    with pytest.raises(PtxError, match="the text has 67,108,865 characters"):
        read_module(" " * (MAX_CHARACTERS + 1), "k.ptx")


def test_only_one_kernel_is_read():
    other = '.entry other()\n{ { .pragma "}"; } garbage ??? }\n'
    made = read_module(ptx("ret;", before=other), "k.ptx", only="k")
    assert [(each.name, each.declared_only, len(each.body)) for each in made.entries] == [
        ("other", True, 0),
        ("k", False, 1),
    ]
    with pytest.raises(PtxError, match="a function's body is not closed"):
        read_module(ptx("ret;") + ".entry other() { {", "k.ptx", only="k")


def test_every_beginning_of_a_file_is_read_or_named():
    """A file that was cut somewhere gives a module or one error with a line."""
    params = ".param .align 64 .b8 map[128], .param .u32 n"
    body = "tab: .branchtargets A, B;\n{ .reg .pred P; A: @P bra A; }\nB: ld.param.u32 %r1, [n+0]; brx.idx %r1, tab;"
    text = ptx(body, params, ".global .b32 x[2] = {1, 2};\n", ".maxntid 32, 1, 1").replace("A, B;", "B, B;")
    assert refused(text) == ""
    places = [place for end in range(len(text)) if (place := refused(text[:end]))]
    assert len(places) > len(text) // 2
    assert all(place.startswith("k.ptx, line ") for place in places)


def refused(text: str) -> str:
    """Where a text is wrong, "" if it is PTX."""
    try:
        read_module(text, "k.ptx")
    except PtxError as error:
        return error.place
    return ""
