"""Blackwell's attention, which nobody here could run: it compiles for sm_100a, its table is the protocol's, and what it
tells the tensor cores of its operands is what the copy engine and its own stores put there.
"""

import re
import subprocess
from itertools import pairwise

import pytest

from hwkernels.device.compile import compile_cubin
from hwkernels.device.sources import headers, source_file
from hwkernels.device.tensor_maps import Swizzle, swizzled
from hwkernels.recorder.table import read_table
from pipesim.errors import CompileError
from pipesim.pipelines.modular.attention.fa4 import BF16, FA4Config
from pipesim.pipelines.modular.attention.fa4_mbars import FA4MBarLayout
from pipesim.targets import find
from pipesim.trace.sites import site_table
from tests.support.cuda_tools import nvdisasm
from tests.support.lanes import slow_after

ROWS = 128
SPLIT = {"fused": 0, "qk_stages": 2, "kv_stages": 2}
SMALL = {"fused": 0, "kv_stages": 4, "depth": 64, "block_n": 64, "pv_stages": 1}
SETTINGS = [{}, {"kv_stages": 2, "pv_stages": 4}, {"depth": 64, "kv_stages": 8}, SPLIT, SMALL]


def parameters(changes: dict[str, int]) -> dict[str, int]:
    return find("attention_sm100").defaults | changes


def defines(params: dict[str, int]) -> dict[str, int]:
    names = ("depth", "block_n", "kv_stages", "fused", "qk_stages", "pv_stages")
    return {name.upper(): params[name] for name in names}


def table(params: dict[str, int]):
    return read_table(source_file(f"attention_sm100{'' if params['fused'] else '_split'}.table.h"), defines(params))


@pytest.mark.slow
@pytest.mark.parametrize(("changes", "traced"), slow_after(1, [({}, 0), (SPLIT, 1), (SMALL, 0)]))
def test_it_compiles(changes, traced):
    values = defines(parameters(changes)) | {"PIPESIM_TRACE": traced}
    compiled = compile_cubin(source_file("attention_sm100.cu"), values, arch="sm_100a")
    assert (compiled.log, compiled.entry) == ("", "attention_sm100")


@pytest.mark.slow
def test_the_machine_code_has_the_instructions_that_it_is_about(tmp_path):
    """Products with A in shared and in tensor memory; tensor memory read and written; three register counts."""
    compiled = compile_cubin(
        source_file("attention_sm100.cu"), defines(parameters({})) | {"PIPESIM_TRACE": 0}, "sm_100a"
    )
    (tmp_path / "cubin").write_bytes(compiled.cubin)
    text = subprocess.run([nvdisasm(), "-c", tmp_path / "cubin"], check=True, capture_output=True, text=True).stdout
    found = set(re.findall(r"\b(UTCHMMA (?:gdesc|tmem)|UTCBAR|LDTM\.x\d+|STTM\.x\d+|UTMA(?:LDG|STG)\.[\w.]+)", text))
    assert found == {"UTCHMMA gdesc", "UTCHMMA tmem", "UTCBAR", "LDTM.x32", "STTM.x16", "UTMALDG.3D", "UTMASTG.3D"}
    assert [int(count, 16) for count in re.findall(r"USETMAXREG.* (0x\w+)", text)] == [192, 88, 40]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"depth": 96}, "DEPTH must be 64 or 128"),
        ({"block_n": 192}, "BLOCK_N must be 64 or 128"),
        ({"qk_stages": 2}, "the fused ring carries whole tiles"),
        ({"block_n": 64, "pv_stages": 4}, "a slice of P has 32 keys, or a multiple"),
    ],
)
def test_what_the_kernel_does_not_have_is_refused(wrong, message):
    with pytest.raises(CompileError, match=message):
        compile_cubin(source_file("attention_sm100.cu"), defines(parameters(wrong)), arch="sm_100a")


@pytest.mark.parametrize("changes", SETTINGS)
def test_roles_barriers_and_sites_are_the_protocols(changes):
    params = parameters(changes)
    kernel, protocol = table(params), site_table(find("attention_sm100").build(params))
    assert kernel.agents == protocol.agents
    assert kernel.barriers == protocol.barriers
    sites = [(s.role, s.kind, s.barrier) for s in kernel.sites]
    assert sites == [(s.role, s.kind, s.barrier) for s in protocol.sites]
    waits = [n for n, site in enumerate(kernel.sites) if "_wait_" in site.name]
    assert all(kernel.sites[n + 1].name == kernel.sites[n].name.replace("_wait_", "_got_") for n in waits)


