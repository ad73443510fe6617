"""Writes the table of a kernel (``NAME.table.h``) from its protocol: what :mod:`hwkernels.source_recorder.table` reads.

Where a number depends on the protocol's parameters the table has an expression of them. It is found by comparing the
protocol's site tables for several values of its parameters (variants), and the text is read back for each of them.
"""

import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

import numpy as np

from hwkernels.source_recorder.record_format import MAX_SITES
from hwkernels.source_recorder.table import NONE, Table, read_table
from pipesim.bounds import MAX_NAME
from pipesim.errors import ConfigurationError, PipesimError, UsageError
from pipesim.inputs import quoted_name
from pipesim.model.program import Program
from pipesim.trace.schema import Column, EventKind
from pipesim.trace.sites import NO_SITES, SiteTable, identifier, optional_sites, site_table

Values = Mapping[str, int]  #: of the macros that a table's expressions may use
Key = tuple[str, EventKind, str]  #: role, kind and barrier group of a site

_EACH = 2  #: other values of a parameter that are tried
_VERBS = {
    EventKind.WAIT_ENTER: "wait",
    EventKind.WAIT_RETURN: "got",
    EventKind.BAR_ENTER: "sync",
    EventKind.BAR_RETURN: "synced",
    EventKind.GROUP_ENTER: "wait_group",
    EventKind.GROUP_RETURN: "got_group",
}


@dataclass(frozen=True)
class Variant:
    """A protocol with some values of its parameters: those values by the names of macros, and its site table."""

    values: Values
    table: SiteTable


@dataclass(frozen=True)
class Spelling:
    """What a table calls things, where that is not the usual.

    ``head``: lines of comment before the table. ``groups``: names of barrier groups by the protocol's, which are
    otherwise the same with ``_`` for ``.`` and brackets. ``after``: sites, by name, that stand right after another of
    their role instead of where the protocol first has them.
    """

    head: tuple[str, ...] = ()
    groups: Mapping[str, str] = field(default_factory=dict)
    after: Mapping[str, str] = field(default_factory=dict)

    def group(self, name: str) -> str:
        """The table's name of a barrier group of the protocol ("none" where a site touches none)."""
        return self.groups.get(name, identifier(name)) or NONE

    def site(self, key: Key) -> str:
        """The table's name of a site."""
        role, kind, group = key
        named = self.group(group) if group else ""
        return "_".join(part for part in (role, _VERBS.get(kind, kind.name.lower()), named) if part)


def table_text(variants: Sequence[Variant], spelling: Spelling | None = None) -> str:
    """The text of a table for a protocol, which holds for all variants; the first has the usual values.

    Roles and barrier groups are those of the first. A number that is not an expression of the macros in a variant is
    written as it is in the first, with a comment. Raises ConfigurationError for what no table can say.
    """
    spelled = spelling or Spelling()
    first = variants[0].table
    _require_names(first, variants[0].values, spelled)
    alike = _alike(variants)
    sites = _sites([v.table for v in alike], spelled)
    if len(sites) > MAX_SITES:
        raise ConfigurationError(f"{len(sites)} sites; a record can name {MAX_SITES}")
    lines = [_comment(line) for line in spelled.head] + [""] * bool(spelled.head)
    lines.append("// name, warps. Warps are numbered in this order.")
    for role in _roles(first):
        warps = _number([sum(a.role == role for a in v.table.agents) for v in alike], alike)
        lines.append(_line("ROLE", role, warps.text) + warps.remark)
    lines += ["", "// name, stages, arrivals that complete a phase. Barriers lie in shared memory in this order."]
    for n, group in enumerate(first.barriers):
        if group.count < 1 and any(touched == group.name for _, _, touched in sites):
            raise ConfigurationError(
                f"no table can say the count of {group.name}, which no agent initialises",
                cause="a table gives the arrivals that complete a phase of each barrier",
                correction=f"initialise {group.name}, or leave it out",
            )
        stages = _number([v.table.barriers[n].stages for v in alike], alike)
        count = _number([v.table.barriers[n].count for v in alike], alike)
        unused = all(v.table.barriers[n].count == 0 for v in alike)
        remark = stages.remark or count.remark or ("  // unused: no init has a count for it" if unused else "")
        lines.append(_line("BARRIER", spelled.group(group.name), stages.text, count.text) + remark)
    lines += [
        "",
        "// name, role, kind, barrier (none where it touches none). Each role's sites stand in program order.",
    ]
    lines += [_line("SITE", spelled.site(k), k[0], k[1].name, spelled.group(k[2]) if k[2] else NONE) for k in sites]
    text = "\n".join(lines) + "\n"
    _check(text, alike, spelled)
    return text


