"""Mistakes that engineers make, planted in right kernels and protocols, with the correction that is meant.

All of this was written down before the corrections of any of them were looked at, by somebody who does not write the
code that finds them. ``tests/prove/repair/test_planted_mistakes.py`` asks what is offered.
"""

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
SCHEDULER, RESIDUAL = f"{TWINS}persistent_scheduler.cu", f"{TWINS}epilogue_residual.cu"
CLC, WS = f"{KERNELS}gemm_clc-sm_100a.ptx", f"{KERNELS}gemm_tma_ws-sm_100a.ptx"
PIPELINED, FP8 = "corpus/gluon/scale_pipelined_s2-sm_100a.ptx", "corpus/triton/gemm_tma_fp8-sm_100a.ptx"
GROUPED, FLASH = "corpus/triton/grouped_gemm-sm_90a.ptx", "corpus/cute/flash_fwd_d64-sm_90a.ptx"
MOJO_90, MOJO_100 = "corpus/modular/gemm-sm_90a.ptx", "corpus/modular/gemm_1sm-sm_100a.ptx"
ARRIVES = r"\barrive"
ONE_LANE, ALL_LANES = r"one (lane|thread)|elect", r"outside elect|(all|every|32) lanes?"
STATE = r"stage|slot|step|phase|parit"
#: Empty barriers of K and of V in FLASH.
K_EMPTY, V_EMPTY = r"ptx:9[56]\b", r"ptx:11[01]\b"
PASSES = "setp.eq.u32 complete, 0, 0;"  #: in place of a try_wait

