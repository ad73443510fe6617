"""Errors that a person can act on: fact, place, probable cause, correction on standard error, and never a traceback."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

Call = Callable[..., Any]
PC = "producer_consumer"
User = Callable[[str], None]


def refused(answer: Any, code: int = 2) -> list[str]:
    """The lines of an error: nothing on standard output, no traceback, the name of the program first."""
    assert (answer.code, answer.out) == (code, "")
    assert "Traceback" not in answer.err
    lines = answer.error
    assert lines[0].startswith("pipesim: ")
    assert all(line.startswith(("  at: ", "  probable cause: ", "  try: ")) for line in lines[1:])
    return [lines[0].removeprefix("pipesim: "), *(line.strip() for line in lines[1:])]


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("producer_consumr", ["there is no protocol 'producer_consumr'", "try: did you mean producer_consumer?"]),
        (
            "xyzzy",
            [
                "there is no protocol 'xyzzy'",
                "try: see `pipesim list`, or give file.py:function, a program's .json or a kernel's .ptx",
            ],
        ),
        ("gone.py", ["there is no file gone.py", "try: give the path of a Python file"]),
        ("gone.py:", ["there is no file gone.py", "try: give the path of a Python file"]),
        ("gone.py:f", ["there is no file gone.py", "try: give the path of a Python file"]),
        ("gone.json", ["the program gone.json cannot be read", "probable cause: No such file or directory",
                       "try: check the path"]),
        ("bytes.json", ["the program bytes.json cannot be read",
                        "probable cause: it is not text in UTF-8: invalid start byte at byte 0",
                        "try: write one with `pipesim run NAME --save-program FILE`"]),
    ],
)  # fmt: skip
def test_a_protocol_that_is_not_there(call: Call, name: str, lines: list[str]) -> None:
    Path("bytes.json").write_bytes(b"\xff\xfe{}")
    assert refused(call("run", name)) == lines


@pytest.mark.parametrize("text", ["{", "{}", "[]", '{"format": "pipesim-program", "version": 99}'])
def test_a_json_that_is_no_program(call: Call, text: str) -> None:
    Path("p.json").write_text(text, encoding="utf-8")
    fact, place, *_ = refused(call("run", "p.json"))
    assert "flat program" in fact
    assert place == "at: p.json"


class TestUsersFile:
    """What can be wrong with a protocol file, each with its line."""

    @pytest.mark.parametrize(
        ("source", "fact", "line"),
        [
            ("x = 1\ndef f(:\n", "SyntaxError: invalid syntax", 2),
            ("\nraise KeyError('x')\n", "KeyError: 'x'", 2),
            ("import json\njson.loads('')\n", "JSONDecodeError: Expecting value: line 1 column 1 (char 0)", 2),
            ("import sys\nsys.exit(0)\n", "SystemExit: 0", 2),
        ],
    )
    def test_a_file_that_cannot_be_imported(
        self, call: Call, user: User, tmp_path: Path, source: str, fact: str, line: int
    ) -> None:
        user(source)
        assert refused(call("run", "mine.py:f")) == [
            f"mine.py cannot be imported: {fact}",
            f"at: {tmp_path / 'mine.py'}:{line}",
            "try: fix the file until `python mine.py` runs",
        ]

    def test_a_file_that_imports_what_is_not_installed(self, call: Call, user: User, tmp_path: Path) -> None:
        """Where pipesim is installed matters: ``python mine.py`` may well run elsewhere."""
        user("import no_such_module\n")
        assert refused(call("run", "mine.py:f")) == [
            "mine.py cannot be imported: ModuleNotFoundError: No module named 'no_such_module'",
            f"at: {tmp_path / 'mine.py'}:1",
            "try: install no_such_module where pipesim is installed, put it beside mine.py, or leave the import out",
        ]

    def test_a_file_that_is_no_text(self, call: Call, user: User, tmp_path: Path) -> None:
        """Python tells no line: the file is the place, and no line of Python's own importer."""
        user("x = '\0'\n")
        fact, place, _ = refused(call("run", "mine.py:f"))
        assert fact == "mine.py cannot be imported: SyntaxError: source code string cannot contain null bytes"
        assert place.removesuffix(":1") in ("at: mine.py", f"at: {tmp_path / 'mine.py'}")

    def test_a_function_that_is_not_there(self, call: Call, user: User) -> None:
        user("from json import loads\ndef gemm():\n    pass\ndef _hidden():\n    pass\nnumber = 3\n")
        assert refused(call("run", "mine.py:gem")) == ["mine.py has no function 'gem'", "try: did you mean gemm?"]
        assert refused(call("run", "mine.py:xyz")) == ["mine.py has no function 'xyz'", "try: it has gemm"]
        assert refused(call("run", "mine.py:number")) == ["mine.py has no function 'number'", "try: it has gemm"]

    @pytest.mark.parametrize(
        ("body", "fact", "cause"),
        [
            (
                "pass",
                "mine.py:f returned NoneType, not a Protocol",
                ["probable cause: a function without a return gives None"],
            ),
            ("return 3", "mine.py:f returned int, not a Protocol", []),
        ],
    )
    def test_a_function_that_returns_something_else(
        self, call: Call, user: User, tmp_path: Path, body: str, fact: str, cause: list[str]
    ) -> None:
        user(f"def f():\n    {body}\n")
        assert refused(call("run", "mine.py:f")) == [
            fact,
            f"at: {tmp_path / 'mine.py'}:1",
            *cause,
            "try: end it with: return p",
        ]

    @pytest.mark.parametrize(
        ("body", "what"),
        [
            ("return 1 // 0", "ZeroDivisionError: integer division or modulo by zero"),
            ("raise SystemExit", "SystemExit"),
        ],
    )
    def test_a_function_that_raises(self, call: Call, user: User, tmp_path: Path, body: str, what: str) -> None:
        user(f"def f():\n    {body}\n")
        assert refused(call("run", "mine.py:f")) == [
            f"mine.py:f raised {what}",
            f"at: {tmp_path / 'mine.py'}:2",
            "try: call the function in Python to see the whole traceback",
        ]

    @pytest.mark.parametrize(
        ("body", "fact"),
        [
            ("raise ValueError('no')", "worker raised ValueError: no"),
            ("raise SystemExit(0)", "a role of mine.py:f calls sys.exit()"),
        ],
    )
    def test_a_role_that_raises(self, call: Call, user: User, tmp_path: Path, body: str, fact: str) -> None:
        user(
            "from pipesim import Protocol\ndef f():\n    p = Protocol('f')\n    @p.role('worker')\n"
            f"    def worker(w):\n        {body}\n    return p\n"
        )
        found, place, *_ = refused(call("run", "mine.py:f"))
        assert found == fact
        assert place == f"at: {tmp_path / 'mine.py'}:6"

    @pytest.mark.parametrize(
        ("signature", "shown", "name"),
        [("x", "x", "x"), ("x: float = 1.5", "x: 'float' = 1.5", "x"), ("flag=True", "flag=True", "flag")],
    )
    def test_a_parameter_without_a_whole_number(
        self, call: Call, user: User, tmp_path: Path, signature: str, shown: str, name: str
    ) -> None:
        user(f"from __future__ import annotations\ndef f({signature}):\n    pass\n")
        assert refused(call("run", "mine.py:f")) == [
            f"mine.py:f: parameter {shown} has no whole number as its default value",
            f"at: {tmp_path / 'mine.py'}:2",
            f"try: write {name}: int = 4",
        ]

    def test_a_name_that_is_no_python_function(self, call: Call, user: User) -> None:
        user("f = dict\n")
        assert refused(call("run", "mine.py:f")) == [
            "mine.py:f is not a function written in Python",
            "try: give a Python function",
        ]