def variants_of(
    build: Callable[[Values], Program],
    macros: Callable[[Values], Values],
    params: Values,
    vary: Collection[str],
    *,
    every: bool = False,
) -> list[Variant]:
    """The protocol with these parameters, then with each of ``vary`` changed, alone and together, where it can be.

    ``build`` raises PipesimError for parameters that the protocol cannot have, or its kernel does not. ``every``: with
    the sites that a kernel need not have (:data:`~pipesim.trace.schema.OPTIONAL`).
    """

    def table_of(values: Values) -> SiteTable:
        program = build(values)
        return site_table(program, optional_sites(program) if every else NO_SITES)

    found = [Variant(macros(params), table_of(params))]

    def tried(other: Values) -> bool:
        try:
            found.append(Variant(macros(other), table_of(other)))
        except PipesimError:
            return False
        return True

    for name in vary:
        value, successes = params[name], 0
        for other in dict.fromkeys((value + 1, value + 2, 2 * value, 4 * value, value - 1, value // 2, 1, 0, 32, 64)):
            successes += other not in {value, -1} and tried({**params, name: other})
            if successes == _EACH:
                break
    for more in (1, 2):
        tried({name: value + more * (name in vary) for name, value in params.items()})
    return found


def fixed_macros(variants: Sequence[Variant]) -> dict[str, int]:
    """The macros that have one value in all variants with the roles and barriers of the first."""
    values = [variant.values for variant in _alike(variants)]
    return {name: value for name, value in values[0].items() if all(v[name] == value for v in values)}


def _alike(variants: Sequence[Variant]) -> list[Variant]:
    return [variant for variant in variants if _names(variant.table) == _names(variants[0].table)]


def _line(kind: str, *parts: str) -> str:
    return f"PIPESIM_{kind}({', '.join(parts)})"


def _require_names(table: SiteTable, values: Values, spelled: Spelling) -> None:
    """ConfigurationError for a role, barrier group or parameter that C cannot name: a compiler reads the table."""
    named = [("role", role, role) for role in _roles(table)]
    named += [("barrier group", group.name, spelled.group(group.name)) for group in table.barriers]
    named += [("parameter", name, name) for name in values]
    for what, name, written in named:
        if not written.isidentifier() or len(written) > MAX_NAME:
            raise ConfigurationError(
                f"the {what} {quoted_name(name)} cannot be written into a table",
                cause="a CUDA compiler reads it: a name consists of letters, digits and _, and begins with no digit",
                correction=f"rename the {what} in the protocol",
            )


def _comment(line: str) -> str:
    """A comment of one line: nothing in it begins another line, and no backslash at its end continues it."""
    return f"// {''.join(c if c.isprintable() else '?' for c in line)}".rstrip(" \\")


def _roles(table: SiteTable) -> list[str]:
    return list(dict.fromkeys(agent.role for agent in table.agents))


def _names(table: SiteTable) -> tuple[list[str], list[str]]:
    return _roles(table), [group.name for group in table.barriers]


def _sites(tables: Sequence[SiteTable], spelled: Spelling) -> list[Key]:
    """The sites of all tables: by role, each where a table first has it after what comes before it there."""
    order: dict[str, list[Key]] = {role: [] for role in _roles(tables[0])}
    for table in tables:
        elsewhere = next((site.role for site in table.sites if site.role not in order), None)
        if elsewhere is not None:
            raise ConfigurationError(
                f"no table can have the role {elsewhere!r}, which only other CTAs of the cluster have",
                cause="a table is of a kernel, and every CTA of a launch runs the same one",
            )
        before: dict[str, int] = dict.fromkeys(order, 0)
        for site in table.sites:
            known, key = order[site.role], site.key
            if key not in known:
                known.insert(before[site.role], key)
            before[site.role] = known.index(key) + 1
    found = [key for keys in order.values() for key in keys]
    for name, place in spelled.after.items():
        moved = next(key for key in found if spelled.site(key) == name)
        found.remove(moved)
        found.insert([spelled.site(key) for key in found].index(place) + 1, moved)
    return found


@dataclass(frozen=True)
class _Number:
    text: str
    remark: str = ""


def _number(numbers: Sequence[int], variants: Sequence[Variant]) -> _Number:
    """A number of every variant as an expression of the macros."""
    values = [v.values for v in variants]
    text = next(expressions(numbers, values), None)
    if text is not None:
        return _Number(text)
    known = ", ".join(f"{name} = {values[0][name]}" for name in sorted(_causes(numbers, values)))
    return _Number(str(numbers[0]), f"  // of {known}")


def _causes(numbers: Sequence[int], values: Sequence[Values]) -> set[str]:
    """The names that change the number, each alone."""
    changes = [{name for name, value in other.items() if value != values[0][name]} for other in values]
    return {
        name for n, names in zip(numbers, changes, strict=True) if n != numbers[0] and len(names) == 1 for name in names
    }


def expressions(numbers: Sequence[int], values: Sequence[Values]) -> Iterator[str]:
    """Expressions of the names in ``values`` that give each number, the simplest first."""
    if len(set(numbers)) == 1:
        yield str(numbers[0])
    wanted = np.array(numbers, dtype=np.int64)
    names = [name for name in values[0] if len({v[name] for v in values}) > 1]
    columns = {name: np.array([v[name] for v in values], dtype=np.int64) for name in names}
    terms = columns | {f"{a} * {b}": columns[a] * columns[b] for a, b in combinations(names, 2)}
    for constant in (False, True):
        for term, column in terms.items():
            yield from _linear(wanted, {term: column}, constant=constant)
    for constant in (False, True):
        for a, b in combinations(names, 2):
            yield from _linear(wanted, {a: columns[a], b: columns[b]}, constant=constant)


def _linear(wanted: Column, terms: Mapping[str, Column], *, constant: bool) -> Iterator[str]:
    """``wanted`` as a sum of these terms with whole factors, if it is one."""
    columns = [*([np.ones_like(wanted)] if constant else []), *terms.values()]
    matrix = np.stack(columns, axis=1)
    solved = np.linalg.lstsq(matrix.astype(np.float64), wanted.astype(np.float64), rcond=None)[0]
    factors = np.rint(solved).astype(np.int64)
    if not np.array_equal(matrix @ factors, wanted) or 0 in factors:
        return
    text = ""
    for factor, term in zip(factors.tolist(), ["", *terms] if constant else list(terms), strict=True):
        part = " * ".join([str(abs(factor))] * (abs(factor) > 1 or not term) + [term] * bool(term))
        text += (f" {'-' if factor < 0 else '+'} " if text else "-" * (factor < 0)) + part
    yield text


def _check(text: str, variants: Sequence[Variant], spelled: Spelling) -> None:
    """ConfigurationError unless the text read back is the site table of each variant."""
    for variant in variants:
        if len({agent.warp for agent in variant.table.agents}) < len(variant.table.agents):
            raise ConfigurationError(
                "no table can be written of this protocol: lanes of one warp are several agents",
                cause="a kernel's recorder numbers its agents by warps",
                correction="leave lanes_apart=True out of the roles that are recorded",
            )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "read.table.h"
        path.write_text(text, encoding="utf-8")
        for variant in variants:
            try:
                found = read_table(path, variant.values)
            except UsageError as error:
                raise _no_table(text, error) from error
            if found.agents != variant.table.agents:
                raise ConfigurationError(
                    f"no table can say which warps the roles {', '.join(_roles(variant.table))} have",
                    cause="a table numbers warps role by role, from 0 on, without a gap",
                    correction="number the warps of a CTA so, with all lanes of a warp in one role",
                )
            if not _remarked(text) and _barriers(found) != _barriers_of(variant.table, spelled):
                raise AssertionError(f"{text} is not the table of {variant}")


def _no_table(text: str, error: UsageError) -> ConfigurationError:
    """What a protocol has that the lines of a table cannot say; the file that was read back is of no interest."""
    number = error.place.rpartition(":")[2]
    line = text.splitlines()[int(number) - 1] if number.isdecimal() else ""
    return ConfigurationError(
        f"no table can be written of this protocol: {error.fact}",
        cause=f"its line would be {line.partition('  //')[0]}" if line else "",
        correction="change the name or number of that line in the protocol",
    )


def _remarked(text: str) -> bool:
    return ")  // of " in text


def _barriers(table: Table) -> list[tuple[str, int, int]]:
    return [(group.name, group.stages, group.count) for group in table.barriers]


def _barriers_of(table: SiteTable, spelled: Spelling) -> list[tuple[str, int, int]]:
    return [(spelled.group(group.name), group.stages, group.count) for group in table.barriers]