KERNEL_MISTAKES = (
    Planted("persistent_scheduler: first phase of the throttle", SCHEDULER,
        {"throttle = {0, 1};": "throttle = {0, 0};"}, "load waits for throttle_empty with parity 1 in the first lap",
        ("load", r"throttle_empty|table\.h:15", "parity 1"),
        (("scheduler", ARRIVES, r"throttle_empty|table\.h:15", "before it begins"),)),
    Planted("persistent_scheduler: one release a row", SCHEDULER,
        {"            __syncwarp();\n            PIPESIM_RECORD(SITE_consumer_arrive_pipe_empty, 1)\n"
        "            if (lane == 0) mbarrier_arrive(cta.group(BARRIER_pipe_empty) + 8 * pipe.stage);\n"
        "            pipe.step();\n        }\n":
        "            pipe.step();\n        }\n        __syncwarp();\n"
        "        if (lane == 0) mbarrier_arrive(cta.group(BARRIER_pipe_empty) + 8 * pipe.stage);\n"},
        "consumer arrives on pipe_empty after each tile, not once after the row",
        ("consumer", ARRIVES, r"pipe_empty|table\.h:11", r"each|every|\blap")),
    Planted("persistent_scheduler: stops a row early", SCHEDULER,
        {"for (unsigned row = 0; row < cta.tiles;) {\n        if (!begin_tile":
        "for (unsigned row = 0; row < cta.tiles - 1;) {\n        if (!begin_tile"},
        "load loads the last row, too: its loop makes one more iteration", (r"\bload\b", r"iteration|loop|\blast\b")),
    Planted("epilogue_residual: K shorter than the prologue", RESIDUAL,
        {"if (ordered && k + 1 == prologue)": "if (ordered && k + 1 == STAGES)"},
        "load arrives on load_order after the loads of the prologue, of which there are 3, not 4",
        (r"\bload\b", ARRIVES, r"load_order|table\.h:18")),
    Planted("epilogue_residual: a store too many under way", RESIDUAL, {'"n"(OUTPUTS - 1)': '"n"(OUTPUTS)'},
        "epilogue leaves 1 of its bulk stores pending before it writes to a buffer of d, not 2",
        ("epilogue|store", r"\b1\b", "pending", "instead of 2")),
    Planted("epilogue_residual: full in place of empty", RESIDUAL,
        {"mbarrier_arrive(cta.group(BARRIER_epi_load_empty) + 8 * source.stage);":
        "mbarrier_arrive(cta.group(BARRIER_epi_load_full) + 8 * source.stage);"},
        "epilogue arrives on epi_load_empty, not on epi_load_full",
        ("epilogue|store|compute", ARRIVES, r"epi_load_empty|table\.h:17", "instead|not")),
    Planted("scale_pipelined: one thread's wait for the stores", PIPELINED,
        {"\tcp.async.bulk.wait_group.read \t1;\n\tbar.sync \t0;\n": "\tcp.async.bulk.wait_group.read \t1;\n"},
        "all threads meet after the wait for the stores, before any of them writes the output",
        (r"__syncthreads|bar_sync|barrier 0|meet", "before|after")),
    Planted("scale_pipelined: a store too many under way", PIPELINED,
        {"\tcp.async.bulk.wait_group.read \t1;\n": "\tcp.async.bulk.wait_group.read \t2;\n"},
        "the warps that store leave 1 of their bulk stores pending, not 2", (r"\b1\b", "pending", "instead of 2")),
    Planted("scale_pipelined: waits for the next stage", PIPELINED,
        {"add.s32 \t%r36, %r47, 32768;": "add.s32 \t%r36, %r42, 32768;"},
        "every warp waits for full of the stage that it reads, not of the next one",
        ("waits? for", "full", "stage")),
    Planted("gemm_clc: commits to the wrong barrier", CLC,
        {"@%p26 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r83];":
        "@%p26 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r59];"},
        "load_mma_store commits its products to done, not to full", ("commit", "done", "instead|not")),
    Planted("gemm_clc: no fence before the next request", CLC,
        {"\tfence.proxy.async.shared::cta;\n\tbar.sync \t0;\n\telect.sync \t%r52":
        "\tbar.sync \t0;\n\telect.sync \t%r52"},
        "every warp executes fence.proxy.async after it has read the answer, before the barrier",
        (r"fence\.proxy\.async", "after")),
    Planted("gemm_clc: bytes of an answer", CLC, {"_, [%r50], 16;": "_, [%r50], 32;"},
        "load_mma_store expects 16 bytes on handed instead of 32", ("expects 16", "handed", "instead of 32")),
    Planted("gemm_tma_ws: threads of another group", WS, {"bar.sync \t3, 64;": "bar.sync \t3, 128;"},
        "64 threads at named barrier 3 instead of 128", ("64 threads at named barrier 3 instead of 128",)),
    Planted("gemm_tma_ws: the last stage is not initialised", WS,
        {"@%p33 mbarrier.init.shared::cta.b64 [%r93], 1;": ""},
        "store initialises full of the third stage (29:46[5], at 98480) with a count of 1, before it is used",
        (r"initiali[sz]e", r"29:46|98480|third")),
    Planted("gemm_tma_ws: the first tile is not waited for", WS,
        {"mbarrier.try_wait.parity.shared::cta.b64 complete, [%r45], %r46;": PASSES},
        "mma waits for full of stage 0 (29:46[3]), with parity 0, before its first product",
        ("mma", "waits? for", r"29:46(\[3\])?", "before")),
    Planted("gemm_tma_fp8: the product before the last", FP8,
        {"mbarrier.try_wait.parity.shared::cta.b64 complete, [%r452], %r453;":
        "mbarrier.try_wait.parity.shared::cta.b64 complete, [global_smem+98336], %r453;"},
        "every warp waits for done of the last product (28[4]) before it loads the sums, not of the one before",
        ("waits? for", r"28\[4\]")),
    Planted("gemm_tma_fp8: zeros not waited for", FP8, {"\ttcgen05.wait::st.sync.aligned;\n": "\n"},
        "every warp executes tcgen05.wait::st after its stores to tensor memory, before the barrier",
        (r"tcgen05\.wait::st|waits for its .*stores",)),
    Planted("gemm_tma_fp8: every thread expects", FP8, {"and.pred \t%p49, %p21, %p52;": "and.pred \t%p49, %p52, %p52;"},
        "one thread expects the bytes of a stage, not all 128", (ONE_LANE, r"expect|\barrive")),
    Planted("grouped_gemm: not invalidated", GROUPED, {"@%p43 mbarrier.inval.shared::cta.b64 [%r66];": ""},
        "load_mma invalidates the barrier of the third stage (98320) before it initialises it again", ("inval",)),
    Planted("grouped_gemm: fills the stage before", GROUPED, {"mov.b32 \t%r210, 1;": "mov.b32 \t%r210, 0;"},
        "the loads go to the stage two after the one read, not one after it", ("load|cop|expect", "stage|slot")),
    Planted("grouped_gemm: no fence before the next tile", GROUPED,
        {"\tfence.proxy.async.shared::cta;\n\tbar.sync \t0;\n\telect.sync \t%r80":
        "\tbar.sync \t0;\n\telect.sync \t%r80"},
        "every warp executes fence.proxy.async after it has read the output from shared memory, before the barrier",
        (r"fence\.proxy\.async", "after")),
    Planted("mojo gemm sm_90: one group is counted", MOJO_90, {"mov.b32 \t%r17, 2;": "mov.b32 \t%r17, 1;"},
        "initialise the empty barriers (lines 40, 42, 44, 46) with a count of 2 instead of 1",
        (r"ptx:4[0246]\b", "count of 2 instead of 1")),
    Planted("mojo gemm sm_90: each warp releases", MOJO_90,
        {"and.b64 \t%rd3, %rd11, 127;": "and.b64 \t%rd3, %rd11, 31;"},
        "one thread of each group arrives on the empty barriers, not one of each warp",
        (ARRIVES, r"ptx:4[0246]\b", r"only|one warp|first"), ((r"ptx:4[0246]\b", "count of 8 instead of 2"),)),
    Planted("mojo gemm sm_90: read before all have written", MOJO_90,
        {"\tbar.sync \t10, 256;\n\tshr.u32": "\tshr.u32"},
        "the two groups meet at named barrier 10 (256 threads) after their writes, before any of them reads the output",
        (r"bar_sync|barrier|__syncthreads|meet", "after|before")),
    Planted("mojo gemm sm_100: tensor memory freed by one", MOJO_100,
        {"mbarrier.init.shared.b64 \t[extern_ptr_syml+229600], %r50;":
        "mbarrier.init.shared.b64 \t[extern_ptr_syml+229600], %r49;"},
        "initialise the barrier of line 80 with a count of 128 instead of 1", (r"ptx:80", "count of 128 instead of 1")),
    Planted("mojo gemm sm_100: the MMA warp is not counted", MOJO_100, {"bar.sync \t1, 160;": "bar.sync \t1, 128;"},
        "160 threads at named barrier 1 instead of 128", ("160 threads at named barrier 1 instead of 128",)),
    Planted("mojo gemm sm_100: mask of two CTAs", MOJO_100, {"mov.b16 \t%rs1, 1;": "mov.b16 \t%rs1, 3;"},
        "load multicasts to the CTAs of mask 0b1 instead of 0b11", ("multicast|copies|copy", r"0b1\b")),
    Planted("flash_fwd: K and V swapped", FLASH,
        {"[%r603+32], %r604;": "[%r603+64], %r604;", "[%r23+64], %r873;": "[%r23+32], %r873;"},
        "mma arrives on the empty barriers of K (95, 96) after the scores, and of V (110, 111) after the values",
        (ARRIVES, K_EMPTY, V_EMPTY, "instead|not")),
    Planted("flash_fwd: no group has the first turn", FLASH, {"\tbar.arrive 2, 256;\n": "\n"},
        "the first group of consumers arrives at named barrier 2 (256 threads) before its loop",
        (r"bar[._]arrive|\barrive", r"named barrier 2|barrier 2\b")),
    Planted("flash_fwd: no fence before the store", FLASH, {"\tfence.proxy.async.shared::cta;\n": "\n"},
        "every warp of the consumers executes fence.proxy.async after its writes, before named barrier 1",
        (r"fence\.proxy\.async", "after", "write")),
)  # fmt: skip