class TestParameters:
    @pytest.mark.parametrize(
        ("words", "lines"),
        [
            (["stage=4"], ["producer_consumer has no parameter 'stage'", "try: did you mean stages?"]),
            (["q=4"], ["producer_consumer has no parameter 'q'",
                       "try: it has stages, tiles, tile_bytes, consumer_warps, work, arrive_lanes"]),
            (["stages=four"], ["stages takes a whole number, not 'four'", "try: for example -p stages=4"]),
            (["stages=4.0"], ["stages takes a whole number, not '4.0'", "try: for example -p stages=4"]),
            (["stages=1_0"], ["stages takes a whole number, not '1_0'", "try: for example -p stages=4"]),
            (["stages= 4"], ["stages takes a whole number, not ' 4'", "try: for example -p stages=4"]),
            (["stages=٤"], ["stages takes a whole number, not '٤'", "try: for example -p stages=4"]),
            (["stages="], ["stages takes a whole number, not ''", "try: for example -p stages=4"]),
            (["stages=4", "stages=4"], ["stages is given more than once", "try: give it once"]),
            (["stages"], ["-p stages: expected NAME=VALUE",
                          "probable cause: a parameter is a name, an equals sign and a whole number, without spaces",
                          "try: for example -p stages=4"]),
            (["=4"], ["-p =4: expected NAME=VALUE",
                      "probable cause: a parameter is a name, an equals sign and a whole number, without spaces",
                      "try: for example -p stages=4"]),
            (["stages=0"], ["stages = 0 is out of range", "try: use 1 to 32"]),
            (["stages=33"], ["stages = 33 is out of range", "try: use 1 to 32"]),
            (["tile_bytes=100"], ["tile_bytes = 100 is not a multiple of 16",
                                  "probable cause: a bulk copy moves whole units of 16 bytes", "try: use 96 or 112"]),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("command", ["run", "verify", "capture"])
    def test_refused_alike_by_every_command(self, call: Call, command: str, words: list[str], lines: list[str]) -> None:
        argv = [part for word in words for part in ("-p", word)]
        assert refused(call(command, PC, *argv)) == lines

    def test_diff_refuses_them_too(self, call: Call, recorded: Path) -> None:
        assert refused(call("diff", recorded, "-p", "stage=4")) == [
            "producer_consumer has no parameter 'stage'",
            "try: did you mean stages?",
        ]

    def test_a_flat_program_has_none(self, call: Call) -> None:
        call("run", PC, "-p", "tiles=2", "--save-program", "p.json")
        assert refused(call("run", "p.json", "-p", "tiles=3")) == [
            "p.json is a flat program and takes no parameters",
            "probable cause: given: tiles",
            "try: flatten its protocol again with other parameters",
        ]

    @pytest.mark.parametrize("command", ["run", "verify", "capture"])
    def test_a_launch_of_no_cta(self, call: Call, command: str) -> None:
        assert refused(call(command, PC, "--ctas", "0")) == ["a launch of 0 CTAs", "try: use 1 to 2,147,483,647"]


class TestTooLarge:
    """What does not fit the chip: the limit itself is tested where it is kept, here that it arrives."""

    def test_shared_memory(self, call: Call) -> None:
        fact, *_ = refused(call("run", PC, "-p", "stages=15"))
        assert fact == "producer_consumer needs 246,000 bytes of shared memory; a CTA has 232,448"
        assert call("run", PC, "-p", "stages=14", "-p", "tiles=4").code == 0

    def test_threads(self, call: Call, ring: str) -> None:
        fact, *_ = refused(call("run", ring, "-p", "warps=32"))  # and the loader: 33 warps
        assert fact == "ring needs 1,056 threads; a CTA has at most 1,024"
        assert call("run", ring, "-p", "warps=31").code == 0

    def test_a_copy_of_odd_bytes(self, call: Call, ring: str, tmp_path: Path) -> None:
        fact, place, *_ = refused(call("run", ring, "-p", "nbytes=1000"))
        assert fact == "load copies 1,000 bytes"
        assert place.startswith(f"at: {tmp_path / 'ring.py'}:")

    def test_bytes_of_one_phase(self, call: Call, user: User, tmp_path: Path) -> None:
        user(
            "from pipesim import Protocol\ndef f(nbytes: int = 1 << 20):\n    p = Protocol('f')\n"
            "    bar = p.mbarriers('bar', 1, count=1)\n    @p.role('load')\n    def load(w):\n"
            "        with w.elect_one():\n            bar[0].expect_bytes(nbytes)\n    return p\n"
        )
        fact, place, *_ = refused(call("run", "mine.py:f"))
        assert fact == "load expects 1,048,576 bytes in one phase of bar[0]"
        assert place == f"at: {tmp_path / 'mine.py'}:8"
        assert call("run", "mine.py:f", "-p", f"nbytes={(1 << 20) - 1}").code == 0


class TestFiles:
    @pytest.mark.parametrize(
        "argv",
        [("run", PC, "--save-trace"), ("run", PC, "--save-program"), ("capture", PC, "-o")],
        ids=lambda argv: argv[-1],
    )
    @pytest.mark.parametrize(
        ("path", "lines"),
        [
            ("old", ["old exists already", "try: choose another name, or add --force to overwrite"]),
            ("gone/new", ["there is no folder gone", "try: create it first, or name another"]),
            ("folder", ["folder is a folder", "try: name a file"]),
            ("/dev/null", ["/dev/null is not an ordinary file", "try: name a file"]),
        ],
    )
    def test_an_output_that_cannot_be(self, call: Call, argv: tuple[str, ...], path: str, lines: list[str]) -> None:
        Path("old").touch()
        Path("folder").mkdir()
        assert refused(call(*argv, path)) == lines
        if path != "old":
            assert refused(call(*argv, path, "--force")) == lines

    def test_one_file_for_two(self, call: Call) -> None:
        assert refused(call("run", PC, "--save-trace", "x", "--save-program", "x")) == [
            "x cannot be both the trace and the program",
            "try: give each a file of its own",
        ]

    def test_a_folder_of_traces_that_is_not_there(self, call: Call) -> None:
        assert refused(call("verify", PC, "--traces", "gone")) == [
            "there is no folder gone",
            "try: check the path of --traces",
        ]

    @pytest.mark.parametrize(
        ("words", "given"), [(("--traces", "."), "--traces"), (("--tolerance", "5"), "--tolerance")]
    )
    def test_no_hardware_and_a_question_to_it(self, call: Call, words: tuple[str, ...], given: str) -> None:
        assert refused(call("verify", PC, "--no-hardware", *words)) == [
            f"{given} asks for a comparison with hardware, and --no-hardware excludes it",
            "try: give only one",
        ]

    def test_no_hardware_and_recorded(self, call: Call) -> None:
        answer = call("verify", PC, "--no-hardware", "--recorded")
        assert answer.code == 2
        assert "not allowed with argument" in answer.err


@pytest.mark.parametrize("command", ["run", "verify"])
def test_an_unknown_profile(call: Call, command: str) -> None:
    assert refused(call(command, PC, "--profile", "b200")) == [
        "there is no latency profile 'b200'",
        "try: did you mean h200? If not, use one of h100, h200, or the path of a JSON file",
    ]


def test_an_unknown_profile_of_diff(call: Call, recorded: Path) -> None:
    assert refused(call("diff", recorded, "--profile", "b200"))[0] == "there is no latency profile 'b200'"


@pytest.mark.parametrize("text", ["", "{}", '{"format": "pipesim-profile", "version": 9}'])
def test_a_file_that_is_no_profile(call: Call, text: str) -> None:
    Path("p.json").write_text(text, encoding="utf-8")
    fact, place, *_ = refused(call("run", PC, "--profile", "p.json"))
    assert "latency profile" in fact
    assert place == "at: p.json"


@pytest.mark.parametrize("steps", ["0", "-1"])
def test_a_budget_of_nothing(call: Call, steps: str) -> None:
    assert refused(call("run", PC, f"--max-steps={steps}")) == [f"--max-steps {steps}", "try: give 1 or more"]


class TestTraces:
    """A trace that cannot be trusted is nothing to compare with: 3. One that was never there is a wrong word: 2."""

    def test_missing(self, call: Call) -> None:
        assert refused(call("diff", "t.parquet"), 2) == [
            "there is no such trace file",
            "at: t.parquet",
            "try: check the path",
        ]

    def test_empty(self, call: Call) -> None:
        Path("t.parquet").touch()
        assert refused(call("diff", "t.parquet"), 3)[:2] == ["the trace file is empty", "at: t.parquet"]

    def test_foreign(self, call: Call, recorded: Path) -> None:
        Path("t.parquet").write_text("time,event\n1,2\n", encoding="utf-8")
        assert refused(call("diff", "t.parquet"), 3)[0] == "this is not a trace: a trace is a Parquet file"
        pq.write_table(pq.read_table(recorded).replace_schema_metadata(None), "u.parquet")
        assert "not a pipesim trace" in refused(call("diff", "u.parquet"), 3)[0]

    def test_truncated(self, call: Call, recorded: Path) -> None:
        Path("t.parquet").write_bytes(recorded.read_bytes()[:5000])
        assert refused(call("diff", "t.parquet"), 3)[0].startswith("the trace file is truncated")

    def test_damaged(self, call: Call, recorded: Path) -> None:
        data = bytearray(recorded.read_bytes())
        data[len(data) // 4] ^= 0xFF
        Path("t.parquet").write_bytes(data)
        _, place, *_ = refused(call("diff", "t.parquet"), 3)
        assert place == "at: t.parquet"
        shutil.copy(recorded, "t.parquet")
        assert call("diff", "t.parquet").code == 0

    def test_newer(self, call: Call, recorded: Path) -> None:
        table = pq.read_table(recorded)
        document = json.loads(table.schema.metadata[b"pipesim"]) | {"schema": 99}
        pq.write_table(table.replace_schema_metadata({b"pipesim": json.dumps(document)}), "t.parquet")
        assert refused(call("diff", "t.parquet"), 3) == [
            "the trace has schema version 99; this pipesim reads up to version 4",
            "at: t.parquet",
            "probable cause: a newer pipesim recorded it",
            "try: pip install --upgrade pipesim",
        ]

    def test_of_another_kernel(self, call: Call, recorded: Path, ring: str) -> None:
        assert refused(call("diff", recorded, "--protocol", ring, ), 3)[0] == (
            "the trace of producer_consumer does not have the agents of ring"
        )  # fmt: skip

    def test_of_a_protocol_that_is_not_built_in(self, call: Call, ring: str) -> None:
        call("run", ring, "--save-trace", "t.parquet")
        assert refused(call("diff", "t.parquet")) == [
            "the trace is of protocol ring, which is not built in",
            (
                "try: name the protocol to compare it with: "
                "--protocol file.py:function, a program's .json or a kernel's .ptx"
            ),
        ]
        assert call("diff", "t.parquet", "--protocol", ring).code == 0

    def test_a_trace_cannot_make_us_run_a_file(self, call: Call, user: User) -> None:
        user(
            "from pathlib import Path\nPath('it_ran').touch()\nfrom pipesim import Protocol\ndef f():\n"
            "    p = Protocol('mine.py:f')\n    @p.role('r')\n    def r(w):\n        w.work(1)\n    return p\n"
        )
        call("run", "mine.py:f", "--save-trace", "t.parquet")
        Path("it_ran").unlink()
        assert refused(call("diff", "t.parquet"))[0] == "the trace is of protocol mine.py:f, which is not built in"
        assert not Path("it_ran").exists()
