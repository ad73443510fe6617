"""``pipesim check kernel.cu``: compiled with what is installed, here a compiler that writes what the test has."""

import os
import sys
from pathlib import Path

import pytest

from hwkernels.device.source_ptx import written_sizes
from pipesim.cli import found_kernels
from tests.cli.test_check_kernels import PLAIN_KERNELS
from tests.support.fixture_types import Call

SOURCE = """#define THREADS 64
constexpr int kTiles = 3;
template <int N> __global__ void f(int *out);
__global__ void __launch_bounds__(THREADS) g(int *out);
void launch(int *out, int n) {
    f<32><<<dim3(kTiles, 2), THREADS, 128>>>(out);
    f<64><<<dim3(kTiles, 2), 32>>>(out);
    g<<<n, THREADS>>>(out);
}
"""
COMPILER = f"""#!{sys.executable}
import sys
from pathlib import Path
words = sys.argv[1:]
Path("seen").write_text(" ".join(words) + chr(10) + Path(words[-3]).read_text())
if Path("log").exists():
    print(Path("log").read_text(), file=sys.stderr)
    sys.exit(1)
Path(words[-1]).write_bytes(Path("made").read_bytes())
"""


@pytest.fixture(autouse=True)
def _compilers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "kept"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    (tmp_path / "bin").mkdir()
    for name in ("nvcc", "mojo"):
        (tmp_path / "bin" / name).write_text(COMPILER)
        (tmp_path / "bin" / name).chmod(0o755)


def test_the_launches_that_a_source_writes_down(tmp_path: Path) -> None:
    """Numbers and constants that are the same in all launches of a kernel."""
    source = tmp_path / "k.cu"
    source.write_text(SOURCE)
    assert written_sizes(source, "f<32>") == ("grid=3", "grid.y=2")
    assert written_sizes(source, "space::g") == ("block=64",)
    assert written_sizes(source, "h") == ()


