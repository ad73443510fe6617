"""The front page, and what the site shows that is made from the code."""

import re

import pytest

import pipesim
from pipesim.cli.main import COMMANDS
from pipesim.targets import find
from tests.support.paths import ROOT
from tools import api_doc
from tools.site_hooks import ELSEWHERE, appendix, generated, relinked, title_of
from tools.stage_states import diagram, edge_words, state_lines

README = (ROOT / "README.md").read_text(encoding="utf-8")


class TestFrontPage:
    def test_is_short(self) -> None:
        assert len(README.splitlines()) <= 200

    def test_has_at_most_five_commands_from_itself_to_a_picture(self) -> None:
        blocks = re.findall(r"^```sh\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
        install, own = blocks[0].splitlines(), blocks[1].splitlines()
        assert len(install) + len(own) <= 5
        assert own[-1].startswith("pipesim export kernel.ptx --to html --picture counterexample --open")

    def test_counts_the_kernels_as_their_page_does(self) -> None:
        page = (ROOT / "docs" / "kernels-in-the-wild.md").read_text(encoding="utf-8")
        every, _, proved, refuted, unknown = re.search(r"^\| all " + r"\| (\d+) " * 5, page, re.MULTILINE).groups()  # type: ignore[union-attr]
        median = re.search(r"From PTX to verdict: median ([\d.]+ s)", page)
        assert median is not None
        said = " ".join(README.split())
        assert (
            f"Of {every} kernels of these families and of ours, unchanged, {proved} are proved, {refuted} refuted"
            in said
        )
        assert f"refuted and {unknown} unknown, in a median of {median[1]}:" in said

    def test_has_the_commands_of_ci(self) -> None:
        ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
        assert "pipesim verify producer_consumer\n" in README
        assert 'pipesim" verify producer_consumer)' in ci
        assert "install -e '.[test]' && .venv/bin/pytest\n" in README


def test_the_site_has_every_page_in_its_menu() -> None:
    menu = set(
        re.findall(r"^ +- (?:.*: )?([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    )
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    made = {"api-reference.md"}
    assert menu == pages | made | set(ELSEWHERE.values()), "add it to nav in mkdocs.yml"


class TestGenerated:
    def test_the_reference_has_every_public_name(self) -> None:
        page = api_doc.page()
        assert [name for name in pipesim.__all__ if name != "__version__" and f"\n### {name}\n" not in page] == []
        assert page.count("\n### ") >= len(pipesim.__all__)

    def test_every_schema_is_a_file(self) -> None:
        made = generated(ROOT)
        assert {"api-reference.md", "schemas/check.v1.json"} <= made.keys()
        assert "schemas/program.v1.json" not in made, "it is committed"

    def test_every_command_has_its_help_below_the_page(self) -> None:
        shown = appendix("commands.md")
        assert all(f"\n## {command.name}\n\n```text\nusage: pipesim {command.name} " in shown for command in COMMANDS)

    def test_a_protocol_has_its_docstring_and_its_diagram_below_its_page(self) -> None:
        shown = appendix("protocols/producer_consumer.md")
        assert "One load warp fills a ring" in shown
        assert "shared memory 65,600 of 232,448 bytes" in shown
        assert (appendix("protocols/nothing.md"), appendix("proof.md")) == ("", "")


class TestStates:
    def test_of_a_ring(self) -> None:
        found = diagram(find("producer_consumer").build({"stages": 2, "tiles": 5}), ("full", "empty"))
        assert [state_lines(found, n) for n in range(len(found.states))] == [
            ["full: 1 arrival pending", "empty: 2 arrivals pending", "producer passes wait empty[0]"],
            ["full: 0 arrivals pending, 16,384 bytes", "empty: 2 arrivals pending"],
            [
                "full: complete; of the next phase 1 arrival pending", "empty: 2 arrivals pending",
                "consumer passes wait full[0]",
            ],
            ["full: complete; of the next phase 1 arrival pending", "empty: 1 arrival pending"],
        ]  # fmt: skip
        assert [(start, end, edge_words(said)) for start, end, said in found.edges] == [
            (0, 1, "producer: arrive full[0] + expect 16,384"),
            (1, 2, "16,384 bytes land in tile[0]"),
            (2, 3, "consumer: arrive empty[0]"),
            (3, 0, "consumer: arrive empty[0]"),
        ]


class TestLinks:
    THERE = frozenset({"index.md", "proof.md", "schemas/README.md", "examples/ring.py", *ELSEWHERE.values()})

    @pytest.mark.parametrize(
        ("page", "before", "after"),
        [
            ("index.md", "[a](docs/proof.md#b)", "[a](proof.md#b)"),
            (
                "index.md",
                "![a](docs/examples/ring.py), [b](CHANGELOG.md#c)",
                "![a](examples/ring.py), [b](changelog.md#c)",
            ),
            ("proof.md", "[a [b]](../tools/README.md)", "[a [b]](tools.md)"),
            ("proof.md", "[s](schemas) [i](../README.md)", "[s](schemas/README.md) [i](index.md)"),
            ("proof.md", "[h](https://x/y) [a](#b)", "[h](https://x/y) [a](#b)"),
            ("schemas/README.md", "[p](../proof.md)", "[p](../proof.md)"),
            ("proof.md", "[`source`](../pipesim/source.py)", "`source`"),
            ("proof.md", "[gone](gone.md)", "[gone](gone.md)"),
            (
                "proof.md",
                "```\n[a](../README.md)\n```\n[a](../README.md)",
                "```\n[a](../README.md)\n```\n[a](index.md)",
            ),
        ],
    )
    def test_lead_to_pages(self, page: str, before: str, after: str) -> None:
        assert relinked(before, page, self.THERE, lambda name: name == "pipesim/source.py") == after

    def test_every_page_has_a_title(self) -> None:
        assert {path.name for path in (ROOT / "docs").glob("*.md") if not title_of(path)} == set()
