"""Expressions of the source as paths, and the array that a path is an element of."""

import pytest

from pipesim.ptx.names.cpp_text import CppText
from pipesim.ptx.names.paths import group_of, path_of, put_in


@pytest.mark.parametrize(
    ("expression", "path"),
    [
        ("at(&s.full[i])", "s.full[i]"),
        ("&this->barrier_", "this.barrier_"),
        ("static_cast<uint32_t>(__cvta_generic_to_shared(bars + stage))", "bars[stage]"),
        ("&(((half_t*)tile)[0])", "tile[0]"),
        ("storage.full_barrier_.data()", "storage.full_barrier_"),
        ("s->stages[k].empty", "s.stages[k].empty"),
        ("full.index(i % 2)", "full[i % 2]"),
        ("cute::cast_smem_ptr_to_uint(ptr)", "ptr"),
        ("&response[state.index()]", "response[state.index()]"),
        ("a ? b : c", ""),
        ("8 * i", ""),
    ],
)
def test_paths(expression: str, path: str) -> None:
    assert path_of(expression) == path


def test_a_parameter_is_what_was_given_for_it() -> None:
    assert put_in("bars[i].barrier_", "storage.full_") == "storage.full_[i].barrier_"
    assert put_in("ptr[i]", "&storage.full_[0]") == "storage.full_[i]"
    assert put_in("ptr[i]", "a ? b : c") == ""


def test_arrays() -> None:
    assert group_of("s.full[stage]") == ("s.full", -1)
    assert group_of("bars[3]") == ("bars", 3)
    assert group_of("bars[3][i]") == ("bars[3]", -1)
    assert group_of("stages[k].full") == ("stages.full", -1)


def test_a_place_that_the_text_does_not_have() -> None:
    """As of a source that was shortened after the kernel was compiled, and of line 0."""
    text = CppText(["init(a);", "b;"])
    assert [text.statement(text.place(*at)) for at in ((9, 80), (2, 80), (0, 80))] == [(11, 11), (11, 11), (11, 11)]