@pytest.mark.parametrize("wrong", [{"kv_stages": 3}, {"pv_stages": 1}, {"qk_stages": 1}, {"fused": 1, "qk_stages": 1}])
def test_a_table_of_other_parameters_is_another(wrong):
    assert table(parameters(SPLIT | wrong)).barriers != table(parameters(SPLIT)).barriers


def holds(tmp_path, changes: dict[str, int], claims: list[str]) -> None:
    """Compile claims about the kernel's constants: CompileError names the first that is false."""
    source = tmp_path / "claims.cu"
    lines = [f'static_assert({claim}, "{claim}");' for claim in claims]
    head = '#include "attention_sm100.cuh"\n#include "tcgen05.cuh"\n'
    source.write_text(head + "\n".join(lines) + '\nextern "C" __global__ void claims() {}\n')
    for header in headers():
        (tmp_path / header.name).write_bytes(header.read_bytes())
    compile_cubin(source, defines(parameters(changes)), arch="sm_100a")


@pytest.mark.parametrize("changes", [{"pv_stages": 4}, SPLIT])
def test_barriers_are_initialised_with_the_protocols_counts(tmp_path, changes):
    params = parameters(changes)
    config = FA4Config(
        BF16, params["depth"], params["block_n"], params["kv_stages"], params["qk_stages"], params["pv_stages"],
        use_fused_kv=bool(params["fused"]),
    )  # fmt: skip
    layout = FA4MBarLayout.of(config)
    claims = [f"BARRIERS == {layout.size}"]
    for name, stages in layout.groups():
        for stage in range(stages):
            place = layout.offset(name) + stage
            claims.append(f"BARRIER_{name} + {stage} == {place}")
            claims.append(f"arrivals(COUNT_{name}, {stage}) == {layout.count(place)}")
    holds(tmp_path, changes, claims)
    with pytest.raises(CompileError, match="arrivals"):
        holds(tmp_path, changes, ["arrivals(COUNT_S0_cons, 1) == 256"])


# The formats of the PTX ISA, "Instruction descriptor" (kinds tf32, f16, f8f6f4) and "Shared memory descriptor" of
# tcgen05: the first bit of a field and how many it has.
INSTRUCTION = {
    "sparsity selector": (0, 2), "sparse": (2, 1), "saturate": (3, 1), "D": (4, 2), "A": (7, 3), "B": (10, 3),
    "negate A": (13, 1), "negate B": (14, 1), "transpose A": (15, 1), "transpose B": (16, 1), "N / 8": (17, 6),
    "M / 16": (24, 5), "shift of ws": (30, 2),
}  # fmt: skip
MEMORY = {
    "address / 16": (0, 14), "leading / 16": (16, 14), "stride / 16": (32, 14), "version": (46, 3), "base": (49, 3),
    "absolute": (52, 1), "swizzle": (61, 3),
}  # fmt: skip
F32, BF16_OF_F16_KIND, SWIZZLE_128 = 1, 1, 2


def packed(layout: dict[str, tuple[int, int]], **fields: int) -> int:
    """A descriptor of these fields, all others 0; an underscore is a blank, ``_by_`` a stroke."""
    word = 0
    for name, value in fields.items():
        first, bits = layout[name.replace("_by_", " / ").replace("_", " ")]
        assert 0 <= value < 1 << bits, name
        word |= value << first
    return word


