"""Kernels are checked as they are compiled. Triton is not installed here: stand-ins have what the hooks use of it."""

import atexit
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import pipesim
from pipesim.errors import RefutedKernelError
from pipesim.launches.guess import SIZE, launch_of
from pipesim.launches.hooks import checker, install
from pipesim.ptx.launch.values import Array, Field, Number, Pointer, TensorMap
from tests.support.paths import ROOT

#: As Triton's knobs, and a program that compiles two kernels, in a child as well.
KNOBS = "class compilation_knobs:\n    listener = None\ncompilation = compilation_knobs()\n"
PROGRAM = """
import os, subprocess, sys
from types import SimpleNamespace
from triton import knobs

def compiled(name):
    kinds = dict.fromkeys(("x", "y"), "*fp32") | dict.fromkeys(("rows", "n"), "i32")
    function = SimpleNamespace(fn=compiled, arg_names=list(kinds), starting_line_number=8)
    source = SimpleNamespace(fn=function, signature=kinds)
    metadata = {"name": "row_max", "num_warps": 3, "shared": 12336, "num_ctas": 1}
    files = {"a.ptx": f"{name}.ptx"}
    knobs.compilation.listener(src=source, metadata=metadata, metadata_group=files, times=None, cache_hit=False)

right = __file__.replace("program.py", "right")
compiled(right)
compiled(right)
if sys.argv[1:]:
    compiled("docs/examples/row_max")
else:
    subprocess.run([sys.executable, __file__, "again"], check=True)
    sys.exit(7)
"""


@pytest.fixture
def program(tmp_path: Path) -> list[str | Path]:
    """A command that runs the program as an environment has it where pipesim's wheel is installed."""
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton" / "__init__.py").touch()
    (tmp_path / "triton" / "knobs.py").write_text(KNOBS)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "pipesim.pth").write_bytes((ROOT / "pipesim.pth").read_bytes())
    site = f"import site\nsite.addsitedir({str(tmp_path / 'site')!r})\n"
    (tmp_path / "program.py").write_text(f"{site}{PROGRAM}")
    text = (ROOT / "docs" / "examples" / "row_max.ptx").read_text()
    (tmp_path / "right.ptx").write_text(text.replace("@%p8 bra 	$L__BB0_23;", ""))  # the branch that is wrong
    return [sys.executable, tmp_path / "program.py"]


