"""Modular's kernels, read from their PTX, compared with our protocols of the same structs.

``python -m tools.corpus.modular_pairs``. Barrier by barrier, and warp by warp on each: what arrives, what is expected,
what is copied, committed and waited for. The PTX is that of the corpus (``tools/ptx_corpus.py``);
``--write`` fills in the table of docs/kernels-in-the-wild.md.
"""

import argparse
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pipesim.ptx.extract import extract
from pipesim.ptx.kernel import launch_of, ptx_text
from pipesim.targets import find
from tools.corpus.environment import ROOT
from tools.corpus.operation_order import Comparison, compared, names_by_address

KERNELS = Path.home() / ".cache" / "pipesim-corpus" / "kernels" / "modular"
_PAGE = ROOT / "docs" / "kernels-in-the-wild.md"
_TABLE = re.compile(r"(<!-- beside -->\n).*?(<!-- end of beside -->)", re.DOTALL)

#: Groups of mbarriers in the order in which Modular's kernels lay them out in shared memory.
_BLACKWELL = (
    "input.full",
    "input.empty",
    "output.full",
    "output.empty",
    "clc.full",
    "clc.empty",
    "clc_throttle.full",
    "clc_throttle.empty",
    "tmem_dealloc",
)
_HOPPER = ("full", "empty")


_ATTENTION = ("full", "empty", "q_full")
_FA4 = (
    *("S0_cons", "S1_cons", "C0_prod", "C0_cons", "C1_prod", "C1_cons", "S0_prod", "S1_prod"),
    *("K_prod", "K_cons", "V_prod", "V_cons", "O_prod"),
)


@dataclass(frozen=True)
class Pair:
    """A kernel of the corpus and the protocol of its structs with the parameters of its launch."""

    kernel: str
    protocol: str
    parameters: Mapping[str, int]
    groups: tuple[str, ...]  #: of the protocol, in the kernel's order in shared memory
    summed: bool = False  #: the protocol copies whole tiles


_CLUSTER = {"cluster_m": 2, "cluster_n": 2}
_PAIRS_IN_CLUSTER = {"stages": 8, "cta_group": 2, "cluster_m": 4, "cluster_n": 2}
_ONE_Q = {"num_qo": 1, "fused": 0, "kv_stages": 3, "qk_stages": 2, "kv_blocks": 2}
_CAUSAL = {"num_qo": 1, "fused": 0, "kv_stages": 4, "kv_blocks": 2, "block_n": 192, "depth": 64}
_PRIMED = {"fused": 1, "stages": 4, "kv_blocks": 4, "pingpong": 0}
# Read from each kernel's name (stages, MMA, cluster, K group), tensor maps (boxes) and launch (K). ``tiles`` 2: the
# first one and the one that the scheduler wins here; on Hopper one, or, of 16 x 20 in a
# persistent grid of 12 x 10, the four of the first CTA. gemm_sm90 has no clusters, and the kernels of pairs of CTAs are
# compared with it for the differences; attention's CTAs of a cluster share the keys and no mbarrier of these groups.
PAIRS = (
    Pair("gemm_1sm-sm_100a", "gemm_sm100", {"tiles": 2}, _BLACKWELL),
    Pair("gemm_k_group-sm_100a", "gemm_sm100", {"tiles": 2, "k_group_size": 2}, _BLACKWELL),
    Pair("gemm_2sm-sm_100a", "gemm_sm100", {"tiles": 2, "cta_group": 2, "block_n": 256}, _BLACKWELL),
    Pair("gemm_cluster-sm_100a", "gemm_sm100", {"tiles": 2, **_CLUSTER}, _BLACKWELL),
    Pair("gemm_2sm_cluster-sm_100a", "gemm_sm100", {"tiles": 2, **_PAIRS_IN_CLUSTER}, _BLACKWELL),
    Pair("blockwise_1sm-sm_100a", "gemm_sm100_blockwise", {"stages": 5}, _BLACKWELL),
    Pair("blockwise_2sm-sm_100a", "gemm_sm100_blockwise", {"stages": 7, "cta_group": 2}, _BLACKWELL),
    Pair("attention-sm_100a", "attention_sm100", _ONE_Q, _FA4, summed=True),
    Pair("attention_causal-sm_100a", "attention_sm100", _CAUSAL, _FA4, summed=True),
    Pair("gemm-sm_90a", "gemm_sm90", {"tiles": 1}, _HOPPER),
    Pair("gemm_k_group-sm_90a", "gemm_sm90", {"tiles": 1, "k_group_size": 2}, _HOPPER),
    Pair("gemm_persistent-sm_90a", "gemm_sm90", {"tiles": 4}, _HOPPER),
    Pair("gemm_multicast-sm_90a", "gemm_sm90", {"tiles": 1}, _HOPPER),
    Pair("gemm_partitioned-sm_90a", "gemm_sm90", {"tiles": 1}, _HOPPER),
    Pair("attention-sm_90a", "attention_sm90", _PRIMED, _ATTENTION, summed=True),
    Pair("attention_causal-sm_90a", "attention_sm90", _PRIMED, _ATTENTION, summed=True),
)


def beside(pair: Pair, folder: Path = KERNELS) -> Comparison:
    """The comparison of one pair. Raises PtxError or LaunchFileError if the kernel is not in ``folder``."""
    path = folder / f"{pair.kernel}.ptx"
    module, launch = launch_of(ptx_text(path), path, None, ())
    found = extract(module, replace(launch, policies=replace(launch.policies, launch_control=1)))
    protocol = find(pair.protocol).build(pair.parameters)
    stages = Counter(each.name for each in protocol.barriers if each.cta == 0)
    assert set(stages) == set(pair.groups)  # a group without a place would shift the names of those after it
    names = names_by_address(found.places, [(name, stages[name]) for name in pair.groups])
    return compared(found.program, names, protocol, summed=pair.summed)


def row(pair: Pair, found: Comparison) -> str:
    """A line of the table in Markdown."""
    kernel, arch = pair.kernel.rsplit("-", 1)
    said = ", ".join(f"{name} {value}" for name, value in pair.parameters.items())
    cells = [f"`{kernel}`", arch, f"`{pair.protocol}`: {said}", f"{found.matched} of {found.barriers}"]
    return f"| {' | '.join([*cells, f'{found.equal:,}', str(len(found.lines) or 'none')])} |"


def main() -> None:
    """Compare every kernel of the table that has been built."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="fill in the table of docs/kernels-in-the-wild.md")
    write = parser.parse_args().write
    head = ("kernel", "arch", "protocol", "mbarriers matched", "operations equal", "differences")
    rows, lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"], []
    for pair in PAIRS:
        found = beside(pair)
        rows.append(row(pair, found))
        lines += [f"{pair.kernel}: {line}" for line in found.lines]
    print("\n".join([*rows, "", *lines]))
    if write:
        text, table = _PAGE.read_text(encoding="utf-8"), "\n".join(rows)
        _PAGE.write_text(_TABLE.sub(lambda m: f"{m[1]}{table}\n{m[2]}", text), encoding="utf-8")


if __name__ == "__main__":
    main()