def test_a_source_is_compiled_and_its_kernels_checked(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("k.cu").write_text(SOURCE)
    Path("made").write_text(PLAIN_KERNELS)
    answer = call("check", "k.cu", "-I", "include", "--jobs", "1")
    assert answer.code == 0
    assert "✓ f<32> · sm_90 · k.cu · grid=3 grid.y=2 as the source launches it; block" in answer.out
    assert "✓ g · sm_90 · k.cu · block=64 as the source launches it; grid 1 guessed" in answer.out
    assert Path("seen").read_text().startswith("-ptx -arch=sm_90a -std=c++17 -lineinfo -Iinclude ")
    one = call("check", "k.cu", "--entry", "f<32>", "--arch", "sm_100a", "--quick")
    assert one.out.startswith("f<32>   grid 6 CTAs")
    assert one.err.startswith("pipesim: grid=3 grid.y=2 as the source launches it; block 64 guessed: --set ")
    assert "-arch=sm_100a" in Path("seen").read_text()
    assert Path("seen").read_text().endswith("auto *pipesim_entry_0 = &f<32>;\n")
    monkeypatch.setattr(found_kernels, "confined", [True])
    assert call("check", "k.cu").err.startswith("pipesim: k.cu is not compiled\n")


RACING = """
.version 8.5
.target sm_90
.address_size 64
.visible .entry g(.param .u64 out) .maxntid 64
{
.reg .b32 %r<3>;
.reg .b64 %rd<5>;
ld.param.u64 %rd1, [out];
cvta.to.global.u64 %rd2, %rd1;
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd3, %r1, 4;
add.s64 %rd4, %rd2, %rd3;
ld.global.u32 %r2, [%rd4+4];
bar.sync 0;
st.global.u32 [%rd4], %r2;
ret;
}
"""


@pytest.mark.slow
def test_what_a_guess_may_decide_is_no_refutation(call: Call) -> None:
    """Both CTAs write the same bytes: with the threads that a launch has it is so, with guessed ones unknown."""
    Path("k.cu").write_text(SOURCE.replace("g<<<n, THREADS>>>(out);", ""))
    Path("made").write_text(RACING)
    guessed = call("check", "k.cu", "--set", "grid=2")
    assert guessed.code == 3
    said = "unknown: what fails in g may not happen, as guesses decide it: block 64 (--set"
    assert said in " ".join(guessed.out.split())
    assert "refuted" not in guessed.out
    assert '"verdict": "unknown"' in call("check", "k.cu", "--set", "grid=2", "--json").out
    assert call("check", "k.cu", "--set", "grid=2", "--set", "block=64").code == 1
    Path("more").mkdir()
    Path("more/k.ptx").write_text(RACING)
    Path("more/l.ptx").write_text(RACING)
    assert "2 kernels: 2 unknown" in call("check", "more", "--set", "grid=2", "--jobs", "1").out
    assert call("check", "more", "--set", "grid=2", "--set", "block=64", "--jobs", "1").code == 1


@pytest.mark.parametrize("words", [("run",), ("show",), ("names",), ("export", "--to", "promela")])
def test_every_command_that_takes_a_kernel_compiles_a_source(call: Call, words: tuple[str, ...]) -> None:
    Path("k.cu").write_text(SOURCE)
    Path("made").write_text(PLAIN_KERNELS)
    assert call(words[0], "k.cu", "--entry", "g", *words[1:]).code == 0
    assert "name one of them with --entry NAME" in call(words[0], "k.cu", *words[1:]).err
    assert call("names", "k.cu", "--entry", "g", "--write").err.endswith("`pipesim new --ptx`\n")


def test_what_is_wrong_with_a_source_is_said_with_its_place(call: Call) -> None:
    Path("k.cu").write_text(SOURCE)
    Path("log").write_text('k.cu(12): error: identifier "y" is undefined\n  x = y;')
    answer = call("check", "k.cu")
    assert answer.code == 2
    assert answer.err.startswith('pipesim: nvcc: identifier "y" is undefined\n  at: k.cu:12\n')
    Path("log").write_text("k.mojo:3:5: error: use of unknown declaration 'y'")
    Path("k.mojo").write_text("fn main(): pass")
    assert "unknown declaration 'y'\n  at: k.mojo:3" in call("check", "k.mojo").err


def test_the_name_of_a_source_is_no_command(call: Call) -> None:
    """nvcc has a shell carry out its parts, with names between quotation marks."""
    for name in ("$(touch found).cu", "`touch found`.cu", 'a"; touch found; ".cu'):
        Path(name).write_text(SOURCE)
        assert "nvcc gives a shell its name" in call("check", name).err
    assert not Path("seen").exists()
    Path("linked.cu").symlink_to(name)
    assert call("check", "linked.cu").code == 2
    assert "cannot be read" in call("check", "gone.cu").err
    assert call("export", "linked.cu", "--set", "4=1", "--to", "html").err.startswith(
        "pipesim: linked.cu is not compiled\n"
    )


def test_a_program_of_mojo_has_its_ptx_as_text(call: Call) -> None:
    Path("k.mojo").write_text("fn main(): pass")
    Path("made").write_bytes(b"\x7fELF" + bytes(60) + PLAIN_KERNELS.encode() + bytes(8))
    assert "f<32> · sm_90 · k.mojo" in call("check", "k.mojo", "--list").out


@pytest.mark.slow
def test_nvrtc_where_there_is_no_nvcc(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    Path("k.cu").write_text(
        "template <int N> __global__ void __launch_bounds__(32) f(int *x) { x[threadIdx.x] = N; }\n"
    )
    answer = call("check", "k.cu", "--entry", "f<7>")
    assert answer.out.startswith("f<7>   grid 1 CTA")
    Path("k.cu").write_text("__global__ void f(int *x) { x[0] = y; }\n")
    assert call("check", "k.cu").code == 2
    Path("k.mojo").write_text("fn main(): pass")
    assert "mojo is not installed" in call("check", "k.mojo").err


#: A warp waits for a second arrival; in the wrong twin wherever there is one CTA, which a guess says, in the right
#: one always: so that one is a finding whatever is guessed.
HANGS = """
.version 8.4
.target sm_90a
.address_size 64
.visible .entry g() {
.shared .align 8 .b64 bar;
.reg .pred %p<4>;
.reg .b32 %r<8>;
.reg .b64 %rd<4>;
mov.u32 %r1, %tid.x;
mov.u32 %r2, %nctaid.x;
mov.u32 %r3, bar;
setp.ne.s32 %p1, %r1, 0;
setp.EACH.s32 %p3, %r2, 1;
@%p1 bra LATER;
mbarrier.init.shared::cta.b64 [%r3], 2;
mbarrier.arrive.shared::cta.b64 %rd1, [%r3];
@%p3 mbarrier.arrive.shared::cta.b64 %rd1, [%r3];
LATER:
bar.sync 0;
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0;
@!%p2 bra WAIT;
ret;
}
"""


def test_what_a_guessed_size_decides_is_no_refutation(call: Call) -> None:
    """A hang where the grid is one CTA, which is a guess; one with any grid; and one that is not there."""
    for name, each in (("one", "ne"), ("any", "lt"), ("right", "ge")):
        Path(name).mkdir()
        Path(name, "k.ptx").write_text(HANGS.replace("EACH", each))
    one, given = (call("check", "one", "--set", "block=32", *more) for more in ((), ("--set", "grid=1")))
    assert (one.code, given.code) == (3, 1)
    assert "what fails in g may not happen, as guesses decide it: grid 1 (--set" in " ".join(one.out.split())
    assert call("check", "any", "--set", "block=32").code == 1
    against = call("check", "one", "--against", "right", "--set", "block=32")
    said = " ".join(against.out.split())
    assert (against.code, "was proved, is unknown" in said, "guesses decide it: grid 1" in said) == (3, True, True)
