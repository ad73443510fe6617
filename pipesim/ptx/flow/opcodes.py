"""What has to be known of an instruction: whether it synchronises, touches shared memory, or only makes a value.

An opcode in none of these sets is unknown (PTX ISA 8.0 to 9.4). It is listed, and its result is unknown.
"""

import operator
from collections.abc import Callable, Sequence

from pipesim.model.ops import Order, Scope
from pipesim.ptx.text.instruction import Address, Instruction, Register, Symbol, TensorAddress, Vector

#: Instructions that make agents wait or signal, move bytes asynchronously, or order memory.
SYNCHRONISING = frozenset(
    {
        "mbarrier", "bar", "barrier", "fence", "membar", "wgmma", "tcgen05", "setmaxnreg", "clusterlaunchcontrol",
        "griddepcontrol", "tensormap", "elect",
    }
)  # fmt: skip

RANKS = ("1d", "2d", "3d", "4d", "5d")  #: how many dimensions the box of a copy has

#: Loads and stores of memory that may be the CTA's or the cluster's shared memory.
ACCESSES = frozenset({"ld", "st", "atom", "red", "ldmatrix", "stmatrix", "ldu"})

#: Opcodes whose only effect is to write their first operand.
VALUES = frozenset(
    {
        "abs", "activemask", "add", "addc", "and", "alloca", "bfe", "bfi", "bfind", "bmsk", "brev", "clz", "cnot",
        "copysign", "cos", "createpolicy", "cvt", "cvta", "div", "dp2a", "dp4a", "ex2", "fma", "fns", "getctarank",
        "isspacep", "istypep", "lg2", "lop3", "mad", "mad24", "madc", "mapa", "match", "max", "min", "mma", "mov",
        "movmatrix", "mul", "mul24", "neg", "not", "or", "popc", "prmt", "rcp", "redux", "rem", "rsqrt", "sad",
        "selp", "set", "setp", "shf", "shfl", "shl", "shr", "sin", "slct", "sqrt", "stackrestore", "stacksave", "sub",
        "subc", "suld", "szext", "tanh", "testp", "tex", "tld4", "txq", "suq", "vadd", "vmax", "vmin", "vote", "vset",
        "vsub", "vabsdiff", "vshl", "vshr", "vmad", "vadd2", "vadd4", "vsub2", "vsub4", "vavrg2", "vavrg4", "vmin2",
        "vmin4", "vmax2", "vmax4", "vset2", "vset4", "vabsdiff2", "vabsdiff4", "wmma", "xor",
    }
)  # fmt: skip

#: Exchange values of the lanes that a mask names, which wait for each other (PTX ISA, "shfl.sync").
EXCHANGES = frozenset({"shfl", "vote", "match", "redux", "elect"})

#: Opcodes that neither synchronise nor make a value that could decide anything.
WITHOUT_EFFECT = frozenset(
    {"applypriority", "brkpt", "discard", "multimem", "nanosleep", "pmevent", "prefetch", "prefetchu", "sust", "sured"}
)  # those on global memory are counted as not judged


CONTROL = frozenset({"bra", "brx", "call", "exit", "ret", "trap"})

#: Opcodes of which only these forms synchronise: the others are accesses, values or hints.
_FORMS = {"cp": {"async", "reduce"}, "multimem": {"cp"}, "st": {"async", "bulk"}, "red": {"async"}}
#: Library functions that a compiler calls and that do not synchronise.
LIBRARY = frozenset({"vprintf", "malloc", "free", "__assertfail", "__nv_printf"})

#: Opcodes that have no destination, whatever their first operand is.
_NO_RESULT = frozenset(
    {"st", "red", "fence", "membar", "setmaxnreg", "griddepcontrol", "stmatrix", "cp", "tensormap"}
) | WITHOUT_EFFECT - {"multimem"} | CONTROL - {"call"}  # fmt: skip

_KNOWN = VALUES | ACCESSES | CONTROL | WITHOUT_EFFECT | {"cp"}


#: Opcodes whose result depends on nothing but their operands.
ARITHMETIC = frozenset(
    {
        "add", "sub", "mul", "mad", "and", "or", "xor", "not", "neg", "shl", "shr", "min", "max", "setp", "selp", "cvt",
        "cvta", "mapa", "lop3", "shf", "bfe", "bfi", "prmt",
    }
)  # fmt: skip
#: Opcodes whose result depends on nothing but their operands, as compilers pass an answer on.
PASS_ON = frozenset({"and", "cvt", "mov", "not", "or", "selp", "setp", "shfl", "vote", "xor"})


