"""A random kernel as PTX, in the many ways in which compilers and authors write the same thing.

Every choice is the seed's: how a warp finds its number and its code, how one lane is chosen, how a wait spins, how
stage and parity are kept, how addresses are made, and whether conditions are branches, guards or selections.
"""

import random

from tests.support.random_kernels import (
    LANES,
    TILE,
    Arrive,
    Copy,
    Fetch,
    Flag,
    Group,
    Last,
    Loop,
    Named,
    Only,
    RandomKernel,
    Signal,
    State,
    Step,
    Touch,
    Wait,
)

NAME = "random_kernel"
UNLIKE = "// not alike in all lanes"  #: what they store to one place
_STATE = "%d899"  #: the register of the state for which a warp waits
_HEAD = f"""\
.version 8.3
.target sm_90a
.address_size 64
.extern .shared .align 128 .b8 dynamic[];
.visible .entry {NAME}(.param .u64 source, .param .u32 one, .param .u32 unknown)
{{
.reg .pred %p<400>; .reg .b16 %h<4>; .reg .b32 %r<900>; .reg .b64 %d<900>;
.shared .align 8 .b8 bars[1024];
.shared .align 128 .b8 tiles[4096];
.shared .align 4 .b32 counted;
.shared .align 4 .b32 flag;
.shared .align 4 .b32 same;
"""


def ptx_of(kernel: RandomKernel, seed: int) -> str:
    """The kernel's PTX. It takes a pointer to global memory, a word that is 1, and one that is not given."""
    return _Writer(kernel, random.Random(seed)).text()


