"""Names that a role does not know, because CUDA, PTX, CUTLASS, Mojo or Triton has them: what is written instead."""

from __future__ import annotations

_LANE = "a role is what a whole warp does: inside `with w.elect_one():` one lane acts, inside `with w.lanes(n):` n do"
_WARP = "w.index is the warp's number within its role, w.warp that within its CTA"
_WARPS = 'the role\'s decorator says how many warps it has: @p.role("mma", warps=4); w.index is 0 to 3 there'
_CTA = 'w.cta is the CTA\'s rank in its cluster, or its number in a grid of single CTAs: Protocol("name", grid=3)'
_CLUSTER = 'the protocol says how many CTAs a cluster has: Protocol("name", cluster=2)'
_GLOBAL = (
    "a load names the item that it brings, w.tma_load(tile[s], mbar, item=i), a store reads its tile, "
    "w.async_read(Engine.BULK, tile[s], item=i); what CTAs hand to each other is p.gmem(name, slots, nbytes)"
)
_SHARED = "tiles in shared memory are declared once, before the roles: tile = p.smem(name, slots=4, nbytes=16384)"
_TENSOR = "tiles in tensor memory are declared once, before the roles: acc = p.tmem(name, slots=2, nbytes=65536)"
_REGISTERS = "tiles in registers are declared once, before the roles: acc = p.registers(name, slots=1, nbytes=65536)"
_MBARRIERS = "mbarriers are declared once, before the roles: bars = p.mbarriers(name, 4); bars[0] is the first of them"
_SYNC = "w.sync_threads() is __syncthreads(), w.bar_sync(number, threads) a named barrier, w.cluster_sync() a cluster's"
_SYNC_WARP = "leave it out: the lanes of a warp act together, and what they do is ordered"
_NAMED = "a named barrier is w.bar_sync(number, threads), or w.bar_arrive(number, threads) without waiting"
_CLUSTER_SYNC = "the cluster barrier is w.cluster_arrive() and w.cluster_wait(), or both as w.cluster_sync()"
_ARRIVE = "an arrive is the barrier's: stage.mbar().arrive(), or bars[0].arrive(); that of a ring is stage.release()"
_EXPECT = "the bytes are expected on a barrier: stage.mbar().expect_bytes(nbytes), which is mbarrier.arrive.expect_tx"
_WAIT = (
    "a wait is the barrier's: bars[0].wait(phase), with the parity as its phase; "
    "a ring waits by itself: with pipe.consume() as stage:"
)
_LOAD = "a bulk copy is w.tma_load(tile[stage.index()], stage.mbar(), item=i); with cta_mask= it is a multicast"
_STORE = (
    "a bulk store is w.async_read(Engine.BULK, tile[s], item=i), then w.commit(Engine.BULK) and "
    "w.wait_group(Engine.BULK); an ordinary one is w.write(tile[s], item=i)"
)
_READ = "ordinary loads from a tile are w.read(tile[s], item=i)"
_CP_ASYNC = (
    "cp.async is w.async_write(Engine.CP_ASYNC, tile[s], item=i), then w.commit(Engine.CP_ASYNC) and "
    "w.wait_group(Engine.CP_ASYNC), or the barrier's cp_async_arrive()"
)
_GROUP = "a group is closed by w.commit(Engine.WGMMA) and awaited by w.wait_group(Engine.WGMMA, groups)"
_MMA = "a matrix multiplication is w.mma(Engine.WGMMA, reads=[(tile[s], i)], writes=[(acc[0], i)], cycles=128)"
_FENCE = "a fence is w.fence(Fence.PROXY_ASYNC), or .MBARRIER_INIT, .ACQ_REL, .SC, .PROXY_TENSORMAP, .TCGEN05_BEFORE, …"
_LOOP = 'a loop is `for i in w.loop(tiles, "tiles"):`, or range()'
_WORK = "time that a computation takes is w.work(cycles=600)"
_SETMAXNREG = "setmaxnreg is w.setmaxnreg(registers)"
_INIT = "barriers are initialised in the function marked @p.init: bars[0].init(count)"
_ROLE = 'a role is a function marked @p.role("mma", warps=4)'
_PIPE = "a ring is entered: with pipe.produce() as stage: fills it, with pipe.consume() as stage: empties it"
_INDEX = "the stage's number is stage.index(), its barrier stage.mbar()"
_PARAMETERS = "the parameters are those of the function itself: def ring(stages: int = 4)"
_GRID = "the launch's size is not part of a protocol: it is --ctas on the command line"

