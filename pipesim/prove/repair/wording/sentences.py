"""Corrections in words: one sentence each, which says who does what, where, instead of what."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import PurePath

from pipesim.model.groups import (
    COMMITS,
    ENGINE_ACCESSES,
    MAY_ACQUIRE,
    MEETINGS,
    ON_NAMED_BARRIER,
    PARITY_WAITS,
    SETS_UP,
    WRITES_MEMORY,
)
from pipesim.model.ops import Engine, Op, Order, Scope, order_of, scope_of
from pipesim.model.tables import SourceInstruction
from pipesim.prove.repair.kinds import OF_COPIES, ROWS, SCOPES, TO_THE_OTHER, FencePlace, Placement, Repair, RepairKind

_GROUPS = {Engine.BULK: "bulk stores", Engine.CP_ASYNC: "cp.asyncs", Engine.WGMMA: "wgmmas", Engine.TCGEN05: "MMAs"}
_COMMIT = {
    Engine.BULK: "cp.async.bulk.commit_group",
    Engine.CP_ASYNC: "cp.async.commit_group",
    Engine.WGMMA: "wgmma.commit_group",
}
_NEIGHBOURS = {0: "its own CTA", 1: "the next CTA of the cluster", -1: "the CTA of the cluster before its own"}
_FENCED = {
    FencePlace.AFTER_READS: "after its reads, before it signals any other agent",
    FencePlace.BEFORE_WRITES: "after its waits, before it writes",
    FencePlace.AFTER_WRITES: "after its writes, before it signals any other agent",
    FencePlace.BEFORE_TRANSFERS: "after its waits, before it starts the transfer",
}
_VERBS = {
    Op.ARRIVE: "the arrive", Op.CP_ASYNC_ARRIVE: "the cp.async arrive", Op.WAIT: "the wait", Op.EXPECT_TX: "the expect",
    Op.COMMIT: "the commit", Op.COMMIT_MULTICAST: "the commit", Op.INIT: "the init", Op.INVAL: "the inval",
    Op.BAR_SYNC: "the bar_sync", Op.BAR_ARRIVE: "the bar_arrive", Op.FENCE: "the fence",
    Op.WAIT_GROUP: "the wait for groups", Op.READ: "the read", Op.WRITE: "the write", Op.TMA_LOAD: "the copy",
    Op.TRANSFER_READ: "the transfer", Op.TRANSFER_WRITE: "the transfer", Op.CLUSTER_ARRIVE: "the sync of the cluster",
    Op.CLUSTER_WAIT: "the cluster wait", Op.COMPLETE_TX: "the complete_tx", Op.ARRIVE_DROP: "the arrive_drop",
}  # fmt: skip


def sentence(repair: Repair) -> str:
    """The change in one sentence."""
    parts = repair, *repair.also
    if repair.kind is RepairKind.ARRIVE and RepairKind.DROP in (each.kind for each in repair.also):
        one, counted = repair.also
        whose = sentence(replace(repair, also=())).replace(" whenever", f" instead of {one.role}, whenever")
        counts = f"; it has a count of {counted.value:,} instead of {counted.was:,}"
        return whose + counts * (counted.value != counted.was)
    if repair.kind is RepairKind.MOVE and repair.also and repair.past.op == Op.BAR_SYNC == repair.also[0].at.op:
        return f"{sentence(replace(repair, past=repair.also[0].past, also=()))}, with the bar_sync before it"
    if len({each.value for each in parts}) > 1 and {each.kind for each in parts} == {RepairKind.PHASES}:
        by_parity: dict[int, list[str]] = {}
        for each in parts:
            by_parity.setdefault(each.value, []).append(_of_stage(each))
        whose = ", ".join(f"{_all_of(names)} with parity {parity}" for parity, names in by_parity.items())
        return f"the first lap of waits is for {whose}, alternating in each later lap"
    if any(each.value != repair.value for each in parts):
        *most, end = (sentence(replace(each, also=())) for each in parts)
        return f"{', '.join(most)}{',' * (len(most) > 1)} and {end}"
    *others, last = repair.roles
    whose = f"each of {', '.join(others)} and {last}" if others else last
    at = repair.at._replace(about=_all_of(each.at.about for each in parts if each.at.op == repair.at.op))
    past = repair.past._replace(about=_all_of(each.past.about for each in parts))
    group = _all_of(map(_of_stage, parts)) if repair.also and "," not in repair.group else repair.group
    said, r = _SENTENCES[repair.kind], replace(repair, role=whose, group=group, at=at, past=past)
    if not isinstance(said, str):
        return said(r)
    words = instruction(at) if at.op else ""
    return said.format(
        r=r, role=r.role, group=r.group, value=r.value, was=r.was, at=words, named=_meeting_words(r.group)
    )


def _of_stage(repair: Repair) -> str:
    """The group, or the one barrier of it of which a correction is."""
    one = repair.kind is RepairKind.PHASES and repair.was >= 0
    return f"{repair.group}[{repair.was}]" if one else repair.group


def _all_of(names: Iterable[str]) -> str:
    return " and ".join(dict.fromkeys(name for name in names if name))


def instruction(at: SourceInstruction) -> str:
    """``the arrive on empty``, ``the read of tile``, ``the wait for its wgmmas``."""
    op = Op(at.op)
    said = _VERBS.get(op, f"the {op.name.lower()}")
    if op == Op.WAIT_GROUP:
        return f"the wait for its {_GROUPS[Engine(int(at.about))]}"
    if op == Op.COMMIT and at.about.isdecimal():
        return f"the commit of its {_GROUPS[Engine(int(at.about))]}"
    if op in ENGINE_ACCESSES and at.about:
        return f"{said} {'from' if op == Op.TRANSFER_READ else 'into'} {at.about}"
    if not at.about or op == Op.FENCE:
        return said
    if op in PARITY_WAITS:
        return f"{said} for {at.about}"
    return f"{said} {'of' if op == Op.READ else 'to' if op in WRITES_MEMORY else 'on'} {at.about}"


def _with_line(at: SourceInstruction) -> str:
    """The instruction with its line."""
    return f"{instruction(at)} ({PurePath(at.line).name})" if at.line else instruction(at)


def _meeting_words(group: str) -> str:
    """``named barrier 1``, ``named barriers 1 and 2``, ``__syncthreads()``."""
    numbers = group.split(",")
    if numbers == ["0"]:
        return "__syncthreads()"
    if len(numbers) == 1:
        return f"named barrier {numbers[0]}"
    return f"named barriers {', '.join(numbers[:-1])} and {numbers[-1]}"


def _lanes(r: Repair) -> str:
    said = instruction(r.at) if r.at.op else f"its arrives on {' and '.join(r.group.split(','))}"
    if r.value == 1:
        return f"{r.role}: put {said} inside elect_one(): all {r.was} lanes execute it"
    return f"{r.role}: put {said} outside elect_one(): each of the {r.value} lanes is counted"


def _depth(r: Repair) -> str:
    if r.value < 0:
        return f"{r.role} leaves one of its groups fewer pending at {_with_line(r.at)}"
    left = f"no more than {r.value:,}" if r.value else "none"
    after = "" if r.value else ", which serialises them"
    where = f" at {_with_line(r.at)}" if r.at.op else ""
    return f"{r.role} leaves {left} of its groups pending when it waits for them{where}, instead of {r.was:,}{after}"


def _fence(r: Repair) -> str:
    return f"{r.role or 'every role'} executes fence.proxy.async {_FENCED[FencePlace(r.value)]}"


def _drop(r: Repair) -> str:
    if r.value == 3:
        return f"{r.role} expects the bytes of a stage together, with one arrive on {r.group}, not part by part"
    if r.value in (2, 4):
        does = "commits to" if r.at.op in COMMITS else "arrives on"
        return f"{r.role} {does} {r.group} once for each stage, after its last use of it, not after each"
    return f"{r.role} omits {'its second arrive' if r.value else 'its arrive'} on {r.group}"


def _later(r: Repair) -> str:
    if r.at.op == Op.INVAL:
        return f"{r.role} executes its invals last, after all else that it does"
    if r.group.replace(",", "").isdecimal():
        return f"{r.role or 'every role'} arrives at {_meeting_words(r.group)} only after its reads and writes"
    if r.value >= 0:
        return f"{r.role} arrives on {r.group} only after it has waited for its {_GROUPS[Engine(r.value)]}"
    return f"{r.role} arrives on {r.group} only after its reads and writes of the stage"


def _arrive(r: Repair) -> str:
    if r.was == Placement.ONE_WARP.value:
        after = f"after {_with_line(r.at)}" if r.at.op else "when it has finished with it"
        one = f"one in {r.value} warps" if r.value else "one warp"
        return f"{one} of {r.role} arrives on {r.group} for every stage, {after}"
    does = "commits to" if r.value == Engine.TCGEN05 else "arrives on"
    if r.at.op:
        which = "the last execution of " if r.was == Placement.LAST.value else ""
        return f"{r.role} {does} {r.group} for every stage: also after {which}{_with_line(r.at)}"
    if r.was == Placement.LAST.value:
        return f"{r.role} {does} {r.group} after its last use of each stage of {r.past.about}"
    whose = f" of {r.past.about}" if r.past.about else ""
    return f"{r.role} {does} {r.group} whenever it has finished with a stage{whose}"


def _group_wait(r: Repair) -> str:
    left = f", leaving no more than {r.value:,} pending," if r.value else ""
    place = f"before {_with_line(r.at)}" if r.was < 0 else f"after their commit ({PurePath(r.at.line).name})"
    if r.past.op:
        place += f", before {instruction(r.past)}"
    place += ", which serialises them" * r.serialises
    return f"{r.role} waits for its {_GROUPS[Engine(int(r.group))]}{left} {place}"


def _close(r: Repair) -> str:
    commit = _COMMIT[Engine(int(r.group))]
    if r.value:
        return f"{r.role} executes {commit} in every iteration, also where it has nothing to copy"
    return f"{r.role} executes {commit} after its {_GROUPS[Engine(int(r.group))]}, before it waits for them"


def _sync(r: Repair) -> str:
    where = "after" if r.was == 1 else "once, before it first executes" if r.was == 2 else "before"
    if r.group == "0":
        return f"{r.role} executes __syncthreads() {where} {_with_line(r.at)}"
    return f"{r.role} executes bar_sync at {_meeting_words(r.group)} ({r.value:,} threads) {where} {_with_line(r.at)}"


def _warp_sync(r: Repair) -> str:
    return f"the lanes of the warp meet at __syncwarp() {'after' if r.was == 1 else 'before'} {_with_line(r.at)}"


def _number(r: Repair) -> str:
    if r.past.about:
        return f"use a named barrier for each slot of {r.past.about}, {r.group} + slot, instead of {r.group} for all"
    if r.was < -1:
        own = f"a named barrier of its own, {r.value}"
        return f"{r.role} meets at {own} ({-r.was:,} threads), not at named barrier {r.group} beside others"
    return f"give each group of warps that meets at named barrier {r.group} a number of its own, from {r.value} on"


def _prime(r: Repair) -> str:
    if not r.value:
        stage = "every stage" if r.was < 0 else f"stage {r.was}"
        too = ", as others of its role do" if r.past.about else ""
        return f"{r.past.about or r.role} arrives once on {stage} of {r.group} before it begins{too}"
    when = f"after {_with_line(r.at)}, once for each meeting there" if r.at.op else "once before it begins"
    when += ", with those of its warps that do not wait there" if r.was == 1 else ""
    return f"{r.role} arrives at {_meeting_words(r.group)} ({r.value:,} threads) {when}"


def _both(r: Repair) -> str:
    waited, given = r.group.split(",")
    return f"{r.role} waits for {waited} and arrives on {given} before {_with_line(r.at)}: no role does"


def _on_end(r: Repair) -> str:
    if r.value == Engine.CP_ASYNC:
        return f"{r.role} arrives on {r.group} by cp.async.mbarrier.arrive.noinc: when its copies have ended"
    return f"{r.role} commits to {r.group} instead of the arrive: when its MMAs have ended"


def _after_init(r: Repair) -> str:
    if r.value:
        return f"{r.role} executes fence.mbarrier_init after its inits, before the barrier of the CTA or cluster"
    if r.was > 0:
        whose = "cluster (barrier.cluster.arrive and .wait)" if r.was > 1 else "CTA"
        return f"after the inits and their fence comes a barrier of all threads of the {whose}"
    return "after the inits come fence.mbarrier_init and a barrier of all threads of the CTA or cluster"


def _acquire(r: Repair) -> str:
    if r.was == Placement.WRITTEN.value:
        return f"{r.role} waits for {r.group} before it reads {r.at.about}, for the phase in which that is signalled"
    if r.was == Placement.FIRST.value:
        return f"{r.role} waits for {r.group}, with parity {r.value}, once: before it first uses {r.at.about}"
    if r.was == Placement.VISIT.value and not r.past.about:
        place = "it uses the bytes that this is about"
    elif r.was == Placement.VISIT.value:
        place = f"all the work that it signals on {r.past.about}"
    elif r.at.op:
        place = "each round of " * (r.was == Placement.PARTLY.value) + _with_line(r.at)
    else:
        place = f"the work that it signals on {r.past.about}" if r.past.about else "it uses a stage"
    return f"{r.role} waits for {r.group}, with parity {r.value} in the first lap, before {place}"


def _stronger(r: Repair) -> str:
    if r.past.op:
        was = ".cta" if scope_of(r.was) == Scope.CTA else f".{order_of(r.was).name.lower()}"
        return f"{r.role}: let the atomic on {r.group} be .acq_rel at gpu scope instead of {was}: its answer is used"
    does = "acquire" if r.at.op in MAY_ACQUIRE else "release"
    scope = f" at {SCOPES[r.value].name.lower()} scope" if r.value else ""
    was = ".relaxed" if order_of(r.was) == Order.RELAXED else ".cta"
    what = instruction(r.at._replace(about=r.group)) if r.group else instruction(r.at)
    return f"{r.role}: let {what} {does}{scope} instead of {was}"


def _value(r: Repair) -> str:
    than = f"that is {abs(r.value):,} {'larger' if r.value > 0 else 'smaller'}"
    return f"{r.role} {'waits for' if r.at.op == Op.WAIT else 'writes'} a value of {r.group} {than}"


def _awaited(r: Repair) -> str:
    does = "waits for" if r.at.op == Op.WAIT else "takes" if r.value else "writes"
    return f"{r.role} {does} {r.past.about}"


def _word_move(r: Repair) -> str:
    if r.at.op == Op.WAIT:
        does = "meets the other CTAs at" if r.value else "waits for"
        return f"{r.role} {does} {r.group} before {_with_line(r.past)}, not after it"
    return f"{r.role} writes {r.group} only after {_with_line(r.past)}"


def _word_added(r: Repair) -> str:
    does = f"gives {r.group} back after" if r.was == 0 else f"writes {r.group} after"
    does = f"waits for {r.group} before" if r.value else does
    return f"{r.role} {does} {_with_line(r.at)}"


def _move(r: Repair) -> str:
    if r.value == 1:
        moved = _all_of(instruction(each.at) for each in (*r.also, r) if each.at.op != r.at.op or each is r)
        return f"{r.role} executes {moved} before {_with_line(r.past)}, not after it"
    if r.is_after_uses:
        last = f"use of {r.past.about}" if r.past.about else _with_line(r.past)[4:]
        return f"{r.role} executes {instruction(r.at)} only after its last {last}"
    if r.past.op in SETS_UP - MEETINGS and r.at.op not in MEETINGS:
        return f"{r.role} executes {_with_line(r.past)} before {instruction(r.at)}"
    if r.was == 1:
        return f"{r.role} executes {instruction(r.at)} one iteration later, after the next {_with_line(r.past)[4:]}"
    return f"{r.role} executes {instruction(r.at)} only after {_with_line(r.past)}"


def _tail(r: Repair) -> str:
    if not r.value:
        when = f"after it first executes {_with_line(r.at)}" if r.at.op else "at its end"
        return f"{r.role} arrives on {r.group} once {when}: no role does"
    if r.value == 2:
        return f"{r.role} arrives on {r.group} once more, after what it writes last: no signal follows that"
    return f"{r.role} arrives on {r.group} for its last stages as well, when their transfers have ended"


def _other_group(r: Repair) -> str:
    match r.at.op:
        case Op.TMA_LOAD:
            does, to = "completes its copy", "on "
        case Op.COMMIT:
            does, to = "commits", "to "
        case op if op in PARITY_WAITS:
            does, to = "waits", "for "
        case Op.EXPECT_TX:
            does, to = "expects its bytes", "on "
        case _ if any(each.at.op == Op.TMA_LOAD for each in r.also):
            does, to = "arrives, and completes its copy,", "on "
        case _:
            does, to = "arrives", "on "
    return f"{r.role} {does} {to}{r.past.about}, not {to}{r.at.about}"


def _swap(r: Repair) -> str:
    one, other = r.group.split(",")
    does = "uses" if r.value else "waits for" if r.at.op else "arrives on"
    return f"{r.role}: exchange {one} and {other} where it {does} them"


def _syncs(r: Repair) -> str:
    return f"{r.role or 'everyone'} waits at {_meeting_words(r.group)} as well: bar_sync instead of bar_arrive"


def _shift(r: Repair) -> str:
    if r.was == TO_THE_OTHER and r.at.op not in ON_NAMED_BARRIER:
        return f"{r.role} arrives on {r.group} of the one whose turn is next, not on that for which it waits itself"
    if r.was == TO_THE_OTHER:
        others = " and ".join(r.group.split(","))
        return f"{r.role} arrives at the named barrier of the other ({others}), not at the one where it waits itself"
    if r.at.op in ON_NAMED_BARRIER and r.was >= 0:
        numbers = r.group.split(",")
        was, now = " and ".join(numbers[: r.value]), ",".join(numbers[r.value :])
        return f"{r.role} uses {_meeting_words(now)} instead of {was} at {instruction(r.at)}"
    if r.at.op in ON_NAMED_BARRIER:
        named = _meeting_words(r.group)
        return f"{r.role} uses {named} in the other order at {instruction(r.at)}: the one of its own stage"
    back = 2 * r.value > r.was
    by, where = (r.was - r.value, "back") if back else (r.value, "further")
    if r.is_on_slot:
        return f"{r.role}: {instruction(r.at)} is for the slot {by} {where}: that of its own stage"
    stage = f"stage that is {by} {where}" if by > 1 else "stage before" if back else "next stage"
    if not r.at.op:
        first = PurePath(r.at.line.partition("\n")[0]).name
        return f"{r.role} expects, and its copies complete, on {r.group} of the {stage} ({first})"
    return f"{r.role}: {instruction(r.at)} is for the {stage}"


def _other_place(r: Repair) -> str:
    who = r.role if r.was < 0 else f"{r.role} of CTA {r.was}"
    by = f"{abs(r.value):,} {'further' if r.value > 0 else 'back'}"
    does = "goes to" if r.at.op == Op.TMA_LOAD else "is for"
    return f"{who}: {_with_line(r.at)} {does} the bytes from {r.past.about} on, {by}: they are read and never written"


def _stages(r: Repair) -> str:
    if r.at.op in ON_NAMED_BARRIER:
        return f"{r.role} uses {_meeting_words(r.group)} in turn at {_with_line(r.at)}"
    if r.at.op and not r.at.line:
        return f"every warp of {r.role} takes the next slot of {r.group} after each use of one"
    if r.at.op:
        one = "slot" if r.is_on_slot else "stage"
        if r.value and not r.is_on_slot:
            return f"{r.role}: {_with_line(r.at)} is for all stages in turn, not those of a ring of {r.value:,}"
        if r.was == 1:
            return f"{r.role}: {_with_line(r.at)} is for the slot to which what it reads was written"
        if r.value:
            return f"{r.role}: {_with_line(r.at)} is for the slot of the stage that it has waited for"
        return f"{r.role}: {_with_line(r.at)} is for one {one} after the other, not always for the same"
    return f"{r.role} waits for {r.group} stage by stage, with parity {r.value} in the first lap"


def _trips(r: Repair) -> str:
    changed, other = ("more", "fewer") if r.value > 0 else ("fewer", "more")
    several = f"{abs(r.value)} iteration{'' if abs(r.value) == 1 else 's'} {changed}"
    others = f", or {r.past.about} {abs(r.value)} {other}" if r.past.about else ""
    return f"{r.role} executes {several} of its loop over {r.group}{others}: all roles as many"


def _every_time(r: Repair) -> str:
    if r.value == 2:
        return f"{r.role} executes {instruction(r.at)} at the end of each iteration of {r.group}, not once after it"
    parts = [*r.also, r] if r.also and r.also[-1].at.op == r.past.op and r.also[-1].past != r.past else [r]
    said = " and ".join(dict.fromkeys(instruction(each.at) for each in (parts[::-1] if r.value else parts)))
    return f"{r.role} executes {said} every time, {'before' if r.value else 'after'} {_with_line(parts[0].past)}"


def _every_warp(r: Repair) -> str:
    if r.role.startswith("each of "):
        return f"{r.role} executes {instruction(r.at)}, not only some of their warps"
    where = ("every warp of ", "", "some of them") if r.was < 1 else ("", " in every CTA", "in some")
    return f"{where[0]}{r.role} executes {instruction(r.at)}{where[1]}, not only {where[2]}"


#: A text with the members of the correction, or what writes the sentence where it depends on more.
_SENTENCES: dict[RepairKind, str | Callable[[Repair], str]] = {
    RepairKind.COUNT: "initialise {group} with a count of {value:,} instead of {was:,}",
    RepairKind.EXPECT: lambda r: (
        f"{r.role} expects {r.value:,} bytes on {r.group} instead of {r.was:,}: as many as are copied"
        + (", which differs from one time to another" if r.past.op else "")
    ),
    RepairKind.REGISTERS: "{role} asks for {value} registers a thread instead of {was}: no more than are left",
    RepairKind.LANES: _lanes,
    RepairKind.THREADS: "{value:,} threads at {named} instead of {was:,}",
    RepairKind.DEPTH: _depth,
    RepairKind.MASK: lambda r: (
        f"{r.role}: {_with_line(r.at)} goes to the CTAs whose rank "
        f"{f'// {-r.value - ROWS}' if -r.value > ROWS else f'% {-r.value}'} is its own"
        if r.value < 0
        else f"{r.role} multicasts on {r.group} to the CTAs of mask {r.value:#b} instead of "
        + (r.past.about or f"{r.was:#b}" if r.was else f"copying to its own alone, at {_with_line(r.at)}")
    ),
    RepairKind.PHASES: lambda r: (
        f"{r.role} waits for {r.group if r.also else _of_stage(r)} with parity {r.value} in the first lap, "
        "alternating in each later lap"
    ),
    RepairKind.STAGES: _stages,
    RepairKind.LAPS: "every role flips the parity of its waits exactly once in each lap of the stages",
    RepairKind.SHIFT: _shift,
    RepairKind.OTHER_PLACE: _other_place,
    RepairKind.TRY: "{role} tries {group} of the stage and phase for which it waits next, not of another",
    RepairKind.PART: lambda r: (
        f"{r.role}: {_with_line(r.at)} is for another part of the slot in each {'CTA' if r.was else 'warp'}: "
        f"its own of {r.value}"
    ),
    RepairKind.CARRY: lambda r: (
        f"{r.role} waits for {r.group} of the stage and phase in which what it reads is signalled"
        if r.was == 2
        else f"{r.role} advances stage and phase of {r.group} by {r.value} more each time, past what others take"
        if r.was == 3
        else f"{r.role} begins {r.group} by {r.value} stages further for each turn that others have before it"
        if r.was == 4
        else f"{r.role} carries stage and phase of {r.group} on instead of beginning again "
        f"(parity {r.value} in the first lap)"
    ),
    RepairKind.OTHER_GROUP: _other_group,
    RepairKind.SWAP: _swap,
    RepairKind.OTHER_CTA: lambda r: (
        f"{r.role}: {instruction(r.at)} is for {_NEIGHBOURS[r.value]}"
        if r.was == 1
        else f"{r.role}: {instruction(r.at)} is meant for the barrier of CTA {r.value}"
        if r.value >= 0
        else f"{r.role} arrives on {r.group} of every CTA of the cluster, not several times on that of one"
    ),
    RepairKind.ONE_WARP: lambda r: (
        f"{r.role}: only one of {r.value} warps executes {_with_line(r.at)}, inside a condition: all of them do so"
        if r.at.op
        else f"{r.role}: only one warp waits, copies and arrives, inside a condition: all {r.value} warps do so"
    ),
    RepairKind.STRONGER: _stronger,
    RepairKind.VALUE: _value,
    RepairKind.AWAITED: _awaited,
    RepairKind.GIVEN: _awaited,
    RepairKind.WORD_MOVE: _word_move,
    RepairKind.WORD_ADDED: _word_added,
    RepairKind.MEET_AGAIN: lambda r: f"{r.role} meets the other CTAs at {r.group} again after {_with_line(r.past)}",
    RepairKind.TWO_SETS: "use two sets of slots of {group} in turn, each in every second iteration",
    RepairKind.STAY: "{role} arrives on {group} without dropping out of it",
    RepairKind.NOINC: "{role} arrives on {group} by cp.async with .noinc, so that its arrivals are counted",
    RepairKind.ON_END: _on_end,
    RepairKind.SYNCS: _syncs,
    RepairKind.LATER: _later,
    RepairKind.MOVE: _move,
    RepairKind.DROP: _drop,
    RepairKind.ONCE: lambda r: (
        f"{r.role}: put {instruction(r.at)} inside elect_one(): every lane of the warp makes it"
        if r.at.op == Op.INIT
        else f"{r.role} executes {_with_line(r.at)} once, not twice in a row"
    ),
    RepairKind.INIT: "initialise all barriers: the program never initialises some stages",
    RepairKind.ARRIVES_TOO: "{role} arrives on {group} as well when it expects bytes: arrive.expect_tx",
    RepairKind.OMIT: lambda r: (
        f"{r.role} uses what it read before ({r.past.line}) instead of {_with_line(r.at).replace('the', 'another', 1)}"
        if r.past.op
        else f"{r.role} omits {instruction(r.at) if r.at.op else 'its inits: another role makes them'}"
        + " the first time" * r.value
    ),
    RepairKind.INSIDE: "put {at} inside elect_one(): only one lane of the warp needs it",
    RepairKind.OUTSIDE: "put {at} outside elect_one(): every lane of the warp needs it",
    RepairKind.SLIP: "an instruction of {role} is another one",
    RepairKind.NOT_PAST: "{role} arrives every time",
    RepairKind.TENSOR_WAIT: "{role} waits for its accesses of tensor memory",
    RepairKind.LEAVE_OUT: "{role}: warps that neither use a stage nor arrive for it do not wait for {group}",
    RepairKind.ARRIVE: _arrive,
    RepairKind.TAIL: _tail,
    RepairKind.ACQUIRE: _acquire,
    RepairKind.FENCE: _fence,
    RepairKind.GROUP_WAIT: _group_wait,
    RepairKind.CLOSE: _close,
    RepairKind.EVERY_TIME: _every_time,
    RepairKind.ONLY_FIRST: lambda r: f"{r.role} executes {_with_line(r.at)} only the first time: the others do so once",
    RepairKind.DRAIN: "{role} waits for every stage of {group} once more before it ends",
    RepairKind.AGAIN: lambda r: (
        f"{r.role} waits for {r.group} after the try, where that has failed"
        if r.value
        else f"{r.role} waits for {r.group} also before {_with_line(r.at)}"
    ),
    RepairKind.ITERATION: lambda r: (
        f"{r.role} executes {instruction(r.at)} in the {'last' if r.value else 'first'} iteration of its loop over "
        f"{r.group}, not in the {'first' if r.value else 'last'}"
    ),
    RepairKind.TRIPS: _trips,
    RepairKind.EVERY_WARP: _every_warp,
    RepairKind.COUNT_IN: (
        "every warp of {role} arrives on {group}, initialised with a count of {value:,} instead of {was:,}"
    ),
    RepairKind.PEERS: lambda r: (
        f"{r.role} {'commits to' if r.at.op else 'arrives on'} {r.group} of every CTA "
        + (
            "whose copies land in its own"
            if r.value == OF_COPIES
            else f"of the cluster, not only of {'one' if r.value else 'its own'}"
        )
    ),
    RepairKind.SYNC: _sync,
    RepairKind.WARP_SYNC: _warp_sync,
    RepairKind.PRIME: _prime,
    RepairKind.BOTH: _both,
    RepairKind.NUMBER: _number,
    RepairKind.CLUSTER_END: "every warp of the cluster meets the others (cluster_sync) before it exits",
    RepairKind.AFTER_INIT: _after_init,
}