class _Writer:
    def __init__(self, kernel: RandomKernel, rng: random.Random) -> None:
        self._kernel, self._rng = kernel, rng
        self._also = random.Random(str(kernel))
        self._lines: list[str] = []
        self._count = {"p": 0, "r": 0, "d": 0, "label": 0}
        self._loop: tuple[str, str, str] | None = None  #: registers of the iteration, the stage and the parity
        self._iteration = 0  #: where the loop is unrolled
        self._generic = rng.random() < 0.2  #: addresses of barriers are generic

    def text(self) -> str:
        """All of it."""
        kernel, rng = self._kernel, self._rng
        self._thread = self._new("r")
        self._say(f"mov.u32 {self._thread}, %tid.x;")
        self._lane = self._new("r")
        how = rng.randrange(3)
        self._say(
            (f"and.b32 {self._lane}, {self._thread}, 31;", f"mov.u32 {self._lane}, %laneid;",
             f"rem.u32 {self._lane}, {self._thread}, 32;")[how]
        )  # fmt: skip
        self._warp = self._new("r")
        self._say(f"shr.u32 {self._warp}, {self._thread}, 5;" if rng.random() < 0.7 else
                  f"div.u32 {self._warp}, {self._thread}, 32;")  # fmt: skip
        if rng.random() < 0.4:  # as CUTLASS says that it is the same in all lanes
            same = self._new("r")
            self._say(f"shfl.sync.idx.b32 {same}, {self._warp}, 0, 31, -1;")
            self._warp = same
        if self._also.random() < 0.1:
            self._same()
        self._init()
        if self._also.random() < 0.1:
            self._say("setmaxnreg.dec.sync.aligned.u32 64;")
        self._dispatch(len(kernel.warps))
        return _HEAD + "".join(f"{line}\n" for line in self._lines) + "ret;\n}\n"

    def _say(self, *lines: str) -> None:
        self._lines += lines

    def _new(self, kind: str) -> str:
        self._count[kind] += 1
        return f"%{kind}{self._count[kind]}"

    def _label(self) -> str:
        self._count["label"] += 1
        return f"$L_{self._count['label']}"

    def _same(self) -> None:
        """Lanes of the first warp store what is made of a word that is not given, and the lane or not, to one place."""
        over, value, other = self._label(), self._new("r"), self._new("p")
        self._say(
            f"setp.ne.s32 {other}, {self._warp}, 0;", f"@{other} bra {over};", f"ld.param.u32 {value}, [unknown];"
        )
        if self._also.random() < 0.5:
            self._say(f"add.s32 {value}, {value}, {self._lane};", UNLIKE)
        self._say(f"st.shared.u32 [same], {value};", f"{over}:")

    def _init(self) -> None:
        rng, first, done = self._rng, self._new("p"), self._label()
        self._say(f"setp.ne.s32 {first}, {self._thread}, 0;", f"@{first} bra {done};")
        for ring, count in enumerate(self._kernel.counts):
            for stage in range(self._kernel.stages):
                offset = 8 * (ring * self._kernel.stages + stage)
                number: str = str(count)
                if rng.random() < 0.3:
                    number = self._new("r")
                    self._say(f"mov.b32 {number}, {count};")
                at = self._new("r")
                self._say(f"mov.u32 {at}, bars;", f"mbarrier.init.shared::cta.b64 [{at}+{offset}], {number};")
        if any(isinstance(step, Last) for steps in self._kernel.warps for step in steps):
            self._say("st.shared.u32 [counted], 0;")
        if any(isinstance(step, Flag) for steps in self._kernel.warps for step in steps):
            self._say("st.shared.u32 [flag], 0;")
        if rng.random() < 0.7:
            self._say("fence.mbarrier_init.release.cluster;")
        self._say(f"{done}:", "bar.sync 0;" if rng.random() < 0.7 else "barrier.sync.aligned 0;")

    def _dispatch(self, warps: int) -> None:
        rng, end = self._rng, self._label()
        labels = [self._label() for _ in range(warps)]
        how = rng.randrange(3)
        if how == 0:
            table = self._label().replace("$L", "$T")
            self._say(f"{table}: .branchtargets {', '.join(labels)};", f"brx.idx {self._warp}, {table};")
        else:
            for n in range(warps - 1):
                chosen = self._new("p")
                if how == 1:
                    self._say(f"setp.eq.s32 {chosen}, {self._warp}, {n};")
                else:
                    self._say(f"setp.lt.u32 {chosen}, {self._thread}, {LANES * (n + 1)};")
                self._say(f"@{chosen} bra {labels[n]};")
            self._say(f"bra.uni {labels[-1]};")
        order = list(range(warps))
        rng.shuffle(order)
        for n in order:
            self._say(f"{labels[n]}:")
            self._steps(self._kernel.warps[n])
            self._say("exit;" if rng.random() < 0.2 else f"bra {end};")
        self._say(f"{end}:")

    def _steps(self, steps: tuple[Step, ...]) -> None:
        over = ""  #: where the step after a `Last` ends
        for step in steps:
            if over:
                assert isinstance(step, Touch)
                self._touch(step)
                self._say(f"{over}:")
                over = ""
                continue
            match step:
                case Last():
                    over = self._last(step)
                case Loop():
                    self._write_loop(step)
                case Only():
                    self._only(step)
                case Wait() | State():
                    self._wait(step)
                case Arrive():
                    self._arrive(step)
                case Copy():
                    self._copy(step)
                case Touch():
                    self._touch(step)
                case Fetch() | Group() | Signal():
                    self._fetch(step)
                case Flag():
                    self._flag(step)
                case Named():
                    self._named(step)

    def _flag(self, step: Flag) -> None:
        at, found, less, again = self._new("r"), self._new("r"), self._new("p"), self._label()
        fence, order = self._also.choice((((), "%s.cta"), (("fence.acq_rel.cta;",), "relaxed.cta")))
        self._say(f"mov.u32 {at}, flag;")
        if step.waits:
            test = "ne.s32" if step.equal else "lt.s32"
            self._say(f"{again}:", f"ld.{order.replace('%s', 'acquire')}.shared.u32 {found}, [{at}];",
                      f"setp.{test} {less}, {found}, {step.value};", f"@{less} bra {again};", *fence)  # fmt: skip
        else:
            self._say("bar.warp.sync -1;", *fence)
            self._by(1, [f"st.{order.replace('%s', 'release')}.shared.u32 [{at}], {step.value};"])

    def _last(self, step: Last) -> str:
        """Where a warp continues that does not come last; the word is told to its lanes in one of two ways."""
        rng, over, fence = self._rng, self._label(), "fence.acq_rel.cta;"
        counted, found, told, is_last = (self._new(kind) for kind in "rrrp")
        self._say(fence, "bar.warp.sync -1;", f"mov.u32 {counted}, counted;", f"mov.b32 {found}, 99;")
        self._by(1, [f"atom.shared.{rng.choice(('add', 'acq_rel.cta.add'))}.u32 {found}, [{counted}], 1;"])
        self._say(f"setp.eq.u32 {is_last}, {found}, {step.others};")
        if rng.random() < 0.5:
            self._say(f"vote.sync.any.pred {is_last}, {is_last}, -1;")
        else:
            self._say(f"redux.sync.min.u32 {told}, {found}, -1;", f"setp.eq.u32 {is_last}, {told}, {step.others};")
        self._say(fence, "bar.warp.sync -1;", f"@!{is_last} bra {over};")
        return over

    def _write_loop(self, loop: Loop) -> None:
        rng, stages = self._rng, self._kernel.stages
        if rng.random() < 0.2:  # unrolled
            for n in range(loop.trips):
                self._iteration = n
                self._steps(loop.body)
            self._iteration = 0
            return
        i, stage, parity = (self._new("r") for _ in range(3))
        trips: str = str(loop.trips)
        if rng.random() < 0.4:
            word = self._new("r")
            trips = self._new("r")
            self._say(f"ld.param.u32 {word}, [one];", f"mul.lo.s32 {trips}, {word}, {loop.trips};")
        kept = rng.random() < 0.5
        self._say(f"mov.b32 {i}, 0;")
        if kept:
            self._say(f"mov.b32 {stage}, 0;", f"mov.b32 {parity}, 0;")
        begin = self._label()
        self._say(f"{begin}:")
        if not kept:
            turns = self._new("r")
            self._say(f"rem.u32 {stage}, {i}, {stages};", f"div.u32 {turns}, {i}, {stages};",
                      f"and.b32 {parity}, {turns}, 1;")  # fmt: skip
        self._loop = i, stage, parity
        self._steps(loop.body)
        self._loop = None
        if kept:
            self._advance(stage, parity)
        more = self._new("p")
        self._say(f"add.s32 {i}, {i}, 1;", f"setp.lt.s32 {more}, {i}, {trips};", f"@{more} bra {begin};")

    def _advance(self, stage: str, parity: str) -> None:
        """The next stage, and the other parity after the last one."""
        wraps, stages = self._new("p"), self._kernel.stages
        how = self._rng.randrange(3)
        self._say(f"add.s32 {stage}, {stage}, 1;", f"setp.eq.s32 {wraps}, {stage}, {stages};")
        if how == 0:
            self._say(f"selp.b32 {stage}, 0, {stage}, {wraps};")
            flip = self._new("r")
            self._say(f"selp.b32 {flip}, 1, 0, {wraps};", f"xor.b32 {parity}, {parity}, {flip};")
        elif how == 1:
            self._say(f"@{wraps} xor.b32 {parity}, {parity}, 1;", f"@{wraps} mov.b32 {stage}, 0;")
        else:
            over = self._label()
            self._say(f"@!{wraps} bra {over};", f"mov.b32 {stage}, 0;", f"xor.b32 {parity}, {parity}, 1;", f"{over}:")

    def _only(self, step: Only) -> None:
        if self._loop is None:
            if (self._iteration == step.iteration) == step.inside:
                self._steps(step.body)
            return
        skip, over = self._new("p"), self._label()
        compare = "ne" if step.inside else "eq"
        self._say(f"setp.{compare}.s32 {skip}, {self._loop[0]}, {step.iteration};", f"@{skip} bra {over};")
        self._steps(step.body)
        self._say(f"{over}:")

    def _address(self, base: str, group: int, nbytes: int, *, generic: bool = False) -> str:
        """The operand ``[register+offset]`` of a barrier or a tile of the stage."""
        rng, stages = self._rng, self._kernel.stages
        at = self._new("r")
        if self._loop is None:
            stage = self._iteration % stages
            self._say(f"mov.u32 {at}, {base};")
            offset = nbytes * (group * stages + stage)
        else:
            stage_register, start = self._loop[1], self._new("r")
            self._say(f"mov.u32 {start}, {base};")
            if rng.random() < 0.5:
                self._say(f"mad.lo.s32 {at}, {stage_register}, {nbytes}, {start};")
            else:
                shifted = self._new("r")
                self._say(f"shl.b32 {shifted}, {stage_register}, {nbytes.bit_length() - 1};",
                          f"add.s32 {at}, {start}, {shifted};")  # fmt: skip
            offset = nbytes * group * stages
        if generic:
            wide, everywhere = self._new("d"), self._new("d")
            self._say(f"cvt.u64.u32 {wide}, {at};", f"cvta.shared.u64 {everywhere}, {wide};")
            return f"[{everywhere}+{offset}]"
        return f"[{at}+{offset}]"

    def _bar(self, ring: int) -> tuple[str, str]:
        """State space and operand of a barrier."""
        return ("", self._address("bars", ring, 8, generic=True)) if self._generic else (
            self._rng.choice((".shared::cta", ".shared")), self._address("bars", ring, 8)
        )  # fmt: skip

    def _wait(self, step: Wait | State) -> None:
        rng = self._rng
        if isinstance(step, State):
            self._state(step)
            return
        if self._loop is None:
            parity: str = str(self._iteration // self._kernel.stages & 1 ^ step.flip)
            if rng.random() < 0.5:
                held = self._new("r")
                self._say(f"mov.b32 {held}, {parity};")
                parity = held
        else:
            parity = self._loop[2]
            if step.flip:
                flipped = self._new("r")
                self._say(f"xor.b32 {flipped}, {parity}, 1;" if rng.random() < 0.7 else
                          f"sub.s32 {flipped}, 1, {parity};")  # fmt: skip
                parity = flipped
        space, at = self._bar(step.ring)
        test = rng.choice(("try_wait", "try_wait", "test_wait"))
        limit = ", 10000000" if test == "try_wait" and rng.random() < 0.3 else ""
        call = f"mbarrier.{test}.parity{space}.b64"
        again, done, ready = self._label(), self._label(), self._new("p")
        how = rng.randrange(5)
        votes = self._also.choice(("any", "all", *[""] * 8))
        vote = [f"vote.sync.{votes}.pred {ready}, {ready}, -1;"] if votes else []
        if how == 0:
            self._say(f"{again}:", f"{call} {ready}, {at}, {parity}{limit};", *vote, f"@!{ready} bra {again};")
        elif how == 1:
            self._say(f"{again}:", f"{call} {ready}, {at}, {parity}{limit};", *vote, f"@{ready} bra.uni {done};",
                      f"bra.uni {again};", f"{done}:")  # fmt: skip
        elif how == 2:  # an answer as a word, as Triton and CUTLASS have it
            word, no = self._new("r"), self._new("p")
            self._say(f"{again}:", f"{call} {ready}, {at}, {parity}{limit};", *vote, f"selp.b32 {word}, 1, 0, {ready};",
                      f"setp.eq.s32 {no}, {word}, 0;", f"@{no} bra {again};")  # fmt: skip
        elif how == 3:  # one try, and a loop where it fails
            self._say(f"{call} {ready}, {at}, {parity}{limit};", *vote, f"@{ready} bra {done};", f"{again}:",
                      f"{call} {ready}, {at}, {parity};", f"@!{ready} bra {again};", f"{done}:")  # fmt: skip
        else:
            self._say("{", ".reg .pred complete;", "waiting:", f"{call} complete, {at}, {parity}{limit};",
                      "@complete bra.uni finished;", "bra.uni waiting;", "finished:", "}")  # fmt: skip

    def _chosen(self, lanes: int) -> str:
        """A predicate that is true in this many lanes of the warp."""
        rng, chosen = self._rng, self._new("p")
        if lanes == 1 and rng.random() < 0.5:
            who = self._new("r")
            self._say(f"elect.sync {who}|{chosen}, -1;")
        elif lanes == 1:
            which = rng.choice((0, 0, 5, 31))
            self._say(f"setp.eq.s32 {chosen}, {self._lane}, {which};")
        else:
            self._say(f"setp.lt.u32 {chosen}, {self._lane}, {lanes};")
        return chosen

    def _by(self, lanes: int, lines: list[str]) -> None:
        """Lines that some lanes execute: behind a branch, or each under a guard."""
        if lanes == LANES:
            self._say(*lines)
            return
        chosen = self._chosen(lanes)
        if self._rng.random() < 0.5:
            self._say(*(f"@{chosen} {line}" for line in lines))
        else:
            over = self._label()
            self._say(f"@!{chosen} bra {over};", *lines, f"{over}:")

    def _arrive(self, step: Arrive) -> None:
        rng = self._rng
        space, at = self._bar(step.ring)
        if step.nbytes:
            if space and rng.random() < 0.4:
                self._by(1, [f"mbarrier.expect_tx.relaxed.cta{space}.b64 {at}, {step.nbytes};"])
                self._by(1, [f"mbarrier.arrive{space}.b64 _, {at};"])
            else:
                self._by(1, [f"mbarrier.arrive.expect_tx{space}.b64 _, {at}, {step.nbytes};"])
            return
        count = f", {step.count}" if step.count > 1 or rng.random() < 0.2 else ""
        token = _STATE if step.told else self._new("d") if rng.random() < 0.4 else "_"
        release = rng.choice(("", "", ".release.cta")) if space else ""
        self._by(step.lanes, [f"mbarrier.arrive{release}{space}.b64 {token}, {at}{count};"])

    def _state(self, step: State) -> None:
        space, at = self._bar(step.ring)
        again, ready, wait = self._label(), self._new("p"), self._rng.choice(("try_wait", "test_wait"))
        self._say(f"{again}:", f"mbarrier.{wait}{space}.b64 {ready}, {at}, {_STATE};", f"@!{ready} bra {again};")

    def _copy(self, step: Copy) -> None:
        tile, bar = self._address("tiles", step.tile, TILE), self._address("bars", step.ring, 8)
        source, place = self._new("d"), self._new("d")
        self._say(f"ld.param.u64 {source}, [source];", f"cvta.to.global.u64 {place}, {source};")
        copy = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
        self._by(1, [f"{copy} {tile}, [{place}], {TILE}, {bar};"])

    def _touch(self, step: Touch) -> None:
        operand = self._address("tiles", step.tile, TILE)
        register, _, offset = operand[1:-1].partition("+")
        own, value = self._new("r"), self._new("r")
        self._say(f"mad.lo.s32 {own}, {self._lane}, 4, {register};")
        if step.write:
            self._say(f"add.s32 {value}, {self._thread}, 7;", f"st.shared.b32 [{own}+{offset}], {value};")
        else:
            self._say(f"ld.shared.b32 {value}, [{own}+{offset}];")
            sink, place = self._new("d"), self._new("d")
            self._say(f"ld.param.u64 {sink}, [source];", f"cvta.to.global.u64 {place}, {sink};",
                      f"mad.wide.u32 {place}, {self._thread}, 4, {place};",
                      f"st.global.b32 [{place}+1048576], {value};")  # fmt: skip

    def _fetch(self, step: Fetch | Group | Signal) -> None:
        if isinstance(step, Group):
            self._say("cp.async.commit_group;" if step.left < 0 else f"cp.async.wait_group {step.left};")
            return
        if isinstance(step, Signal):
            space, at = self._bar(step.ring)
            self._say(f"cp.async.mbarrier.arrive.noinc{space}.b64 {at};")
            return
        register, _, offset = self._address("tiles", step.tile, TILE)[1:-1].partition("+")
        own, source, place = self._new("r"), self._new("d"), self._new("d")
        self._say(f"mad.lo.s32 {own}, {self._lane}, 4, {register};", f"ld.param.u64 {source}, [source];",
                  f"cvta.to.global.u64 {place}, {source};")  # fmt: skip
        self._say(f"cp.async.ca.shared.global [{own}+{offset}], [{place}], 4;")

    def _named(self, step: Named) -> None:
        word = self._rng.choice(("bar", "barrier"))
        aligned = ".aligned" if word == "barrier" and self._rng.random() < 0.5 else ""
        kind = "sync" if step.waits else "arrive"
        self._say(f"{word}.{kind}{aligned} {step.barrier}, {step.threads};")