#: Other names, without underscores and in lower case, that mean the same whatever object is asked for them.
_ANYWHERE: tuple[tuple[str, str], ...] = (
    (_LANE, "lane laneid laneidx threadidx threadid thread tid threadrank tidx tidy thrid localtid islane0 isleader"),
    (_LANE, "elect electsync electone electonesync electonethread leader isthreadzero"),
    (_WARP, "warpid warpidx warprank warpindex canonicalwarpidx canonicalwarpidxsync wid warpgroup warpgroupidx"),
    (_WARPS, "numwarps nwarps warpcount blockdim numthreads nthreads numlanes warpsize threadsperwarp addwarps"),
    (
        _CTA,
        "blockidx blockid ctaid ctarank ctaidx blockrank clusterrank blockrankincluster programid clusterctarank pid",
    ),
    (_CLUSTER, "clustersize clusterdim numctas clustershape nctas"),
    (_GRID, "griddim grid numprograms launch gridsize"),
    (_GLOBAL, "gmem global globalmem globalmemory gmemtensor dram hbm descriptor tensormap tmadescriptor desc"),
    (_SHARED, "shared sharedmem sharedmemory allocshared staticshared dynamicshared makesmem addsmem sharedtile smem"),
    (_TENSOR, "tensor tensormem tensormemory tmemalloc alloctmem tcgen05alloc tmem"),
    (_REGISTERS, "regs rmem fragment fragments accumulator accumulators registers"),
    (_MBARRIERS, "mbarrier mbarriers mbars mbarrierarray makebarriers addbarriers allocbarrier"),
    (_SYNC, "sync syncthreads blocksync ctasync syncblock synccta synchronize barriersync0 syncall threadsync"),
    (_SYNC_WARP, "syncwarp warpsync converge syncwarps shflsync shfl ballot ballotsync anysync activemask"),
    (_NAMED, "namedbarrier namedbarriersync namedbarrierarrive barriersync barrierarrive barsync bararrive bar barred"),
    (_CLUSTER_SYNC, "clusterbarrier clustersync clusterarrive clusterwait clusterarriverelaxed synccluster"),
    (_ARRIVE, "arrive mbarrierarrive mbararrive arriverelease signal arrivecluster arriveremote notify commitarrive"),
    (_EXPECT, "expecttx arriveexpecttx arriveandexpecttx arriveandexpectbytes expectbytes settransactionbytes expect"),
    (
        _WAIT,
        "wait mbarrierwait mbarwait trywait testwait waitparity trywaitparity mbarriertrywait waitbarrier parity phase",
    ),
    (_LOAD, "tma tmacopy tmaload copy load asynccopy cpasyncbulk bulkcopy cpbulk cpasyncbulktensor tmaloadmulticast"),
    (_LOAD, "multicast asynctmacopy asyncload asynccopyglobaltolocal asyncmulticastload memcpyasync"),
    (_STORE, "tmastore store bulkstore asyncstore cpasyncbulkstore tmareduce reduce asynccopylocaltoglobal"),
    (_READ, "ldmatrix loadshared lds ldshared ldsm localload tcgen05ld tmemload"),
    (_STORE, "stmatrix stshared sts storeshared localstore"),
    (_CP_ASYNC, "cpasync cpasyncshared cpasyncglobal cpasyncwait cpasyncwaitgroup cpasynccommit cpasynccommitgroup"),
    (_GROUP, "commitgroup commitbatch waitbatch wgmmacommit wgmmawait wgmmacommitgroup wgmmawaitgroup waitgroupread"),
    (_GROUP, "warpgroupcommitbatch warpgroupwait warpgrouparrive wgmmafence tmastorearrive tmastorewait storewait"),
    (_MMA, "wgmma gemm mmaasync dot wgmmammaasync umma tcgen05 tcgen05mma mmasync warpgroupdot warpgroupmma"),
    (
        _FENCE,
        "fence fenceproxyasync proxyfence fenceasync fenceviewasync fenceviewasyncshared threadfence threadfenceblock",
    ),
    (_FENCE, "membar memorybarrier fencebarrierinit fencembarrierinit fenceacqrel asyncproxyfence fenceproxy"),
    (_LOOP, "range staticrange foreach forrange tiles iterate unroll fori"),
    (_WORK, "compute sleep nanosleep math delay cycles busy execute"),
    (_SETMAXNREG, "setmaxreg setmaxregister regalloc regdealloc warpgroupregalloc warpgroupregdealloc setmaxnregdec"),
    (_INIT, "mbarrierinit initbarrier initbarriers initmbarrier initmbars mbarinit barrierinit"),
    (_ROLE, "addrole warprole kernel roles partition warpspecialize warpspecialise producer consumer"),
    (_PIPE, "produceracquire producercommit consumerwait consumerrelease acquire commitstage push pop advance"),
    (_INDEX, "idx stageidx stageindex slot barrierptr barrier mbarrierptr stage"),
    (_PARAMETERS, "params parameters constexpr args parameter"),
)
#: What an object of this class is asked for, where the same name means something else elsewhere.
_BY_CLASS: dict[str, tuple[tuple[str, str], ...]] = {
    "Warp": (
        (_NAMED, "barrier"),
        (_WARP, "id rank number idx"),
        (_WARPS, "warps count size threads"),
        (_PIPE, "stage producer consumer"),
    ),
    "Protocol": (
        (_MBARRIERS, "barrier barriers mbar bar"),
        (_ROLE, "warp warps addwarp"),
        (_REGISTERS, "register reg"),
        (_SHARED, "tile tensor alloc buffer memory"),
    ),
    "SharedMemBarrier": ((_EXPECT, "tx bytes"), (_WAIT, "poll ready")),
}


#: What CUDA and Triton have as a name of its own; of the others a role may have variables.
_BUILT_IN_NAMES = """
threadidx blockidx blockdim griddim warpsize laneid warpid syncthreads syncwarp threadfence threadfenceblock
activemask ballotsync shflsync electsync electonesync programid numprograms
"""
_BUILT_IN = frozenset(_BUILT_IN_NAMES.split())


def _table(entries: tuple[tuple[str, str], ...]) -> dict[str, str]:
    return {name: meant for meant, names in entries for name in names.split()}


_KNOWN = _table(_ANYWHERE)
_KNOWN_BY_CLASS = {name: _table(entries) for name, entries in _BY_CLASS.items()}


def meant_by(name: str, asked: str = "") -> str:
    """What to write for ``name``, which was looked up in an object of the class ``asked``, "" if it was alone.

    "" if nothing is known under this name.
    """
    plain = name.replace("_", "").lower()
    if not asked and plain not in _BUILT_IN:
        return ""
    return _KNOWN_BY_CLASS.get(asked, {}).get(plain) or _KNOWN.get(plain, "")