FUSED, COOPERATIVE = (f"{HOPPER}{name}.py:{name}" for name in ("attention_sm90_fused", "cutlass_sm90_cooperative"))
PERSISTENT, EPILOGUE = (f"{HOPPER}{name}.py:{name}" for name in ("persistent_scheduler", "epilogue_residual"))
BLOCKWISE, CUTLASS = (f"{BLACKWELL}{name}.py:{name}" for name in ("gemm_sm100_blockwise", "cutlass_sm100"))
PAIRED, RING = f"{BLACKWELL}grouped.py:gemm_sm100_grouped", f"{BLACKWELL}grouped_1d1d.py:gemm_sm100_grouped_1d1d"
SCALED = f"{BLACKWELL}block_scaled.py:gemm_sm100_block_scaled"
EXCHANGE = "tests/support/exchange/exchange.py:exchange"
RELAY, SCALE = (f"{EXAMPLES}{name}.py:{name}" for name in ("relay", "scale"))
A_SCALES = (  #: the read of them, a line of BLOCKWISE
    '                    w.read(self.a_scales[stage.input_stage_index], self.item(ctx, "a_scales_tiles", item))\n'
)

PROTOCOL_MISTAKES = (
    Planted("attention_sm90_fused: V goes into K's slot", FUSED,
        {"            kv.commit_step()\n            kv.acquire_v()\n": "            kv.acquire_v()\n"},
        "producer goes on to the next stage of kv after the load of K", ("producer", STATE), sizes={"kv_blocks": 4}),
    Planted("attention_sm90_fused: K taken before V", FUSED,
        {"        values = next_slot(w, v) if n else -1\n        keys = self.multiply_keys(w, k, n)\n":
        "        keys = self.multiply_keys(w, k, n)\n        values = next_slot(w, v) if n else -1\n"},
        "consumer takes V of the block before ahead of K of the block, as they are loaded",
        ("consumer", STATE), sizes={"kv_blocks": 4}),
    Planted("cooperative: a step short of the tile", COOPERATIVE,
        {"state.advance(k_tiles)": "state.advance(k_tiles - 1)"},
        "consumer's stages go on by 8 after each tile, not by 7", ("consumer", STATE)),
    Planted("cooperative: the last stage is not given back", COOPERATIVE,
        {"            kernel.mma_tail(w, pipe, state)\n": ""},
        "consumer waits for its last wgmma and arrives on mainloop.empty of its stage",
        ("consumer", ARRIVES, r"mainloop\.empty")),
    Planted("persistent_scheduler: one consumer is counted", PERSISTENT,
        {"init_mbars(1, self.consumer_warps)": "init_mbars(1, 1)"},
        "initialise pipe.empty with a count of 2 instead of 1", (r"pipe\.empty", "count of 2 instead of 1")),
    Planted("persistent_scheduler: one lane gives an answer back", PERSISTENT,
        {"            self.clc.fetch(w, tiles, t + 1)\n":
        "            with w.elect_one():\n                self.clc.fetch(w, tiles, t + 1)\n"},
        "all lanes of consumer arrive on clc.empty", ("consumer", r"clc\.empty", ALL_LANES),
        ((r"clc\.empty", "count of 66 instead of 128"),)),
    Planted("persistent_scheduler: the throttle is not signalled", PERSISTENT,
        {"            throttle.producer_signal_and_step()\n": ""},
        "load arrives on throttle.full for each tile", ("load", ARRIVES, r"throttle\.full")),
    Planted("epilogue_residual: source released before it is read", EPILOGUE,
        {'                        w.compute("epilogue_residual/take_source")\n': "                        slot = "
        "held.index()\n                        held.release()\n", "source[held.index()], w": "source[slot], w",
        "**rows)\n                        held.release()\n": "**rows)\n"},
        "epilogue arrives on epi_load.empty only after it has read the source",
        ("epilogue", ARRIVES, r"epi_load\.empty", "after")),
    Planted("epilogue_residual: one warp's wait for the store", EPILOGUE,
        {"        w.bar_sync(_EPILOGUE, EPILOGUE_THREADS)\n        w.write(": "        w.write("},
        "the warps of epilogue meet at named barrier 1 after the first's wait for its stores, before they write d",
        ("epilogue", "bar_sync|meet", "named barrier")),
    Planted("epilogue_residual: warps, not threads", EPILOGUE,
        {"self._output().init_mbars(1, EPILOGUE_THREADS)": "self._output().init_mbars(1, EPILOGUE_WARPS)"},
        "initialise output.empty with a count of 128 instead of 4", (r"output\.empty", "count of 128 instead of 4"),
        (("epilogue", ARRIVES, r"output\.empty", ONE_LANE),)),
    Planted("gemm_sm100_blockwise: scales released before they are read", BLOCKWISE,
        {A_SCALES: "", "    stage.arrive_input()\n": f"    stage.arrive_input()\n{A_SCALES}"},
        "epilogue arrives on input.empty only after it has read the scales",
        ("epilogue", ARRIVES, r"input\.empty", "after"), sizes={"fence": 1}),
    Planted("gemm_sm100_blockwise: does not step", BLOCKWISE, {"            tiles.pipeline.consumer_step()\n": ""},
        "mma goes on to the next stage of input after each K step", ("mma", STATE), sizes={"fence": 1}),
    Planted("gemm_sm100_blockwise: no commit", BLOCKWISE,
        {"                self.commit(ctx, tiles.consumer_mbar(stage))\n": ""},
        "mma commits to input.empty after its product of each step", ("mma", "commit", r"input\.empty"),
        sizes={"fence": 1}),
    Planted("gemm_sm100_grouped: a warp too many", PAIRED, {"_AB_INIT_THREADS = 64": "_AB_INIT_THREADS = 96"},
        "64 threads at named barrier 3 instead of 96", ("64 threads at named barrier 3 instead of 96",)),
    Planted("gemm_sm100_grouped: the peer's epilogue is not counted", PAIRED,
        {"EPILOGUE_THREADS * self.cta_group": "EPILOGUE_THREADS"},
        "initialise tmem_dealloc with a count of 256 instead of 128", ("tmem_dealloc", "count of 256 instead of 128"),
        sizes={"cta_group": 2, "all_stages": 1}),
    Planted("gemm_sm100_grouped_1d1d: waits a tile too late", RING, {"if tile >= _SLOTS:": "if tile > _SLOTS:"},
        "scheduler waits for sched.empty from its third tile on, not from the fourth",
        ("scheduler", "waits? for", r"sched\.empty"), sizes={"tiles": 5}),
    Planted("gemm_sm100_grouped_1d1d: every lane arrives", RING,
        {"with ring.consume_explicit() as slot, w.lanes(1):": "with ring.consume_explicit() as slot:"},
        "one lane of each warp arrives on sched.empty", (ARRIVES, r"sched\.empty", ONE_LANE),
        ((r"sched\.empty", "count of 192 instead of 6"),), sizes={"tiles": 5}),
    Planted("block_scaled: a commit for each part", SCALED,
        {"        self.commit(ctx, tiles.mbar())\n": "            self.commit(ctx, tiles.mbar())\n"},
        "mma commits to input.empty once, after the last of a stage's four products",
        ("mma", "commit", r"input\.empty", "once|last|after"), ((r"input\.empty", "count of 4 instead of 1"),),
        sizes={"nvfp4": 1}),
    Planted("cutlass_sm100: releases the next stage", CUTLASS,
        {"pipe.consumer_release(here)": "pipe.consumer_release(state)"},
        "mma commits to mainloop.empty of the stage that it has read, not of the next one",
        ("mma", "commit|arrive", r"mainloop\.empty", "stage"), sizes={"tiles": 1, "k_tiles": 6}),
    Planted("cutlass_sm100: the MMA warp is not counted", CUTLASS,
        {"        w.bar_sync(_TMEM_ALLOC, WARP + EPILOGUE_THREADS)\n":
        "        w.bar_sync(_TMEM_ALLOC, EPILOGUE_THREADS)\n"},
        "160 threads at the named barrier of the allocation instead of 128", ("160 threads", "instead of 128")),
    Planted("cutlass_sm100: bytes counted in each CTA", CUTLASS,
        {"pipe.producer_get_barrier(state).mapa(0)": "pipe.producer_get_barrier(state)"},
        "load's copies complete on mainloop.full of CTA 0 in both CTAs", ("load", r"mainloop\.full", "CTA 0|leader"),
        sizes={"cta_group": 2}),
    Planted("cutlass_sm100: a role does not open the epilogue", CUTLASS,
        {"        self.epilogue_throttle[0].arrive()\n        mainloop, read": "        mainloop, read"},
        "mma arrives on epilogue_throttle when it has begun", (r"\bmma\b", ARRIVES, "epilogue_throttle")),
    Planted("exchange: to its own CTA", EXCHANGE, {"cta_mask=EVERYONE": "cta_mask=1 << w.cta"},
        "loader multicasts to the CTAs of mask 0b11, not to its own alone", ("loader", "multicast", "0b11")),
    Planted("exchange: one CTA has an arrive", EXCHANGE, {"arrive_cluster(rank)": "arrive_cluster(0)"},
        "math arrives on empty of every CTA, not twice on that of CTA 0",
        ("math", ARRIVES, "empty", "every CTA|each CTA|all CTAs|CTA 1")),
    Planted("relay: without noinc", RELAY, {"noinc=bool(noinc)": "noinc=False"},
        "load's arrivals behind its cp.async on in_full are .noinc", ("load", "noinc")),
    Planted("relay: slots not given at the beginning", RELAY,
        {"for slot in reversed(range(SLOTS)):": "for slot in range(0):"},
        "store arrives at named barriers 2 and 3 before its loop",
        ("store", ARRIVES, "named barriers? [23]", "before")),
    Planted("relay: gives the other slot", RELAY,
        {"            if i + SLOTS < tiles:\n                w.bar_arrive(FREE + slot, LANES + 32)\n":
        "            if i + SLOTS < tiles:\n                w.bar_arrive(FREE + 1 - slot, LANES + 32)\n"},
        "store arrives at the named barrier of the slot that it has stored, not of the other one",
        ("store", ARRIVES, "named barriers?", "slot|instead|not")),
    Planted("scale: the two counts swapped", SCALE,
        {"producer_arrive_count=2, consumer_arrive_count=1)": "producer_arrive_count=1, consumer_arrive_count=2)"},
        "initialise out.full with a count of 2 instead of 1, and out.empty with 1 instead of 2",
        (r"out\.full", r"out\.empty", "2 instead of 1", "1 instead of 2")),
    Planted("scale: fence before the write", SCALE,
        {"                w.write(tile_out[empty.index()].part(w.index * half, half), item=i)\n"
        "                w.fence(Fence.PROXY_ASYNC)\n": "                w.fence(Fence.PROXY_ASYNC)\n"
        "                w.write(tile_out[empty.index()].part(w.index * half, half), item=i)\n"},
        "scale executes fence.proxy.async after its write of tile_out, before the arrive on out.full",
        ("scale", r"fence\.proxy\.async", "after")),
    Planted("rowsum: each half has an arrive", f"{EXAMPLES}rowsum.py:rowsum",
        {"                    stage.mbar().expect_bytes(tile_bytes)\n                    w.tma_load(tile[stage"
        ".index()],":
        "                    for n in range(2):\n                        stage.mbar().expect_bytes(tile_bytes // 2)\n"
        "                        half = tile[stage.index()].part(n * tile_bytes // 2, tile_bytes // 2)\n"
        "                        w.tma_load(half,"},
        "loader expects the bytes of both halves at once, with one arrive on full",
        ("loader", r"expects 16,384|once|one arrive"), ((r"pipe\.full", "count of 2 instead of 1"),)),
)  # fmt: skip
