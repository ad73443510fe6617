"""What a kernel would leave with the encodings of format 2, made from the tagged records that it would leave."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hwkernels.records.encodings import HASH_START, Flag, full_tag, hash_step, wait_block
from hwkernels.source_recorder import record_format as form
from hwkernels.source_recorder.description import lap_sites, wait_sites
from hwkernels.source_recorder.table import Table
from pipesim.trace.schema import EventKind

Words = npt.NDArray[np.uint32]


class Recording(Protocol):
    """One launch's recording: headers with counts, records by CTA and agent."""

    table: Table
    headers: npt.NDArray[Any]
    records: Words


def recode(kept: Recording, options: Sequence[str]) -> None:
    """Make a recording one of the encoding that a kernel was built with (its compiler options), if that is another."""
    encode = {f"-DPIPESIM_ENCODING={number}": encode for number, encode in ((1, full), (2, positional))}
    chosen = next((encode[option] for option in options if option in encode), None)
    if chosen is None:
        return
    tagged = kept.records
    kept.records = np.zeros((*tagged.shape[:3], 1 if chosen is positional else 2), dtype=np.uint32)
    for cta, agents in enumerate(kept.headers["counts"]):
        for agent in range(len(kept.table.agents)):
            words = chosen(tagged[cta, agent, : agents[agent][0]], kept.table)
            kept.records[cta, agent, : len(words)] = words
            agents[agent][0] = len(words)


def field(tag: int, which: tuple[int, int]) -> int:
    """A field of a tagged record's tag."""
    return (tag >> which[0]) & ((1 << which[1]) - 1)


def positional(tagged: Words, table: Table) -> Words:
    """(words, 1) of the tagged records, (records, 2), of one agent."""
    waits, laps, value = wait_sites(table), lap_sites(table), HASH_START
    words: list[int] = []
    for clock, tag in tagged.tolist():
        site, stage, parity = (field(tag, which) for which in (form.TAG_SITE, form.TAG_STAGE, form.TAG_PARITY))
        value = hash_step(value, wait_block(site, stage, parity) if site in waits else site)
        words += [value, clock] if site in laps else [clock]
    return np.array([[word] for word in [*words, value]], dtype=np.uint32)


def full(tagged: Words, table: Table) -> Words:
    """(records, 2) of the tagged records of one agent."""
    found = []
    for row, (clock, tag) in enumerate(tagged.tolist()):
        site = field(tag, form.TAG_SITE)
        flags = Flag.PARITY * field(tag, form.TAG_PARITY)
        if table.sites[site].kind is EventKind.TRY:
            flags |= Flag.TRIED | Flag.PASSED * field(tag, form.TAG_VALUE)
        found.append((clock, full_tag(site, flags, row)))
    return np.array(found, dtype=np.uint32).reshape(-1, 2)
