"""Operations in words: the names of barriers and tiles, and no operand that is as usual."""

from __future__ import annotations

from typing import Any

from pipesim.explain.operation_words import operation_in_words
from pipesim.lang.protocol import Protocol


def in_words(protocol: Protocol, agent: int = 0) -> list[str]:
    program = protocol.flatten()
    return [operation_in_words(program, operation) for operation in program.code[agent]]


def test_operations_carry_names_and_leave_out_what_is_default(ring: Any) -> None:
    words = in_words(ring(stages=2, tiles=3))
    assert words[0] == "init full[0] count 1"
    assert words[5] == "sync named barrier 0 (64 threads)"
    assert words[6:9] == ["wait empty[0] parity 1", "arrive full[0] + expect 64", "copy → tile[0] (item 0) on full[0]"]
    assert words[12:15] == [
        "wait empty[0] parity 0",
        "arrive full[0] + expect 64",
        "copy → tile[0] (item 2) on full[0]",
    ]
