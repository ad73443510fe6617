"""``pipesim check kernel.py:function``. Triton is not installed here: beside the file is what is used of it."""

from pathlib import Path

import pytest

from pipesim.launches.hooks.source import _strides, _use
from pipesim.protocol_files import jit_functions
from tests.support.fixture_types import Call
from tests.support.paths import ROOT

TRITON = f"""
import inspect, sys
from pathlib import Path
from types import ModuleType, SimpleNamespace as Some

for name in ("language", "backends", "backends.compiler", "runtime", "runtime.driver"):
    sys.modules[f"triton.{{name}}"] = ModuleType(name)
sys.modules["triton.language"].dtype = lambda kind: Some(name=kind, primitive_bitwidth=16)
sys.modules["triton.backends.compiler"].GPUTarget = lambda _, arch, warp: Some(arch=arch)
active = sys.modules["triton.runtime.driver"].driver = Some(_active=None)
active.set_active = lambda driver: setattr(active, "_active", driver)
PTX = Path({str(ROOT)!r}, "docs/examples/row_max.ptx").read_text()
LAST = "row_max_param_3"
PTX = PTX.replace(LAST + "\\n", f"{{LAST}},\\n.param .u64 global_scratch,\\n.param .u64 profile_scratch\\n", 1)

class jit:
    starting_line_number = 5

    def __init__(self, fn):
        self.arg_names, self.src = list(inspect.signature(fn).parameters), inspect.getsource(fn)
        more = {{"has_default": False, "annotation_type": ""}}
        self.params = [Some(name=name, is_constexpr=name.isupper(), **more) for name in self.arg_names]

    def __getitem__(self, grid):
        def run(**given):
            if given["n"] == 3:
                raise ValueError("n is odd")
            kinds = {{key: "i32" if isinstance(value, int) else "*fp16" for key, value in given.items()}}
            kinds |= {{key: "constexpr" for key in given if key.isupper()}}
            said = Some(name="row_max", num_ctas=1, num_warps=3, shared=12336)
            code = Some(fn=self, signature={{key: kinds[key] for key in self.arg_names if key in kinds}})
            self.device_caches = {{90: ({{0: Some(asm={{"ptx": PTX}}, metadata=said)}},)}}
            values = [given[key] for key in code.signature]
            active._active.launcher_cls(code, said)(*grid, 1, 1, 0, *[None] * 5, *values)
        return run
"""
KERNEL = """import triton


@triton.jit
def row_max(x, y, rows, n, TILE):
    helper(x + rows * n)
    y += rows


@triton.jit
def helper(at):
    return 1
"""


@pytest.fixture(autouse=True)
def _triton() -> None:
    Path("triton").mkdir()
    Path("triton/__init__.py").write_text(TRITON)
    Path("k.py").write_text(KERNEL)


def test_a_function_is_compiled_and_checked(call: Call) -> None:
    answer = call("check", "k.py", "--set", "TILE=2", "--set", "n=2048", "--set", "rows=8", "--quick")
    assert answer.code == 0, answer.err
    assert answer.out.startswith("row_max   grid 8 CTAs")
    assert "✓ proved: " in answer.out
    assert answer.err.startswith("pipesim: x *fp16, y *fp16, grid 8 guessed: --set NAME=VALUE, ")


def test_what_is_missing_or_wrong_is_said(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = call("check", "k.py:row_max", "--set", "n=3")
    assert answer.code == 2
    assert answer.err == (
        "pipesim: row_max needs values\n  try: pipesim check k.py:row_max --set n=3 --set TILE=VALUE\n"
    )
    answer = call("check", "k.py:row_max", "--set", "n=3", "--set", "TILE=2")
    assert answer.err.startswith("pipesim: Triton does not compile row_max for x *fp16, y *fp16, rows 512\n")
    assert "ValueError: n is odd" in answer.err
    Path("k.py").write_text(KERNEL.replace("    helper(", "    other("))
    assert jit_functions("k.py") == ["row_max", "helper"]
    assert call("check", "k.py").err == "pipesim: k.py has several kernels\n  try: add :row_max or :helper\n"
    assert jit_functions("k.py:triton") == []
    Path("k.py").write_text(
        "@triton.jit(\n    noinline=True\n)\ndef _mine(x): pass\ndef f(x): pass\nf = triton.jit(f)\n"
    )
    assert jit_functions("k.py") == ["_mine", "f"]
    monkeypatch.setattr("pipesim.protocol_files.confined", [True])  # --untrusted
    assert call("check", "k.py:row_max").err.startswith("pipesim: k.py is not run\n")


def test_what_a_parameter_is_follows_from_its_use() -> None:
    code = "a = d.load([0]) + (M + 1) // M\ntl.store(at + 1, tl.cdiv(n, 2))\nX += n\nb = (z + z.to(tl.float32))"
    assert [_use(name, code) for name in ("d", "M", "at", "n", "X", "b_desc", "in_ptr", "z")] == [
        "box", "", "*fp16", "", "*fp16", "box", "*fp16", "",
    ]  # fmt: skip
    assert _strides(["x", "stride_am", "stride_ak", "row_stride"]) == {"stride_am": 1, "stride_ak": 0}
