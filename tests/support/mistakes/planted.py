"""Mistakes that engineers make, planted in right kernels and protocols, with the correction that is meant.

All of this was written down before the corrections of any of them were looked at, by somebody who does not write the
code that finds them. ``tools/planted_mistakes.py`` prints what is offered for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: What the correction of a mistake must say: patterns, each of which is somewhere in its sentence.
Parts = tuple[str, ...]


@dataclass(frozen=True)
class Planted:
    """A mistake: in a file each text of ``edits`` is replaced wherever it is.

    ``where``: a file of the repository, ``file.py:function``, or ``corpus/FAMILY/KERNEL.ptx`` of the corpus of public
    kernels; a ``.cu`` is compiled by NVRTC. ``meant``: the correction; ``parts``: what it must name. ``also``: parts of
    other corrections with which it does the same. ``sizes``: parameters of the protocol.
    """

    name: str
    where: str
    edits: Mapping[str, str]
    meant: str
    parts: Parts
    also: tuple[Parts, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)


HOPPER, TWINS, KERNELS = "pipesim/protocols/hopper/", "hwkernels/twins/hopper/", "tests/ptx/kernels/"
BLACKWELL, EXAMPLES = "pipesim/protocols/blackwell/", "docs/examples/"
ROW_MAX, PRODUCER = f"{EXAMPLES}row_max_fixed.cu", f"{TWINS}producer_consumer.cu"
GEMM, MULTICAST = f"{TWINS}gemm_sm90.cu", f"{TWINS}cluster_multicast.cu"
SCALE, WGMMA, TCGEN05 = (
    f"{KERNELS}{name}.ptx" for name in ("scale_ws_s3-sm_90a", "gemm_wgmma_ws-sm_90a", "gemm_tcgen05-sm_100a")
)
FLAT, TMA = "corpus/triton/gemm_persistent_flat_ws-sm_100a.ptx", "corpus/triton/gemm_tma_w4_s3-sm_90a.ptx"
FP8 = "corpus/deep_gemm/fp8_gemm-sm_90a.ptx"
#: What these barriers may be called: by the source's words, or by its lines.
ROW_FULL, ROW_EMPTY = r"s\.full|row_max_fixed\.cu:3\d", r"s\.empty|row_max_fixed\.cu:3\d"
FULL, EMPTY = r"\bfull|table\.h:9", r"\bempty|table\.h:10"
FLIPPED = r"parit|phase|flip"
ARRIVES = r"\barrive"
PASSES = "setp.eq.u32 complete, 0, 0;"  #: in place of a try_wait

KERNEL_MISTAKES = (
    Planted("row_max: first phase", ROW_MAX, {"wait(s.empty[stage], lap % 2 ^ 1);": "wait(s.empty[stage], lap % 2);"},
        "load waits for empty with parity 1 in the first lap, not 0", ("load", ROW_EMPTY, "parity 1"),
        (("compute", ARRIVES, ROW_EMPTY, "before it begins"),)),
    Planted("row_max: released before it is read", ROW_MAX, {"            wait(s.full[stage], lap % 2);\n":
        "            wait(s.full[stage], lap % 2);\n            if (lane == 0) arrive(s.empty[stage]);\n",
        "            __syncwarp();\n            if (lane == 0) arrive(s.empty[stage]);\n": ""},
        "compute arrives on empty after its reads of the tile, not before them",
        ("compute", ARRIVES, ROW_EMPTY, "after")),
    Planted("row_max: the last tile of a row is shorter", ROW_MAX,
        {"expect(s.full[stage], left * 4);": "expect(s.full[stage], kTile * 4);"},
        "load expects as many bytes as it copies: of the last tile of a row 1,024, not 4,096",
        ("load", "expects", ROW_FULL, r"1,024|as many as are copied")),
    Planted("producer_consumer: every lane arrives", PRODUCER,
        {"            if (lane < ARRIVE_LANES) mbarrier_arrive(empty);": "            mbarrier_arrive(empty);"},
        "one lane of each warp of compute arrives on empty", ("compute", r"one (lane|thread)|elect", ARRIVES, EMPTY),
        ((EMPTY, "count of 64 instead of 2"),)),
    Planted("producer_consumer: parity not flipped", PRODUCER, {"            next_parity ^= 1;\n": ""},
        "compute flips the parity of its waits for full at the end of each lap", ("compute", FULL, FLIPPED)),
    Planted("producer_consumer: wrong stage released", PRODUCER,
        {"const unsigned full = ring.full + 8 * stage, empty = ring.empty + 8 * stage;\n        const unsigned tile":
        "const unsigned full = ring.full + 8 * stage, empty = ring.empty + 8 * ((stage + 1) % STAGES);\n"
        "        const unsigned tile"}, "compute arrives on empty of the stage that it has read, not of the next one",
        ("compute", ARRIVES, EMPTY, "stage")),
    Planted("gemm_sm90: a product is under way at the release", GEMM,
        {"            wgmma_wait<0>();\n            wgmma_hold(d);\n            PIPESIM_RECORD_IF":
        "            wgmma_wait<1>();\n            wgmma_hold(d);\n            PIPESIM_RECORD_IF"},
        "mma leaves none of its wgmmas pending before it arrives on empty, instead of 1",
        ("mma", r"none|\b0\b", "pending", "instead of 1")),
    Planted("gemm_sm90: not primed", GEMM, {"if (lane == 0) mbarrier_arrive(gemm.empty + 8 * s);": ";"},
        "the first warp of each consumer group arrives on every empty before its loop",
        ("mma", ARRIVES, EMPTY, "before it begins|first"), (("load", "waits? for", EMPTY, "parity 1"),)),
    Planted("gemm_sm90: stored before all have written", GEMM,
        {"        async_proxy_fence();\n        group_sync(group);\n": "        async_proxy_fence();\n"},
        "the warps of a group meet at their named barrier (128 threads) after their writes, before one stores the tile",
        (r"bar_sync|barrier|__syncthreads|meet", r"mma|store")),
    Planted("cluster_multicast: a CTA is not in the mask", MULTICAST,
        {"(unsigned short)((1u << CLUSTER) - 1)": "(unsigned short)((1u << (CLUSTER - 1)) - 1)"},
        "load multicasts to the CTAs of mask 0b11 instead of 0b1", ("load", "multicast", "0b11")),
    Planted("cluster_multicast: the peer is not told", MULTICAST,
        {"mbarrier_arrive_cluster(ring.empty + 8 * state.stage, rank);":
        "if (rank == 0) mbarrier_arrive(ring.empty + 8 * state.stage);"},
        "compute arrives on empty of every CTA of the cluster, not only of its own",
        ("compute", ARRIVES, EMPTY, "every CTA|each CTA|all CTAs")),
    Planted("cluster_multicast: the CTAs do not meet after the inits", MULTICAST,
        {"    cluster_sync();  // no CTA is signalled before its barriers are there\n": ""},
        "all warps of the cluster meet (barrier.cluster) after the inits, before any of them signals a peer",
        (r"cluster", "init")),
    Planted("scale_ws: arrives on the other group", SCALE, {"%r89, %r137, 41152;": "%r89, %r137, 41168;"},
        "compute arrives on ready (114:47) after it has written, not on free (114:59)",
        ("compute", ARRIVES, r"ready|114:47", r"instead|not")),
    Planted("scale_ws: the store is not waited for", SCALE, {"\tcp.async.bulk.wait_group.read \t0;\n": "\n"},
        "store waits for its bulk stores before it arrives on free (114:59)",
        ("store", "waits", "bulk stores|bulk groups|transfers", "before")),
    Planted("scale_ws: first phase", SCALE, {"not.b32 \t%r138, %r183;": "mov.b32 \t%r138, %r183;"},
        "compute waits for free (114:59) with parity 1 in the first lap", ("compute", r"free|114:59", "parity 1"),
        (("store", ARRIVES, r"free|114:59", "before it begins"),)),
    Planted("gemm_wgmma_ws: released while it is multiplied", WGMMA, {"%r90, %r223, -1;": "%r90, %r223, 0;"},
        "mma arrives on empty (166:30) of the stage before, whose product is finished, not of this one",
        ("mma|compute", ARRIVES, r"empty|166:30", "stage")),
    Planted("gemm_wgmma_ws: the last product is not waited for", WGMMA, {"\twgmma.wait_group.sync.aligned 0;\n": "\n"},
        "mma waits for its wgmmas, leaving none pending, before the sums are read",
        ("waits for|wait_group", "wgmma", r"none pending|none of|\b0\b|before")),
    Planted("gemm_wgmma_ws: a copy signals the wrong barrier", WGMMA, {"[%rd5, {%r157, %r33}], [%r29];":
        "[%rd5, {%r157, %r33}], [%r27];"}, "the copy of b by load completes on full (166:13), not on empty (166:30)",
        ("load", "cop|load", r"full|166:13", r"instead|not")),
    Planted("gemm_tcgen05: the accumulator is not acquired", TCGEN05,
        {"mbarrier.try_wait.parity.shared::cta.b64 complete, [%r54], %r55;": PASSES},
        "mma waits for free (239:59), with parity 1 in the first lap, before its products of a tile",
        ("^mma waits for", r"free|239:59", "parity 1")),
    Planted("gemm_tcgen05: no commit of a stage", TCGEN05,
        {"@%p10 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r88];": ""},
        "mma commits to empty (239:30) after its products of each stage", ("mma", "commit", r"empty|239:30")),
    Planted("gemm_tcgen05: loads of tensor memory not waited for", TCGEN05,
        {"\ttcgen05.wait::ld.sync.aligned;\n": "\n"},
        "the epilogue executes tcgen05.wait::ld after its loads, before it signals free (239:59)",
        (r"tcgen05\.wait::ld|waits for its .*loads",)),
    Planted("gemm_persistent_flat_ws: parity not flipped", FLAT, {"\txor.b32 \t%r563, %r563, %r62;\n": "\n"},
        "mma flips the parity of its waits for full (43:50) at the end of each lap", ("mma", r"43:50|full", FLIPPED)),
    Planted("gemm_persistent_flat_ws: named barrier of another group", FLAT, {"bar.sync \t3, 64;": "bar.sync \t0, 64;"},
        "the two warps that load meet at named barrier 3, not at 0, where the four of the epilogue meet",
        ("named barrier 0", r"of its own|named barrier 3|another number")),
    Planted("gemm_persistent_flat_ws: the sums are not waited for", FLAT,
        {"mbarrier.try_wait.parity.shared::cta.b64 complete, [%r159], %r584;": PASSES},
        "the epilogue waits for done (43:20) before it reads the accumulator",
        ("^(each of )?(store|compute)", "waits? for", "43:20|43:50", "before")),
    Planted("gemm_tma: bytes of one operand", TMA, {"_, [%r42], 32768;": "_, [%r42], 16384;"},
        "load expects 32,768 bytes instead of 16,384", ("expects 32,768", "instead of 16,384")),
    Planted("gemm_tma: no fence before the store", TMA, {"\tfence.proxy.async.shared::cta;\n": "\n"},
        "every warp executes fence.proxy.async after its writes, before the barrier", (r"fence\.proxy\.async", "after",
        "write")),
    Planted("gemm_tma: barrier of another stage", TMA, {"shl.b32 \t%r55, %r155, 3;": "shl.b32 \t%r55, %r154, 3;"},
        "load expects, and its copies complete, on the barrier of the stage that is filled, two after the one read",
        (r"28", "expect|cop|load", "stage")),
    Planted("fp8_gemm: groups, not warps", FP8, {"mov.u32 \t%r46, 8;": "mov.u32 \t%r46, 2;"},
        "initialise empty (160) with a count of 8 instead of 2", (r"160|empty", "count of 8 instead of 2")),
    Planted("fp8_gemm: the bytes of the scales", FP8, {"mov.u32 \t%r567, 33280;": "mov.u32 \t%r567, 32768;"},
        "load expects 33,280 bytes on full (159) instead of 32,768", ("load", "33,280", "instead of 32,768")),
    Planted("fp8_gemm: no barrier after the inits", FP8, {"\tbar.sync \t0;\n": "\n"},
        "all threads meet (__syncthreads) after the inits, before anybody uses a barrier",
        (r"__syncthreads|bar_sync|all threads|meet", "init")),
)  # fmt: skip

PROTOCOL_MISTAKES = (
    Planted("producer_consumer: threads, not warps", f"{HOPPER}producer_consumer.py:producer_consumer",
        {"consumer_arrive_count=consumer_warps * arrive_lanes": "consumer_arrive_count=consumer_warps * 32"},
        "initialise empty with a count of 2 instead of 64", ("empty", "count of 2 instead of 64"),
        (("consumer", "arrive on empty", r"outside elect|32 lanes|every lane|all lanes"),)),
    Planted("producer_consumer: half the bytes", f"{HOPPER}producer_consumer.py:producer_consumer",
        {"expect_bytes(tile_bytes)": "expect_bytes(tile_bytes // 2)"},
        "producer expects 16,384 bytes on full instead of 8,192", ("producer expects 16,384", "full", "8,192")),
    Planted("cluster_multicast: no drain", f"{HOPPER}cluster_multicast.py:cluster_multicast",
        {"for _ in range(pipe.num_stages):": "for _ in range(0):"},
        "producer waits for the last stages on empty before its CTA exits", ("producer", "wait", "empty"),
        (("cluster_sync|meets? the others", "exit"),)),
    Planted("cluster_multicast: the count of one CTA", f"{HOPPER}cluster_multicast.py:cluster_multicast",
        {"consumer_arrive_count=self.consumer_warps * self.cluster": "consumer_arrive_count=self.consumer_warps"},
        "initialise empty with a count of 4 instead of 2", ("empty", "count of 4 instead of 2")),
    Planted("gemm_sm90: the producer's first phase", f"{HOPPER}gemm_sm90.py:gemm_sm90",
        {"        tiles.pipeline.producer_phase = 0\n": ""},
        "producer waits for empty with parity 0 in the first lap, as consumers prime it",
        ("producer", "empty", "parity 0"), (("consumer", "omit|leaves? out|without", ARRIVES, "empty"),)),
    Planted("gemm_sm90: the products are not waited for", f"{HOPPER}gemm_sm90.py:gemm_sm90",
        {"            w.wait_group(Engine.WGMMA)\n": ""},
        "consumer waits for its wgmmas, leaving none pending, before the arrive on empty",
        ("consumer waits for its wgmmas", "empty")),
    Planted("attention_sm90: the queries are not waited for", f"{HOPPER}attention_sm90.py:attention_sm90",
        {"        self.q_full[0].wait(0)\n": ""}, "consumer waits for q_full, with parity 0, before its first product",
        ("consumer waits for q_full", "parity 0"), sizes={"fused": 1, "kv_blocks": 4}),
    Planted("attention_sm90: K released while it is multiplied", f"{HOPPER}attention_sm90.py:attention_sm90",
        {"        w.wait_group(Engine.WGMMA, 1 if n else 0)\n        pipe.consumer_mbar(keys).arrive()\n":
        "        pipe.consumer_mbar(keys).arrive()\n        w.wait_group(Engine.WGMMA, 1 if n else 0)\n"},
        "consumer arrives on empty only after it has waited for the wgmma of K",
        ("consumer", ARRIVES, "empty", "only after"), sizes={"fused": 1, "kv_blocks": 4}),
    Planted("attention_sm90: warps, not threads", f"{HOPPER}attention_sm90.py:attention_sm90",
        {"consumer_arrive_count=self.num_consumer * GROUP_THREADS": "consumer_arrive_count=self.num_consumer * GROUP"},
        "initialise empty with a count of 256 instead of 8", ("empty", "count of 256 instead of 8"),
        (("consumer", "arrive", "empty", r"elect_one"),), sizes={"fused": 1, "kv_blocks": 4}),
    Planted("epilogue_residual: sums released after the first slice", f"{HOPPER}epilogue_residual.py:epilogue_residual",
        {"last = n == self.slices - 1": "last = n == 0"},
        "epilogue arrives on output.empty only after it has read all slices of the accumulator",
        ("epilogue", ARRIVES, r"output\.empty", "after")),
    Planted("epilogue_residual: a warp short", f"{HOPPER}epilogue_residual.py:epilogue_residual",
        {"        w.bar_sync(_EPILOGUE, EPILOGUE_THREADS)\n        w.write(":
        "        w.bar_sync(_EPILOGUE, EPILOGUE_THREADS - 32)\n        w.write("},
        "128 threads at named barrier 1 instead of 96", ("128 threads at named barrier 1 instead of 96",)),
    Planted("epilogue_residual: no fence before the store", f"{HOPPER}epilogue_residual.py:epilogue_residual",
        {"        w.fence(Fence.PROXY_ASYNC)\n": ""},
        "epilogue executes fence.proxy.async after its writes of d, before the bar_sync",
        (r"(epilogue|every role) executes fence\.proxy\.async after its writes?",)),
    Planted("persistent_scheduler: a reader is not counted", f"{HOPPER}persistent_scheduler.py:persistent_scheduler",
        {"self.clc.init(32 * (2 + self.consumer_warps))": "self.clc.init(32 * (1 + self.consumer_warps))"},
        "initialise clc.empty with a count of 128 instead of 96", (r"clc\.empty", "count of 128 instead of 96")),
    Planted("persistent_scheduler: signals after it waits", f"{HOPPER}persistent_scheduler.py:persistent_scheduler",
        {"            throttle.producer_signal_and_step()\n            if self.k_iters:\n":
        "            if self.k_iters:\n", 'after="persistent_scheduler/end_loads" if self.k_iters else "")\n':
        'after="persistent_scheduler/end_loads" if self.k_iters else "")\n'
        "            throttle.producer_signal_and_step()\n"},
        "load arrives on throttle.full for each tile before it waits for clc.full, not after",
        ("load", ARRIVES, r"throttle\.full", "before")),
    Planted("scale: every lane arrives", f"{EXAMPLES}scale.py:scale",
        {"                with w.elect_one():\n                    full.arrive()\n":
        "                if True:\n                    full.arrive()\n"},
        "one lane of each warp of scale arrives on in.empty and on out.full",
        ("scale", r"in\.empty|out\.full", "elect_one|one lane"), (("count of 64 instead of 2", r"in\.empty"),)),
    Planted("scale: the store is not waited for", f"{EXAMPLES}scale.py:scale",
        {"                    w.commit(Engine.BULK)\n                    w.wait_group(Engine.BULK)\n":
        "                    w.commit(Engine.BULK)\n"},
        "store waits for its bulk stores before the arrive on out.empty",
        ("store waits for its bulk stores", r"before")),
    Planted("relay: the named barrier of slot 0", f"{EXAMPLES}relay.py:relay",
        {"            w.bar_sync(FREE + slot, LANES + 32)\n": "            w.bar_sync(FREE, LANES + 32)\n"},
        "math meets store at named barrier 3 for slot 1, not at 2 for both", ("math", r"named barriers? .*\b3\b")),
    Planted("relay: the load does not wait", f"{EXAMPLES}relay.py:relay",
        {"            in_empty[stage].wait(i // stages % 2 ^ 1)\n": ""},
        "load waits for in_empty, with parity 1 in the first lap, before its copies",
        ("load waits for in_empty", "parity 1")),
    Planted("relay: signalled before all have written", f"{EXAMPLES}relay.py:relay",
        {"            w.bar_sync(MATH, LANES)\n            if w.index == 0:\n                with w.elect_one():\n"
        "                    out_full[slot].arrive()\n":
        "            if w.index == 0:\n                with w.elect_one():\n"
        "                    out_full[slot].arrive()\n            w.bar_sync(MATH, LANES)\n"},
        "math arrives on out_full only after its warps have met at named barrier 1",
        ("math", ARRIVES, "out_full", "after")),
    Planted("exchange: bytes of its own half", f"{EXAMPLES}exchange.py:exchange",
        {"expect_bytes(tile_bytes)": "expect_bytes(half)"},
        "loader expects 8,192 bytes on full instead of 4,096", ("loader expects 8,192", "full", "4,096")),
    Planted("exchange: first phase", f"{EXAMPLES}exchange.py:exchange",
        {"                empty[i % stages].wait(i // stages % 2 ^ 1)\n                full":
        "                empty[i % stages].wait(i // stages % 2)\n                full"},
        "loader waits for empty with parity 1 in the first lap", ("loader", "empty", "parity 1")),
    Planted("gemm_sm100: no role leaves tensor memory", f"{BLACKWELL}gemm_sm100.py:gemm_sm100",
        {"        self.sm100.leave_tmem()\n": ""},
        "epilogue arrives on tmem_dealloc when it has read its last tile", ("epilogue arrives on tmem_dealloc",)),
    Planted("gemm_sm100: committed before it multiplies", f"{BLACKWELL}gemm_sm100.py:gemm_sm100",
        {"        ctx = self.sm100.context()\n        for slot, step":
        "        ctx = self.sm100.context()\n        self.commit(ctx, tiles.mbar())\n        for slot, step",
        "cycles=self.step_cycles)\n        self.commit(ctx, tiles.mbar())\n": "cycles=self.step_cycles)\n"},
        "mma commits to input.empty after its MMAs of the stage, not before", ("mma", r"input\.empty", "after")),
    Planted("attention_sm100: the last sum is not waited for", f"{BLACKWELL}attention_sm100.py:attention_sm100",
        {"        self._wait_for_o(wg)\n        if": "        if"},
        "softmax0 and softmax1 wait for O_prod before they read the last sum",
        ("softmax0|softmax1|each", "waits? for O_prod", "before"), sizes={"kv_blocks": 4}),
    Planted("attention_sm100: factors not given back", f"{BLACKWELL}attention_sm100.py:attention_sm100",
        {"        o.step()\n        c.release()\n": "        o.step()\n        c.step()\n"},
        "correction arrives on C0_cons and C1_cons when it has read the factors",
        ("correction arrives on", "C0_cons|C1_cons"), sizes={"kv_blocks": 4}),
    Planted("attention_sm100: signalled before it is written", f"{BLACKWELL}attention_sm100.py:attention_sm100",
        {"                w.write(rows(self.tiles.factors[wg], w.index), step)\n                c.commit()\n":
        "                c.commit()\n                w.write(rows(self.tiles.factors[wg], w.index), step)\n"},
        "softmax0 and softmax1 arrive on C0_prod and C1_prod only after their write of the factors",
        ("softmax", ARRIVES, "C0_prod|C1_prod", "after"), sizes={"kv_blocks": 4}),
    Planted("pingpong: the turn is not passed on", f"{HOPPER}cutlass_sm90_pingpong.py:cutlass_sm90_pingpong",
        {"            order.arrive()  # the last product is still under way\n": "            order.stage.step()\n"},
        "consumer0 and consumer1 arrive on math_wg_order of the other group after their products",
        ("consumer0|consumer1|each", ARRIVES, "math_wg_order")),
    Planted("pingpong: past its own tile only", f"{HOPPER}cutlass_sm90_pingpong.py:cutlass_sm90_pingpong",
        {"state.advance(k_tiles * _GROUPS)": "state.advance(k_tiles)"},
        "each consumer's stages and phases go on past the tile of the other group, too",
        ("consumer0|consumer1|each", "stage|phase|parit"), sizes={"k_tiles": 6}),
    Planted("pingpong: the other group overwrites the store", f"{HOPPER}cutlass_sm90_pingpong.py:cutlass_sm90_pingpong",
        {"            out.tail()  # the other group writes to the same buffers of D\n": ""},
        "each consumer waits for its bulk stores, leaving none pending, before it passes the epilogue on",
        ("consumer0|consumer1|each", "waits? for", "bulk stores", "before")),
    Planted("rowsum: one warp releases for all", f"{EXAMPLES}rowsum.py:rowsum",
        {"                with w.elect_one():\n                    stage.arrive()\n":
        "                if w.index == 0:\n                    with w.elect_one():\n"
        "                        stage.arrive()\n"},
        "every warp of math executes the arrive on empty, not only the first",
        ("every warp of math", ARRIVES, "empty")),
)  # fmt: skip