COMPARED: dict[str, tuple[Callable[[int, int], bool], str, str]] = {  # what holds if it is true, and if it is false
    "eq": (operator.eq, "==", "!="), "ne": (operator.ne, "!=", "=="), "lt": (operator.lt, "<", ">="),
    "le": (operator.le, "<=", ">"), "gt": (operator.gt, ">", "<="), "ge": (operator.ge, ">=", "<"),
    "lo": (operator.lt, "<", ">="), "ls": (operator.le, "<=", ">"), "hi": (operator.gt, ">", "<="),
    "hs": (operator.ge, ">=", "<"),
}  # fmt: skip


def is_known(instruction: Instruction) -> bool:
    """Whether the slice knows what kind of instruction it is."""
    return instruction.opcode in _KNOWN or is_synchronisation(instruction)


def is_understood(instruction: Instruction) -> bool:
    """Whether it is known, or only computes or accesses other memory, so that other warps do not notice it."""
    if instruction.opcode == "call":  # calls of functions with a body have been replaced by it
        return any(isinstance(each, Symbol) and each.name in LIBRARY for each in instruction.operands)
    if is_known(instruction):
        return True
    if may_signal(instruction):
        return False
    if any(isinstance(each, Address | TensorAddress) for each in instruction.operands):
        return "shared" not in instruction.spaces and bool(instruction.spaces & {"global", "local", "param", "const"})
    return "shared" not in instruction.spaces and isinstance(next(iter(instruction.operands), None), Register | Vector)


def may_signal(instruction: Instruction) -> bool:
    """Whether the name of one that is not known says that it signals or waits; ``sync`` alone is within a warp."""
    return instruction.has_any(*_SIGNALS)


_SIGNALS = ("arrive", "wait", "try_wait", "test_wait", "async", "commit", "release", "acquire", "fence")


def is_synchronisation(instruction: Instruction) -> bool:
    """Whether agents wait for, signal or order something by it, or it moves bytes of shared memory asynchronously."""
    opcode, modifiers = instruction.opcode, instruction.modifiers
    if opcode in _FORMS:
        return not _FORMS[opcode].isdisjoint(modifiers) and "prefetch" not in modifiers
    return opcode in SYNCHRONISING


def may_touch_shared(instruction: Instruction) -> bool:
    """Whether a load, store or atomic names shared memory, or names no space and may mean it."""
    fragment = instruction.opcode == "wmma" and instruction.has_any("load", "store")
    if instruction.opcode not in ACCESSES and not fragment:
        return False
    spaces = instruction.spaces
    return "shared" in spaces or not spaces & {"global", "local", "param", "const"}


_ORDERS = {"relaxed": Order.RELAXED, "release": Order.RELEASE, "acquire": Order.ACQUIRE, "acq_rel": Order.ACQ_REL}
_SCOPES = {"cta": Scope.CTA, "cluster": Scope.CLUSTER, "gpu": Scope.GPU, "sys": Scope.SYS, "gl": Scope.GPU}


def as_written(modifiers: Sequence[str], order: Order, scope: Scope) -> tuple[Order, Scope]:
    """The order and the scope that modifiers name, or else these."""
    found = next((_ORDERS[m] for m in modifiers if m in _ORDERS), order)
    return found, next((_SCOPES[m] for m in modifiers if m in _SCOPES), scope)


def on_tensor_maps(instruction: Instruction) -> bool:
    """Whether it changes a tensor map, or orders the changes of one with copies by it."""
    is_fence = instruction.opcode == "fence" and any(m.startswith("tensormap") for m in instruction.modifiers)
    return instruction.opcode == "tensormap" or is_fence


