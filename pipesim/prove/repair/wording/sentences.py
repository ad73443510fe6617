"""Corrections in words: one sentence each, which says who does what, where, instead of what."""

from collections.abc import Callable, Iterable, Mapping
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

K = RepairKind
_GROUPS = {Engine.BULK: "bulk stores", Engine.CP_ASYNC: "cp.asyncs", Engine.WGMMA: "wgmmas", Engine.TCGEN05: "MMAs"}
_COMMIT = {
    Engine.BULK: "cp.async.bulk.commit_group",
    Engine.CP_ASYNC: "cp.async.commit_group",
    Engine.WGMMA: "wgmma.commit_group",
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
    if repair.kind is K.ARRIVE and K.DROP in (each.kind for each in repair.also):
        one, counted = repair.also
        whose = sentence(replace(repair, also=())).replace(" whenever", f" instead of {one.role}, whenever")
        counts = f"; it has a count of {counted.value:,} instead of {counted.was:,}"
        return whose + counts * (counted.value != counted.was)
    if len({each.value for each in parts}) > 1 and {each.kind for each in parts} == {K.PHASES}:
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
    return (said if isinstance(said, str) else said(r)).format_map(_NamesOf(r))


class _NamesOf(dict[str, object]):
    """What a text of a sentence may name: the members of its correction, and these in words."""

    def __init__(self, r: Repair) -> None:
        super().__init__(r=r, role=r.role, group=r.group, value=r.value, was=r.was, by=abs(r.value), about=r.past.about)

    def __missing__(self, name: str) -> object:
        r = self["r"]
        assert isinstance(r, Repair)
        return _WORDS[name](r)


_WORDS: Mapping[str, Callable[[Repair], str]] = {
    "at": lambda r: instruction(r.at) if r.at.op else "",
    "at_line": lambda r: _with_line(r.at),
    "at_group": lambda r: instruction(r.at._replace(about=r.group or r.at.about)),
    "another": lambda r: _with_line(r.at).replace("the", "another", 1),
    "past_line": lambda r: _with_line(r.past),
    "past_thing": lambda r: _with_line(r.past)[4:],
    "after": lambda r: "after" if r.was == 1 else "before",
    "parts": lambda r: _all_of(instruction(each.at) for each in _parts(r)[:: -1 if r.value else 1]),
    "first_line": lambda r: _with_line(_parts(r)[0].past),
    "named": lambda r: _meeting_words(r.group),
    "their": lambda r: _GROUPS[Engine(int(r.group))],
    "commit": lambda r: _COMMIT[Engine(int(r.group))],
    "stage": lambda r: r.group if r.also else _of_stage(r),
    "one": lambda r: "slot" if r.is_on_slot else "stage",
    "each": lambda r: "CTA" if r.was else "warp",
    "signals": lambda r: "commits to" if r.at.op in COMMITS else "arrives on",
    "waited": lambda r: r.group.split(",")[0],
    "given": lambda r: r.group.split(",")[-1],
    "everyone": lambda r: r.role or "every role",
}


def _by(member: Callable[[Repair], int], texts: Mapping[int, str], other: str = "") -> Callable[[Repair], str]:
    """The text of the value of a member, ``other`` where it has none of its own."""
    return lambda r: texts.get(member(r), other)


def _value(r: Repair) -> int:
    return r.value


def _was(r: Repair) -> int:
    return r.was


def _of_stage(repair: Repair) -> str:
    """The group, or the one barrier of it of which a correction is."""
    one = repair.kind is K.PHASES and repair.was >= 0
    return f"{repair.group}[{repair.was}]" if one else repair.group


def _all_of(names: Iterable[str]) -> str:
    return " and ".join(dict.fromkeys(name for name in names if name))


def instruction(at: SourceInstruction) -> str:
    """``the arrive on empty``, ``the read of tile``, ``the wait for its wgmmas``."""
    op = Op(at.op)
    said = _VERBS.get(op, f"the {op.name.lower()}")
    if op == Op.WAIT_GROUP or (op == Op.COMMIT and at.about.isdecimal()):
        return f"the {'wait for' if op == Op.WAIT_GROUP else 'commit of'} its {_GROUPS[Engine(int(at.about))]}"
    if not at.about or op == Op.FENCE:
        return said
    if op in ENGINE_ACCESSES:
        return f"{said} {'from' if op == Op.TRANSFER_READ else 'into'} {at.about}"
    word = "for" if op in PARITY_WAITS else "of" if op == Op.READ else "to" if op in WRITES_MEMORY else "on"
    return f"{said} {word} {at.about}"


def _with_line(at: SourceInstruction) -> str:
    """The instruction with its line."""
    return f"{instruction(at)} ({PurePath(at.line).name})" if at.line else instruction(at)


def _meeting_words(group: str) -> str:
    """``named barrier 1``, ``named barriers 1 and 2``, ``__syncthreads()``."""
    *others, last = group.split(",")
    if not others:
        return f"named barrier {last}" if last != "0" else "__syncthreads()"
    return f"named barriers {', '.join(others)} and {last}"


# the texts that depend on more than one number


def _lanes(r: Repair) -> str:
    said = "{at}" if r.at.op else "its arrives on {group}"
    if r.value == 1:
        return f"{{role}}: put {said} inside elect_one(): all {{was}} lanes execute it"
    return f"{{role}}: put {said} outside elect_one(): each of the {{value}} lanes is counted"


def _depth(r: Repair) -> str:
    if r.value < 0:
        return "{role} leaves one of its groups fewer pending at {at_line}"
    left = "no more than {value:,}" if r.value else "none"
    where = " at {at_line}" * bool(r.at.op)
    after = ", which serialises them" * (not r.value)
    return f"{{role}} leaves {left} of its groups pending when it waits for them{where}, instead of {{was:,}}{after}"


def _mask(r: Repair) -> str:
    if r.value < 0:
        by = f"// {-r.value - ROWS}" if -r.value > ROWS else f"% {-r.value}"
        return f"{{role}}: {{at_line}} goes to the CTAs whose rank {by} is its own"
    was = ("{about}" if r.past.about else "{was:#b}") if r.was else "copying to its own alone, at {at_line}"
    return f"{{role}} multicasts on {{group}} to the CTAs of mask {{value:#b}} instead of {was}"


def _later(r: Repair) -> str:
    if r.at.op == Op.INVAL:
        return "{role} executes its invals last, after all else that it does"
    if r.group.replace(",", "").isdecimal():
        return "{role} arrives at {named} only after its reads and writes"
    if r.value >= 0:
        return f"{{role}} arrives on {{group}} only after it has waited for its {_GROUPS[Engine(r.value)]}"
    return "{role} arrives on {group} only after its reads and writes of the stage"


def _arrive(r: Repair) -> str:
    if r.was == Placement.ONE_WARP.value:
        after = "after {at_line}" if r.at.op else "when it has finished with it"
        one = "one in {value} warps" if r.value else "one warp"
        return f"{one} of {{role}} arrives on {{group}} for every stage, {after}"
    does, last = "commits to" if r.value == Engine.TCGEN05 else "arrives on", r.was == Placement.LAST.value
    if r.at.op:
        which = "the last execution of " * last
        return f"{{role}} {does} {{group}} for every stage: also after {which}{{at_line}}"
    if last:
        return f"{{role}} {does} {{group}} after its last use of each stage of {{about}}"
    whose = " of {about}" if r.past.about else ""
    return f"{{role}} {does} {{group}} whenever it has finished with a stage{whose}"


def _sync(r: Repair) -> str:
    meets = "executes __syncthreads()" if r.group == "0" else "executes bar_sync at {named} ({value:,} threads)"
    return f"{{role}} {meets} {{after}} {{at_line}}"


def _number(r: Repair) -> str:
    if r.past.about:
        return "use a named barrier for each slot of {about}, {group} + slot, instead of {group} for all"
    return "give each group of warps that meets at named barrier {group} a number of its own, from {value} on"


def _prime(r: Repair) -> str:
    if not r.value:
        stage = "every stage" if r.was < 0 else "stage {was}"
        too = ", as others of its role do" if r.past.about else ""
        who = "{about}" if r.past.about else "{role}"
        return f"{who} arrives once on {stage} of {{group}} before it begins{too}"
    when = "after {at_line}, once for each meeting there" if r.at.op else "once before it begins"
    when += ", with those of its warps that do not wait there" * (r.was == 1)
    return f"{{role}} arrives at {{named}} ({{value:,}} threads) {when}"


def _after_init(r: Repair) -> str:
    if r.value:
        return "{role} executes fence.mbarrier_init after its inits, before the barrier of the CTA or cluster"
    if r.was > 0:
        whose = "cluster (barrier.cluster.arrive and .wait)" if r.was > 1 else "CTA"
        return f"after the inits and their fence comes a barrier of all threads of the {whose}"
    return "after the inits come fence.mbarrier_init and a barrier of all threads of the CTA or cluster"


def _acquire(r: Repair) -> str:
    if r.was == Placement.WRITTEN.value:
        return "{role} waits for {group} before it reads {r.at.about}, for the phase in which that is signalled"
    visit, work = r.was == Placement.VISIT.value, "the work that it signals on {about}"
    if r.was == Placement.PARTLY.value:
        place = "each round of {at_line}"
    elif r.past.about:
        place = "all " * visit + work
    else:
        place = "it uses the bytes that this is about" if visit else "it uses a stage"
    return f"{{role}} waits for {{group}}, with parity {{value}} in the first lap, before {place}"


def _stronger(r: Repair) -> str:
    if r.past.op:
        was = ".cta" if scope_of(r.was) == Scope.CTA else f".{order_of(r.was).name.lower()}"
        return f"{{role}}: let the atomic on {{group}} be .acq_rel at gpu scope instead of {was}: its answer is used"
    does = "acquire" if r.at.op in MAY_ACQUIRE else "release"
    scope = f" at {SCOPES[r.value].name.lower()} scope" if r.value else ""
    was = ".relaxed" if order_of(r.was) == Order.RELAXED else ".cta"
    return f"{{role}}: let {{at_group}} {does}{scope} instead of {was}"


def _of_value(r: Repair) -> str:
    does = "waits for" if r.at.op == Op.WAIT else "writes"
    return f"{{role}} {does} a value of {{group}} that is {{by:,}} {'larger' if r.value > 0 else 'smaller'}"


def _awaited(r: Repair) -> str:
    return f"{{role}} {'waits for' if r.at.op == Op.WAIT else 'takes' if r.value else 'writes'} {{about}}"


def _word_move(r: Repair) -> str:
    if r.at.op != Op.WAIT:
        return "{role} writes {group} only after {past_line}"
    does = "meets the other CTAs at" if r.value else "waits for"
    return f"{{role}} {does} {{group}} before {{past_line}}, not after it"


def _word_added(r: Repair) -> str:
    does = "waits for {group} before" if r.value else "writes {group} after" if r.was else "gives {group} back after"
    return f"{{role}} {does} {{at_line}}"


def _move(r: Repair) -> str:
    if r.value == 1:
        return "{role} executes {at} before {past_line}, not after it"
    if r.is_after_uses:
        last = "use of {about}" if r.past.about else "{past_thing}"
        return f"{{role}} executes {{at}} only after its last {last}"
    if r.past.op in SETS_UP - MEETINGS and r.at.op not in MEETINGS:
        return "{role} executes {past_line} before {at}"
    if r.was == 1:
        return "{role} executes {at} one iteration later, after the next {past_thing}"
    return "{role} executes {at} only after {past_line}"


_IS_ON = {Op.TMA_LOAD: ("completes its copy", "on "), Op.COMMIT: ("commits", "to "),
          Op.EXPECT_TX: ("expects its bytes", "on ")}  # fmt: skip


def _other_group(r: Repair) -> str:
    does, to = ("waits", "for ") if r.at.op in PARITY_WAITS else _IS_ON.get(Op(r.at.op), ("arrives", "on "))
    if Op(r.at.op) not in _IS_ON and any(each.at.op == Op.TMA_LOAD for each in r.also):
        does = "arrives, and completes its copy,"
    return f"{{role}} {does} {to}{{about}}, not {to}{{r.at.about}}"


def _shift(r: Repair) -> str:
    if r.was == TO_THE_OTHER:
        return "{role} arrives on {group} of the one whose turn is next, not on that for which it waits itself"
    if r.at.op in ON_NAMED_BARRIER and r.was < 0:
        return "{role} uses {named} in the other order at {at}: the one of its own stage"
    if r.at.op in ON_NAMED_BARRIER:
        numbers = r.group.split(",")
        was, now = " and ".join(numbers[: r.value]), _meeting_words(",".join(numbers[r.value :]))
        return f"{{role}} uses {now} instead of {was} at {{at}}"
    back = 2 * r.value > r.was
    by, where = (r.was - r.value, "back") if back else (r.value, "further")
    if r.is_on_slot:
        return f"{{role}}: {{at}} is for the slot {by} {where}: that of its own stage"
    stage = f"stage that is {by} {where}" if by > 1 else "stage before" if back else "next stage"
    return f"{{role}}: {{at}} is for the {stage}"


def _other_place(r: Repair) -> str:
    who = "{role}" if r.was < 0 else "{role} of CTA {was}"
    does = "goes to" if r.at.op == Op.TMA_LOAD else "is for"
    where = "further" if r.value > 0 else "back"
    return f"{who}: {{at_line}} {does} the bytes from {{about}} on, {{by:,}} {where}: they are read and never written"


def _stages(r: Repair) -> str:
    if r.at.op and not r.at.line:
        return "every warp of {role} takes the next slot of {group} after each use of one"
    if not r.at.op:
        return "{role} waits for {group} stage by stage, with parity {value} in the first lap"
    if r.value and not r.is_on_slot:
        return "{role}: {at_line} is for all stages in turn, not those of a ring of {value:,}"
    if r.was == 1:
        return "{role}: {at_line} is for the slot to which what it reads was written"
    if r.value:
        return "{role}: {at_line} is for the slot of the stage that it has waited for"
    return "{role}: {at_line} is for one {one} after the other, not always for the same"


def _trips(r: Repair) -> str:
    changed, other = ("more", "fewer") if r.value > 0 else ("fewer", "more")
    several = f"{{by}} iteration{'' if abs(r.value) == 1 else 's'} {changed}"
    others = f", or {{about}} {{by}} {other}" if r.past.about else ""
    return f"{{role}} executes {several} of its loop over {{group}}{others}: all roles as many"


def _parts(r: Repair) -> list[Repair]:
    """Of a block of instructions all of them, if each is beside the one before."""
    return [*r.also, r] if r.also and r.also[-1].at.op == r.past.op and r.also[-1].past != r.past else [r]


def _every_warp(r: Repair) -> str:
    if r.role.startswith("each of "):
        return "{role} executes {at}, not only some of their warps"
    if r.was < 1:
        return "every warp of {role} executes {at}, not only some of them"
    return "{role} executes {at} in every CTA, not only in some"


def _omit(r: Repair) -> str:
    if r.past.op:
        return "{role} uses what it read before ({r.past.line}) instead of {another}"
    what = "{at}" if r.at.op else "its inits: another role makes them"
    return f"{{role}} omits {what}" + " the first time" * r.value


def _peers(r: Repair) -> str:
    which = "of the cluster, not only of its own" if not r.value else "of the cluster, not only of one"
    which = "whose copies land in its own" if r.value == OF_COPIES else which
    return f"{{role}} {{signals}} {{group}} of every CTA {which}"


_ONCE_A_STAGE = "{role} {signals} {group} once for each stage, after its last use of it, not after each"
_FENCED = "{everyone} executes fence.proxy.async "
#: A text, or what chooses one.
_SENTENCES: dict[RepairKind, str | Callable[[Repair], str]] = {
    K.COUNT: "initialise {group} with a count of {value:,} instead of {was:,}",
    K.EXPECT: lambda r: (
        "{role} expects {value:,} bytes on {group} instead of {was:,}: as many as are copied"
        + ", which differs from one time to another" * bool(r.past.op)
    ),
    K.REGISTERS: "{role} asks for {value} registers a thread instead of {was}: no more than are left",
    K.LANES: _lanes,
    K.THREADS: "{value:,} threads at {named} instead of {was:,}",
    K.DEPTH: _depth,
    K.MASK: _mask,
    K.PHASES: "{role} waits for {stage} with parity {value} in the first lap, alternating in each later lap",
    K.STAGES: _stages,
    K.LAPS: "every role flips the parity of its waits exactly once in each lap of the stages",
    K.SHIFT: _shift,
    K.OTHER_PLACE: _other_place,
    K.TRY: "{role} tries {group} of the stage and phase for which it waits next, not of another",
    K.PART: "{role}: {at_line} is for another part of the slot in each {each}: its own of {value}",
    K.CARRY: _by(
        _was,
        {
            3: "{role} advances stage and phase of {group} by {value} more each time, past what others take",
            4: "{role} begins {group} by {value} stages further for each turn that others have before it",
        },
        "{role} carries stage and phase of {group} on instead of beginning again (parity {value} in the first lap)",
    ),
    K.OTHER_GROUP: _other_group,
    K.SWAP: lambda r: (
        "{role}: exchange {waited} and {given} where it "
        + ("uses" if r.value else "waits for" if r.at.op else "arrives on")
        + " them"
    ),
    K.OTHER_CTA: lambda r: (
        "{role}: {at} is meant for the barrier of CTA {value}"
        if r.was != 1
        else "{role}: {at} is for "
        + ("its own CTA", "the next CTA of the cluster", "the CTA of the cluster before its own")[r.value]
    ),
    K.ONE_WARP: "{role}: only one warp waits, copies and arrives, inside a condition: all {value} warps do so",
    K.STRONGER: _stronger,
    K.VALUE: _of_value,
    K.AWAITED: _awaited,
    K.GIVEN: _awaited,
    K.WORD_MOVE: _word_move,
    K.WORD_ADDED: _word_added,
    K.MEET_AGAIN: "{role} meets the other CTAs at {group} again after {past_line}",
    K.TWO_SETS: "use two sets of slots of {group} in turn, each in every second iteration",
    K.STAY: "{role} arrives on {group} without dropping out of it",
    K.NOINC: "{role} arrives on {group} by cp.async with .noinc, so that its arrivals are counted",
    K.ON_END: _by(
        _value,
        {Engine.CP_ASYNC: "{role} arrives on {group} by cp.async.mbarrier.arrive.noinc: when its copies have ended"},
        "{role} commits to {group} instead of the arrive: when its MMAs have ended",
    ),
    K.SYNCS: "{role} waits at {named} as well: bar_sync instead of bar_arrive",
    K.LATER: _later,
    K.MOVE: _move,
    K.DROP: _by(
        _value,
        {
            0: "{role} omits its arrive on {group}",
            1: "{role} omits its second arrive on {group}",
            3: "{role} expects the bytes of a stage together, with one arrive on {group}, not part by part",
        },
        _ONCE_A_STAGE,
    ),
    K.ONCE: lambda r: (
        "{role}: put {at} inside elect_one(): every lane of the warp makes it"
        if r.at.op == Op.INIT
        else "{role} executes {at_line} once, not twice in a row"
    ),
    K.INIT: "initialise all barriers: the program never initialises some stages",
    K.ARRIVES_TOO: "{role} arrives on {group} as well when it expects bytes: arrive.expect_tx",
    K.OMIT: _omit,
    K.INSIDE: "put {at} inside elect_one(): only one lane of the warp needs it",
    K.OUTSIDE: "put {at} outside elect_one(): every lane of the warp needs it",
    K.SLIP: "an instruction of {role} is another one",
    K.NOT_PAST: "{role} arrives every time",
    K.TENSOR_WAIT: "{role} waits for its accesses of tensor memory",
    K.LEAVE_OUT: "{role}: warps that neither use a stage nor arrive for it do not wait for {group}",
    K.ARRIVE: _arrive,
    K.TAIL: _by(
        _value,
        {
            0: "{role} arrives on {group} once at its end: no role does",
            1: "{role} arrives on {group} for its last stages as well, when their transfers have ended",
            2: "{role} arrives on {group} once more, after what it writes last: no signal follows that",
        },
    ),
    K.ACQUIRE: _acquire,
    K.FENCE: _by(
        _value,
        {
            FencePlace.AFTER_READS.value: f"{_FENCED}after its reads, before it signals any other agent",
            FencePlace.AFTER_WRITES.value: f"{_FENCED}after its writes, before it signals any other agent",
            FencePlace.BEFORE_TRANSFERS.value: f"{_FENCED}after its waits, before it starts the transfer",
        },
    ),
    K.GROUP_WAIT: lambda r: (
        "{role} waits for its {their}"
        + ", leaving no more than {value:,} pending," * bool(r.value)
        + " before {at_line}"
    ),
    K.CLOSE: lambda r: (
        "{role} executes {commit} "
        + (
            "in every iteration, also where it has nothing to copy"
            if r.value
            else "after its {their}, before it waits for them"
        )
    ),
    K.EVERY_TIME: _by(
        _value,
        {
            0: "{role} executes {parts} every time, after {first_line}",
            1: "{role} executes {parts} every time, before {first_line}",
            2: "{role} executes {at} at the end of each iteration of {group}, not once after it",
        },
    ),
    K.ONLY_FIRST: "{role} executes {at_line} only the first time: the others do so once",
    K.DRAIN: "{role} waits for every stage of {group} once more before it ends",
    K.AGAIN: _by(
        _value,
        {1: "{role} waits for {group} after the try, where that has failed"},
        "{role} waits for {group} also before {at_line}",
    ),
    K.ITERATION: _by(
        _value,
        {0: "{role} executes {at} in the first iteration of its loop over {group}, not in the last"},
        "{role} executes {at} in the last iteration of its loop over {group}, not in the first",
    ),
    K.TRIPS: _trips,
    K.EVERY_WARP: _every_warp,
    K.COUNT_IN: "every warp of {role} arrives on {group}, initialised with a count of {value:,} instead of {was:,}",
    K.PEERS: _peers,
    K.SYNC: _sync,
    K.WARP_SYNC: "the lanes of the warp meet at __syncwarp() {after} {at_line}",
    K.PRIME: _prime,
    K.BOTH: "{role} waits for {waited} and arrives on {given} before {at_line}: no role does",
    K.NUMBER: _number,
    K.CLUSTER_END: "every warp of the cluster meets the others (cluster_sync) before it exits",
    K.AFTER_INIT: _after_init,
}
