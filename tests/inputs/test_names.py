"""What a name may be."""

import pytest

from pipesim.bounds import MAX_NAME, MAX_TEXT
from pipesim.inputs import quoted_name, readable, wrong_identifier, wrong_name, wrong_text


@pytest.mark.parametrize("name", ["load", "pipe.full", "b[4].full", "é", "*/ }", "a" * MAX_NAME, "two words"])
def test_a_name_is_printable_and_short(name: str) -> None:
    assert wrong_name(name) == wrong_text(name) == ""
    assert readable(name) == name


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "it is empty"),
        ("a\nb", "it has the character U+000A"),
        ("\x1b[31m", "it has the character U+001B"),
        ("a\u2028", "it has the character U+2028"),
        ("\ud800", "it has the character U+D800"),
        ("\u202egnp.exe", "it has the character U+202E"),
        ("a" * (MAX_NAME + 1), "it has 201 characters; at most 200 are possible"),
    ],
)
def test_what_is_no_name(name: str, why: str) -> None:
    assert wrong_name(name) == wrong_identifier(name) == why
    assert readable(name) == quoted_name(name)
    assert quoted_name(name).isprintable()
    assert len(quoted_name(name)) < 60


@pytest.mark.parametrize("name", ["tiles", "_x1", "größe"])
def test_an_identifier(name: str) -> None:
    assert wrong_identifier(name) == ""


@pytest.mark.parametrize("name", ["a b", "1a", "*/", "a-b", "a.b", 'c_code{system("x")}'])
def test_a_name_that_is_no_identifier(name: str) -> None:
    assert wrong_identifier(name) == "a letter or _ comes first, then letters, digits and _"


def test_a_text_may_be_empty_and_have_the_characters_of_a_path() -> None:
    assert wrong_text("") == wrong_text("/home/a\u00a0b/\u200dk.py:3") == wrong_text("a" * MAX_TEXT) == ""
    assert wrong_text("a" * (MAX_TEXT + 1)) == "it has 4,097 characters; at most 4,096 are possible"
    assert wrong_text("a\tb") == "it has the character U+0009"