def memory(address: int, leading: int) -> int:
    fields = {"address_by_16": address // 16, "leading_by_16": leading // 16, "stride_by_16": 1024 // 16}
    return packed(MEMORY, version=1, swizzle=SWIZZLE_128, **fields)


@pytest.mark.parametrize("n", [64, 128])
@pytest.mark.parametrize("transposed", [0, 1])
def test_instruction_descriptors_are_those_of_the_ptx_isa(tmp_path, n, transposed):
    kinds = {"D": F32, "A": BF16_OF_F16_KIND, "B": BF16_OF_F16_KIND, "transpose_B": transposed}
    right = packed(INSTRUCTION, N_by_8=n // 8, M_by_16=ROWS // 16, **kinds)
    holds(tmp_path, {}, [f"tcgen05_bf16({ROWS}, {n}, {transposed}) == {right}u"])
    with pytest.raises(CompileError, match="tcgen05_bf16"):
        holds(tmp_path, {}, [f"tcgen05_bf16({ROWS}, {n}, {1 - transposed}) == {right}u"])


def test_memory_descriptors_are_those_of_the_ptx_isa(tmp_path):
    addresses = (0, 1024, 33 * 1024 + 32, 226 * 1024 + 96)
    claims = [f"tcgen05_k_major({a}) == {memory(a, 16)}ull" for a in addresses]
    claims += [f"tcgen05_mn_major({a}, {p}) == {memory(a, p)}ull" for a in addresses for p in (8192, 16384)]
    holds(tmp_path, {}, claims)
    with pytest.raises(CompileError, match="tcgen05_mn_major"):
        holds(tmp_path, {}, [f"tcgen05_mn_major(1024, 8192) == {memory(1024, 16384)}ull"])


# What a descriptor with 128-byte swizzle means (PTX ISA, "Canonical layouts"), in bytes of a bf16 operand of 16 of K:
# bits 7 to 9 of an address are added to bits 4 to 6 by exclusive or.


def swizzled_address(address: int) -> int:
    return address ^ (address >> 7 & 7) << 4


def k_major(start: int, mn: int, k: int, *, stride: int = 1024) -> int:
    return swizzled_address(start + mn % 8 * 128 + mn // 8 * stride + 2 * k)


def mn_major(start: int, mn: int, k: int, *, leading: int, stride: int = 1024) -> int:
    return swizzled_address(start + mn % 64 * 2 + mn // 64 * leading + k % 8 * 128 + k // 8 * stride)


def landed(base: int, rows: int, row: int, column: int) -> int:
    """Where the copy engine puts an element of a box of so many rows, in panels of 64 columns."""
    return base + swizzled(column // 64 * rows * 128 + row * 128 + column % 64 * 2, Swizzle.B128)


@pytest.mark.parametrize("changes", [{}, {"depth": 64, "block_n": 64}])
def test_operands_are_where_the_copy_engine_puts_them(tmp_path, changes):
    params = parameters(changes)
    depth, keys, tile = params["depth"], params["block_n"], 17 * 1024
    claims, panel = [], keys * 128
    for i in range(depth // 16):  # Q and K, 16 columns of the head at a time
        for rows, of in ((ROWS, "Q_PANEL"), (keys, "KV_PANEL")):
            start = i // 4 * rows * 128 + i % 4 * 32
            claims.append(f"columns_16({i}, {of}) == {start}")
            expected = [[landed(tile, rows, r, 16 * i + k) for k in range(16)] for r in range(rows)]
            assert [[k_major(tile + start, r, k) for k in range(16)] for r in range(rows)] == expected
    for i in range(keys // 16):  # V, 16 keys at a time
        claims.append(f"keys_16({i}) == {2048 * i}")
        expected = [[landed(tile, keys, 16 * i + k, n) for k in range(16)] for n in range(depth)]
        assert [[mn_major(tile + 2048 * i, n, k, leading=panel) for k in range(16)] for n in range(depth)] == expected
        if depth > 64:
            assert [
                [mn_major(tile + 2048 * i, n, k, leading=1024) for k in range(16)] for n in range(depth)
            ] != expected
    for row in (0, 1, 7, 8, 127):  # the result, 8 columns at a time
        claims += [f"columns_8({row}, {i}) == {landed(0, ROWS, row, 8 * i)}" for i in range(depth // 8)]
    holds(tmp_path, changes, [*claims, f"KV_PANEL == {panel}"])


@pytest.mark.parametrize("changes", SETTINGS)
def test_tensor_memory_holds_s_and_o_of_both_groups_and_p_over_s(tmp_path, changes):
    params = parameters(changes)
    keys, depth = params["block_n"], params["depth"]
    needed = [("column_of_s", keys), ("column_of_o", depth)]
    spans = [(f"{what}({wg})", width) for what, width in needed for wg in (0, 1)]
    claims = [f"{a} + {width} <= {b}" for (a, width), (b, _) in pairwise(spans)]
    claims += [f"column_of_o(1) + {depth} <= COLUMNS", "COLUMNS == 256 || COLUMNS == 512"]
    claims += [f"weights_16({i}) == {16 * i * 2 // 4}" for i in range(keys // 16)]  # two weights of bf16 a column
    holds(tmp_path, changes, claims)


def test_it_says_that_it_was_never_run():
    for name in ("attention_sm100.cu", "attention_sm100.cuh", "tcgen05.cuh"):
        assert "NEVER RUN" in (source_file(name)).read_text()