def ran(command: list[str | Path], mode: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join((str(folder), str(ROOT)))
    given = os.environ | {"PYTHONPATH": path, "PIPESIM": mode, "TMPDIR": str(folder), "PIPESIM_WAIT": "50"}
    return subprocess.run(command, env=given, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_program_and_its_children_are_checked_and_end_as_they_do(program, tmp_path):
    done = ran(program, "check", tmp_path)
    assert done.returncode == 7
    assert done.stdout == ""
    warned, source, summary = done.stderr.splitlines()
    found = "refuted: row_max: deadlock: 2 of 3 agents wait indefinitely (for guessed sizes, grid)"
    assert warned == f"{tmp_path / 'program.py'}:8: CompiledKernelWarning: {found}"
    assert source == "  def compiled(name):"
    counts = "1 proved (1 for guessed arguments), 1 refuted (1 for guessed arguments, see warnings)"
    assert summary == f"pipesim: 2 kernels compiled, {counts}"
    assert not list(tmp_path.glob("pipesim-compiled-*"))


@pytest.mark.slow
def test_what_is_refuted_is_an_error_of_the_compiler(program, tmp_path):
    done = ran([*program, "again"], "strict", tmp_path)
    assert done.returncode == 1
    assert "pipesim.errors.RefutedKernelError: refuted: row_max: " in done.stderr
    assert "  at: " in done.stderr


@pytest.mark.slow
def test_where_nothing_is_asked_nothing_is_imported(tmp_path):
    (tmp_path / "pipesim.pth").write_bytes((ROOT / "pipesim.pth").read_bytes())
    code = f"import site, sys; site.addsitedir({str(tmp_path)!r}); print('pipesim' in sys.modules)"
    said = [ran([sys.executable, "-c", code], mode, tmp_path) for mode in ("", "off", "yes")]
    assert [each.stdout for each in said] == ["False\n", "True\n", "True\n"]
    assert [each.stderr for each in said] == ["", "", "pipesim: PIPESIM=yes is not known: use check or strict\n"]


def test_a_strict_compiler_raises_what_was_found_and_nothing_else(tmp_path):
    compiled = install.Compiled(tmp_path, strict=False)
    compiled.note({"name": "k"}, "ptx")
    (job,) = tmp_path.iterdir()
    assert json.loads(job.read_text()) == {"name": "k", "ptx": "ptx"}
    compiled.note({"name": "k", "kinds": object()}, "ptx")  # what cannot be written harms nothing
    compiled.strict = True
    answer = job.with_suffix(checker.ANSWER)
    for verdict in ("proved", "unknown", "refuted"):
        answer.write_text(json.dumps({"verdict": verdict, "said": "a race", "place": "k.py:3", "correction": "wait"}))
        if verdict != "refuted":
            compiled.note({"name": "k"}, "ptx")
    with pytest.raises(RefutedKernelError, match=r"^a race\n  at: k\.py:3\n  try: wait$"):
        compiled.note({"name": "k"}, "ptx")


def test_a_second_call_changes_only_whether_it_is_strict(tmp_path, monkeypatch):
    compiled = install.Compiled(tmp_path, strict=False)
    monkeypatch.setattr(install, "_installed", [compiled])
    monkeypatch.setenv("PIPESIM", "")
    before = [*sys.meta_path]
    pipesim.install(strict=True)
    assert compiled.strict
    assert (sys.meta_path, os.environ["PIPESIM"]) == (before, "strict")


class Function:
    """A function of Triton's: ``run`` has the names that it has there."""

    arg_names = ("a", "n", "scale", "T")
    starting_line_number = 4

    def run(self, listener: Any, bound_args: dict[str, Any], grid: Any, **given: Any) -> None:
        listener(**given)


def test_the_arguments_of_the_call_that_compiles_are_noted(tmp_path):
    heard: list[Any] = []
    (tmp_path / "k.ptx").write_text(".version 8.0")
    knobs = SimpleNamespace(
        compilation=type("Knobs", (), {"listener": staticmethod(lambda **each: heard.append(each))})()
    )
    install.changes(install.Compiled(tmp_path, strict=False))["triton.knobs"](knobs)
    function, dtype = Function(), "torch.int32"
    tensor: Any = SimpleNamespace(device="cpu", dtype=dtype, numel=lambda: 2, tolist=lambda: [3, 4])
    tensor.flatten = lambda: tensor
    source = SimpleNamespace(fn=function, signature={"a": "*i32", "n": "i32", "scale": "fp32", "T": "constexpr"})
    given = {"src": source, "metadata": {"name": "k", "num_warps": 4}, "metadata_group": {"k.ptx": tmp_path / "k.ptx"}}
    values = {"a": tensor, "n": 24, "scale": 0.5, "T": 64}
    function.run(knobs.compilation.listener, values, lambda these: (these["n"] // 8, 2), **given)
    knobs.compilation.listener(src=None)  # of a Triton that is not known
    (job,) = tmp_path.glob("*.job")
    made = json.loads(job.read_text())
    assert (made["grid"], made["values"]) == ([3, 2, 1], [{"dtype": dtype, "contents": [3, 4]}, 24, 0.5, 64])
    assert len(heard) == 2  # the program's own listener is called as before


def noted(**changes: Any) -> dict[str, Any]:
    kinds = [["a", "*i32"], ["t", "tensordesc<fp16[128, 64]>"], ["n", "i32"], ["B", "constexpr"]]
    meta = {"swizzle": 3, "elem_size": 2, "elem_type": 6, "block_size": [128, 64], "fp4_padded": False}
    given = {"name": "k", "kinds": kinds, "values": None, "grid": None, "cluster": [2], "block": [128], "shared": 64}
    return given | {"maps": [meta]} | changes


def test_a_launch_is_what_the_call_says_and_guessed_where_there_is_none(tmp_path):
    ptx = tmp_path / "k.ptx"
    words = "".join(f", .param .b{size} p{n}" for n, size in enumerate((32, 32, 64, 64, 32)))
    ptx.write_text(
        ".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .b64 a, .param .align 64 .b8 t[128]"
        f"{words}, .param .b64 s)\n{{ .reg .b32 %r<2>; mov.u32 %r1, %ctaid.y; ret; }}\n"
    )
    made, guessed = launch_of(noted(ptx=ptx.read_text()), ptx)
    assert guessed == "sizes, grid"
    assert (made.grid, made.block, made.cluster) == ((16, 2, 1), (128, 1, 1), (2, 1, 1))
    pointer, tensor, *rest = [each.content for each in made.parameters]
    assert isinstance(tensor, TensorMap)
    assert (pointer, tensor.dims, tensor.box) == (Pointer(), (SIZE, SIZE), (64, 128))
    sizes = [Number("s32", SIZE), Number("s32", SIZE), Number("s64", SIZE), Number("s64", 1), Number("s32", SIZE)]
    assert rest[:5] == sizes

    values = [{"dtype": "torch.int32", "contents": [5]}, {"shape": [64, 256], "strides": [256, 1]}, 8, 1]
    made, guessed = launch_of(noted(ptx=ptx.read_text(), values=values, grid=[8, 1, 1]), ptx)
    assert (guessed, made.grid) == ("", (8, 1, 1))
    assert made.parameters[0].content == Pointer(contents=(Field(0, Array("s32", (5,))),))
    assert made.parameters[6].content == Number("s32", 8)


def test_of_a_kernel_of_the_cute_dsl_the_boxes_and_constant_shapes_are_known(tmp_path):
    atom = 'non_exec_tiled_tma_load<sm_90, bf16, copy_bits = 131072, tma_gbasis = <"(64,(2,32),1):(1@1,1@0)">'
    facts = "{exact_block_dim = array<i64: 64, 1, 1>, exact_grid_dim = array<i64: 8, 2, 1>}"
    attributes = {"function_type": f"(!cute.{atom})", install._FACTS: facts, "sym_name": SimpleNamespace(value="k")}
    kernel = SimpleNamespace(operation=SimpleNamespace(name="cuda.kernel"), attributes=attributes)
    host = SimpleNamespace(regions=[], name="func")
    inner = SimpleNamespace(regions=[SimpleNamespace(blocks=[SimpleNamespace(operations=[kernel])])])
    module = SimpleNamespace(body=SimpleNamespace(operations=[host, inner]))
    ((name, found),) = install._cute_kernels(module)
    assert (name, found["grid"], found["block"]) == ("k", [8, 2, 1], [64, 1, 1])

    class Compiler:
        compile_options = SimpleNamespace(full_ptx_path=str(tmp_path / "k.ptx"))

        def compile_and_cache(self, _module: Any, word: str, funcBody: Any = None) -> str:  # noqa: N803
            return word

    ptx = tmp_path / "k.ptx"
    ptx.write_text(
        ".version 8.8\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .align 64 .b8 t[128])\n"
        "{ .reg .b64 %r<2>; mov.b64 %r1, t; ret; }\n"
    )
    install.changes(install.Compiled(tmp_path, strict=False))["cutlass.cutlass_dsl.cutlass"](
        SimpleNamespace(CutlassBaseDSL=Compiler)
    )
    assert Compiler().compile_and_cache(module, "made", funcBody=noted) == "made"
    (job,) = tmp_path.glob("*.job")
    told = json.loads(job.read_text())
    assert told["file"] == __file__
    made, guessed = launch_of(told, ptx)
    (tensor,) = [each.content for each in made.parameters]
    assert (guessed, tensor) == ("sizes", TensorMap("bf16", (SIZE,) * 4, (64, 2, 32, 1)))
    assert (made.grid, made.block) == ((8, 2, 1), (64, 1, 1))


def test_what_was_not_finished_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(checker, "_SECONDS", 2.0)
    monkeypatch.setattr(threading.Thread, "start", lambda _: None)
    made = checker.Checker()
    atexit.unregister(made.end)
    made.folder.rmdir()
    made._counts = Counter({"proved": 3, "unknown": 1, "refuted": 1})
    made._missing = Counter({"a word": 1})
    said = made._summary(7, finished=False).splitlines()
    left = "2 not finished in 2 s (PIPESIM_WAIT=SECONDS)"
    assert said == [f"7 kernels compiled, 3 proved, 1 refuted (see warnings), 1 unknown, {left}", "  1 unknown: a word"]
