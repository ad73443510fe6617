"""What is made of values that are loaded: updates that are not atomic, what decides anything, what a store leaves."""

from collections.abc import Collection, Sequence

from pipesim.ptx.flow.graph import reached
from pipesim.ptx.flow.opcodes import may_touch_global
from pipesim.ptx.flow.uses import Uses
from pipesim.ptx.text.instruction import Instruction, Register, parts_of

ASKING = ("volatile", "relaxed", "acquire", "mmio")  #: of loads that may see what another thread stores
_STRONG = ("volatile", "relaxed", "release", "mmio")


class Observations:
    """The strong loads and atomics of a kernel, with what is made of their results.

    ``decide``: whether one of them may decide what a thread does, so that it learns how far another CTA is.
    ``updates``: the strong stores of what is made of strong loads, by position, each with these loads. ``read``: the
    positions of all instructions whose result is read.
    """

    def __init__(self, body: Sequence[Instruction], uses: Uses) -> None:
        self._uses = uses
        self._readers: dict[str, list[Instruction]] = {}
        for each in body:
            guard = () if each.guard is None else (each.guard.register,)
            for name in {*uses.reads[each.position], *guard}:
                self._readers.setdefault(name, []).append(each)
        self.read = {e.position for e in body if not self._readers.keys().isdisjoint(uses.writes[e.position])}
        self.updates: dict[int, set[int]] = {}
        looks = [self.decides(each) for each in body if _looks_at_others(each)]  # each says its updates
        self.decide = any(looks)

    def decides(self, first: Instruction, but: Collection[int] = ()) -> bool:
        """Whether more is made of a result than what is stored to global memory, or that at one of these positions."""
        if first.opcode in ("call", "multimem"):
            return first.opcode == "call" or any(name in self._readers for name in self._uses.writes[first.position])
        open_, seen = list(self._uses.writes[first.position]), set[str]()
        decides = False
        while open_:
            name = open_.pop()
            for each in self._readers.get(name, ()) if name not in seen else ():
                guarded = each.guard is not None and each.guard.register == name
                if each.opcode in ("st", "red") and each.has("global"):
                    decides |= guarded or Register(name) in parts_of(each.operands[0]) or each.position in but
                    if first.opcode == "ld" and each.opcode == "st" and each.has_any(*_STRONG):
                        self.updates.setdefault(each.position, set()).add(first.position)
                elif guarded or each.opcode in ("ld", "atom", "call") or not self._uses.writes[each.position]:
                    decides = True
                else:
                    open_ += self._uses.writes[each.position]
            seen.add(name)
        return decides

    def decides_what_runs(self, first: Instruction) -> bool:
        """Whether a result decides what a thread does next, or is stored for others of its CTA; not just an address."""

        def made_of(name: str) -> list[str]:
            by = (each.position for each in self._readers.get(name, ()) if each.opcode != "ld")
            return [made for position in by for made in self._uses.writes[position]]

        names = reached(self._uses.writes[first.position], made_of)
        readers = ((name, each) for name in names for each in self._readers.get(name, ()))
        return any("shared" in each.spaces or (each.guard and each.guard.register == name) for name, each in readers)


def loads_behind(at: int, body: Sequence[Instruction], uses: Uses) -> set[int]:
    """The loads of global memory of which a store's value is made."""

    def made_of(name: str) -> list[str]:
        return [read for p in uses.writers.get(name, ()) if body[p].opcode != "ld" for read in uses.reads[p]]

    names = reached(set(uses.reads[at]) - set(uses.needs[at]), made_of)
    writers = {p for name in names for p in uses.writers.get(name, ())}
    return {p for p in writers if body[p].opcode == "ld" and may_touch_global(body[p])}


def _looks_at_others(each: Instruction) -> bool:
    """Whether a thread may learn by it how far another CTA is."""
    if each.opcode in ("call", "multimem"):
        return True
    return may_touch_global(each) and (each.opcode == "atom" or (each.opcode == "ld" and each.has_any(*ASKING)))