def may_touch_global(instruction: Instruction) -> bool:
    """Whether a load, store, atomic or copy names global memory, or names no space and may mean it.

    One to a multicast address (``multimem``) is one to global memory if it says how strong it is.
    """
    if instruction.opcode == "multimem":
        strong = instruction.has_any("relaxed", "acquire", "release") and instruction.has_any(*_SCOPES)
        return not instruction.has("cp") and (strong or instruction.has("weak"))
    if instruction.opcode in ("tensormap", "fence"):
        if instruction.opcode == "fence":
            return instruction.has("acquire") and on_tensor_maps(instruction)
        return instruction.has("cp_fenceproxy") or "shared" not in instruction.spaces
    if instruction.opcode == "cp":
        return instruction.has("global") and not instruction.has("prefetch")
    fragment = instruction.opcode == "wmma" and instruction.has_any("load", "store")
    if instruction.opcode not in {"ld", "ldu", "st", "atom", "red"} and not fragment:
        return False
    return "global" in instruction.modifiers or not instruction.spaces & {"shared", "local", "param", "const"}


def has_result(instruction: Instruction) -> bool:
    """Whether the first operand (of a call, the first list) is written."""
    opcode, operands = instruction.opcode, instruction.operands
    if not operands or opcode in _NO_RESULT or isinstance(operands[0], Address | TensorAddress):
        return False
    if opcode in {"bar", "barrier"}:
        return "red" in instruction.modifiers
    if opcode == "tcgen05":
        return "ld" in instruction.modifiers
    if opcode == "wgmma":
        return "mma_async" in instruction.modifiers
    return True


# what others notice (PTX ISA, "Instruction Set")

TRIES = ("try_wait", "test_wait")
_ALWAYS = frozenset({"mbarrier", "bar", "barrier", "wgmma", "setmaxnreg", "clusterlaunchcontrol", "multimem"})
_SOME = _ALWAYS | {"tcgen05", "cp", "st", "red"}  #: all others do not
#: Of tcgen05: those that only order or wait for what their own thread has issued.
_LOCAL_TCGEN05 = ("fence::", "wait::")


def synchronises(each: Instruction) -> bool:
    """Whether other warps may notice whether it runs: what a proof is about."""
    return _synchronises(each) if each.opcode in _SOME else not is_understood(each)


def _synchronises(each: Instruction) -> bool:
    if each.opcode in _ALWAYS:
        if each.opcode == "multimem":
            return each.has("cp")
        return not (each.opcode in ("bar", "barrier") and each.has("warp")) and not each.has("query_cancel")
    if each.opcode == "tcgen05":
        return not each.modifiers[0].startswith(_LOCAL_TCGEN05)
    if each.opcode in ("cp", "st", "red"):
        return each.has_any("async", "bulk")
    return False


def makes_others_wait(each: Instruction) -> bool:
    """Whether it is more than an access of its own warp: whether it runs decides how others continue."""
    return synchronises(each) and not (each.opcode == "tcgen05" and each.has_any("ld", "st"))


def ends_a_spin(each: Instruction) -> bool:
    """Whether a loop with this instruction does more than wait."""
    return synchronises(each) and not is_try(each)


def hands_on(each: Instruction) -> bool:
    """Whether others may learn by it of what its thread has done before, or it starts what needs that."""
    match each.opcode:
        case "mbarrier":
            return each.has_any("arrive", "arrive_drop")
        case "cp":
            return each.has_any("bulk", "mbarrier") and not each.has_any("commit_group", "wait_group", "prefetch")
        case "st" | "red":
            return each.has("async")
        case "tcgen05":
            return each.has_any("mma", "cp", "commit")
        case _:
            return False


def is_try(each: Instruction) -> bool:
    """Whether it asks an mbarrier without waiting for it."""
    return each.opcode == "mbarrier" and each.has_any(*TRIES)


def is_step(each: Instruction) -> bool:
    """Whether it is a step on the path of a warp, as a recorder sees it: all that synchronises, fences and groups too.

    Not what sets mbarriers up or ends their lives, one ``cp.async``, a product, and accesses of tensor memory.
    """
    match each.opcode:
        case "mbarrier":
            return not each.has_any("init", "inval", "pending_count")
        case "bar" | "barrier":
            return not each.has("warp")
        case "fence" | "membar":
            return True
        case "wgmma":
            return each.has_any("commit_group", "wait_group")
        case "cp":
            return each.has_any("bulk", "mbarrier", "commit_group", "wait_group", "wait_all") and not each.has(
                "prefetch"
            )
        case "st" | "red":
            return each.has("async")
        case "tcgen05":
            return each.has_any("commit", "cp", "wait::ld", "wait::st")
        case "clusterlaunchcontrol":
            return each.has("try_cancel")
        case "griddepcontrol":
            return each.has("wait")
        case _:
            return False
