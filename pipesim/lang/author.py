"""The author's code: lines of it, values that it gives, functions that it defines, and what these raise."""

import difflib
import inspect
import sys
from collections.abc import Callable
from operator import index
from types import CodeType, FrameType

from pipesim.errors import PipesimError, ProtocolError, describe_error
from pipesim.inputs import quoted_name, wrong_name
from pipesim.process.limits import LimitReachedError

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


_OURS = ("pipesim.lang.", "pipesim.model.", "pipesim.pipelines.", "contextlib")
Place = tuple[CodeType, int]  #: code, and an instruction in it
getframe = sys._getframe  # noqa: SLF001  # the documented way to read the stack without building a traceback


def author_error(fact: str, *, cause: str = "", correction: str = "") -> ProtocolError:
    """What is wrong with the author's line that is executed now."""
    return ProtocolError(fact, place=author_line(), cause=cause, correction=correction)


def author_line() -> str:
    """``file:line`` of the innermost frame that is not part of the description language itself."""
    return line_of(*author_place(2))


def author_place(depth: int) -> Place:
    """Where the author's code is now, at least this many calls up; its line takes as long to find as all the rest."""
    frame: FrameType = getframe(depth)
    while IS_INSIDE[frame.f_globals.get("__name__", "")] and (caller := frame.f_back) is not None:
        frame = caller
    return frame.f_code, frame.f_lasti


def line_of(code: CodeType, instruction: int) -> str:
    """``file:line`` of an instruction of ``code``."""
    line = next((line for begin, end, line in code.co_lines() if begin <= instruction < end), code.co_firstlineno)
    return f"{code.co_filename}:{line}"


def is_inside(module: str) -> bool:
    """True for a module of the description language, whose lines are of no interest to an author."""
    return IS_INSIDE[module]


class _InsideByName(dict[str, bool]):
    """What :func:`is_inside` has answered: every operation asks several times, and a dictionary answers soonest."""

    def __missing__(self, module: str) -> bool:
        answer = self[module] = f"{module}.".startswith(_OURS)
        return answer


IS_INSIDE = _InsideByName()


def whole(what: str, value: object) -> int:
    """``value`` as an integer; ProtocolError with the author's line if it is not a whole number."""
    try:
        return index(value)  # type: ignore[arg-type]  # what has no __index__ is what this is about
    except TypeError:
        raise author_error(
            f"{what} is {value!r} of type {type(value).__name__}, not a whole number",
            correction="divide with //, which keeps whole numbers whole" if isinstance(value, float) else "",
        ) from None


def name_of(what: str, name: object) -> str:
    """``name`` as a plain string; ProtocolError with the author's line if it cannot be a name.

    A decorator without its parentheses passes the function itself.
    """
    if not isinstance(name, str):
        raise author_error(
            f"the name of a {what} is of type {type(name).__name__}, not a string",
            cause="a decorator without parentheses and name" if callable(name) else "",
            correction='write @protocol.role("load")' if what == "role" else "write the name first, in quotes",
        )
    plain = str.__str__(name)  # an author's class may answer anything
    wrong = wrong_name(plain)
    if wrong:
        raise author_error(
            f"the name of a {what} is {quoted_name(plain)}",
            cause=wrong,
            correction="choose a short name of letters, digits and _",
        )
    return plain


class UnansweredError(BaseException):
    """Ends the recording of a role where it asks for the answer of an atomic that is not known yet."""


#: What an author's function may raise that is not reported as its fault, but goes to the caller as it is.
NOT_OURS = (PipesimError, KeyboardInterrupt, LimitReachedError, UnansweredError)


def in_words(error: BaseException) -> str:
    """``ZeroDivisionError: division by zero``, in one line; the place of a syntax error is separate."""
    return describe_error(error)


def raised_at(error: BaseException) -> str:
    """``file:line`` of the innermost frame that is not part of the description language, "" if there is none."""
    place = ""
    trace = error.__traceback__
    while trace is not None:
        if not is_inside(trace.tb_frame.f_globals.get("__name__", "")):
            place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def hint(error: BaseException) -> str:
    """What to try, where the error is a misuse of what a role is given; else ""."""
    if isinstance(error, AttributeError) and is_inside(type(error.obj).__module__):
        if hasattr(error.obj, "__enter__"):
            return "enter it first: with ... as stage:"
        meant = meant_by(error.name or "", type(error.obj).__name__)
        if meant:
            return meant
        public = [name for name in dir(error.obj) if not name.startswith("_")]
        near = difflib.get_close_matches(error.name or "", public, n=1, cutoff=0.6)
        return f"did you mean {near[0]}?" if near else f"it has {', '.join(public)}"
    if isinstance(error, NameError) and (meant := meant_by(error.name or "")):
        return meant
    called = _called_function(error)
    return f"check the arguments of this call of {called}" if called else ""


def _called_function(error: BaseException) -> str:
    """What of ours the author called, if that is where the error came from, else ""."""
    called = ""
    trace = error.__traceback__
    while trace is not None:
        if not is_inside(trace.tb_frame.f_globals.get("__name__", "")):
            called = ""
        elif not called and "<locals>" not in trace.tb_frame.f_code.co_qualname:
            called = trace.tb_frame.f_code.co_qualname.removesuffix(".__init__")
        trace = trace.tb_next
    return called


def require_plain(body: Callable[..., object], who: str, head: str, *arguments: object) -> None:
    """An author's function can be called with these arguments and does not suspend; else ProtocolError."""
    if inspect.isgeneratorfunction(body) or inspect.iscoroutinefunction(body):
        raise _suspends(who, author_line())
    try:
        inspect.signature(body).bind(*arguments)
    except TypeError as error:
        raise author_error(f"{who} cannot be called: {error}", correction=f"write {head}") from None
    except ValueError:
        pass  # a function that is not written in Python says nothing about its arguments


def first_line(body: Callable[..., object]) -> str:
    """Where an author's function begins, at its decorator; "" for what is not written in Python."""
    code = getattr(body, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""


def _suspends(who: str, place: str) -> ProtocolError:
    return ProtocolError(
        f"{who} is a generator or a coroutine",
        place=place,
        cause="a role is recorded by calling it once, from start to end: it cannot suspend",
        correction="write it as a plain function, without yield, async or await",
    )


def run(body: Callable[[], object], who: str) -> None:
    """Run an author's function; whatever it raises that is not ours is reported with the author's line."""
    try:
        returned = body()
    except (*NOT_OURS, SystemExit):
        raise
    except BaseException as error:
        raise ProtocolError(
            f"{who} raised {in_words(error)}", place=raised_at(error), correction=hint(error)
        ) from error
    if inspect.isgenerator(returned) or inspect.iscoroutine(returned):
        returned.close()
        code = returned.gi_code if inspect.isgenerator(returned) else returned.cr_code
        raise _suspends(f"what {who} returns", f"{code.co_filename}:{code.co_firstlineno}")
