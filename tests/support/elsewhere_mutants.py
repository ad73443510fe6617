"""Kernels without one of their arrives elsewhere alone: in another CTA, at another size, or for a tile handed out."""

import random
import re
from collections.abc import Mapping
from math import prod

from pipesim.ptx.launch.values import Launch

_ARRIVE = re.compile(r"\s*(\{\s*)?(@\S+\s+)?mbarrier\.arrive[^;{}]*;\s*(\})?\s*$", re.ASCII)
_REGISTERS = "{ .reg .b32 %cta_r, %cta_t; .reg .pred %cta_p; mov.u32 %cta_t, -1;"


def in_another_cta(text: str, launch: Launch, rng: random.Random) -> tuple[str, int, int]:
    """The kernel, the line of the arrive, and a CTA that is not the first, in which it is left out."""
    cta, (x, y, _) = rng.randrange(1, prod(launch.grid)), launch.grid
    asked = " ".join(
        f"mov.u32 %cta_r, %ctaid.{axis}; setp.{'eq.u32 %cta_p, %cta_r, ' if not n else 'eq.and.u32 %cta_p, %cta_r, '}"
        f"{place}{', %cta_p' if n else ''};"
        for n, (axis, place) in enumerate(zip("xyz", (cta % x, cta // x % y, cta // (x * y)), strict=True))
    )
    mutant, line = _without_an_arrive(text, launch.entry, asked, rng)
    return mutant, line, cta


def at_another_size(
    text: str, launch: Launch, word: tuple[str, int], value: int, rng: random.Random
) -> tuple[str, int]:
    """The kernel and the line of the arrive that is left out where a word, at a byte of a parameter, has a value."""
    asked = f"ld.param.u32 %cta_r, [{word[0]}+{word[1]}]; setp.eq.u32 %cta_p, %cta_r, {value};"
    return _without_an_arrive(text, launch.entry, asked, rng)


def for_a_tile(text: str, launch: Launch, register: str, tile: int, step: int, rng: random.Random) -> tuple[str, int]:
    """The kernel and the line of the arrive that is left out for a tile, whose number is in a register, after another
    than the one ``step`` before it.
    """
    asked = f"setp.eq.u32 %cta_p, {register}, {tile}; setp.ne.and.u32 %cta_p, %cta_t, -1, %cta_p; add.u32 %cta_r,"
    asked += f" %cta_t, {step}; setp.ne.and.u32 %cta_p, %cta_r, {tile}, %cta_p; mov.u32 %cta_t, {register};"
    return _without_an_arrive(text, launch.entry, asked, rng)


def arrives(text: str, entry: str) -> tuple[int, list[int]]:
    """Of an entry the number of the line where it begins, and of those of its arrives, from 0 on."""
    lines = text.split("\n")
    found = re.search(rf"\.entry\s+{re.escape(entry)}\s*\(", text)
    assert found is not None
    start = text[: text.index("{", text.index(")", found.end()))].count("\n")
    end = next((n for n in range(start + 1, len(lines)) if ".entry" in lines[n]), len(lines))
    return start, [n for n in range(start + 1, end) if _ARRIVE.match(lines[n])]


def _without_an_arrive(text: str, entry: str, asked: str, rng: random.Random) -> tuple[str, int]:
    """``asked``: instructions that set ``%cta_p`` where it is to be left out."""
    (start, among), lines = arrives(text, entry), text.split("\n")
    at = rng.choice(among)
    lines[at] = f"{asked} @%cta_p bra $L_cta_skip; {lines[at]} $L_cta_skip:"
    lines[start] = lines[start].replace("{", _REGISTERS, 1)
    return "\n".join(lines), at + 1


def named(settings: Mapping[str, int], name: str, value: int) -> bool:
    """Whether what is refuted has this setting, or of several with a number after the name one."""
    return any(each.partition(":")[0] == name and held == value for each, held in settings.items())
