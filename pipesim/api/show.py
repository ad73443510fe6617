"""``pipesim.show``: what a protocol consists of, as a diagram."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipesim.api.call_arguments import Given, GivenBoxes, GivenLaunch, GivenWords, KernelLaunch, build_target
from pipesim.api.result import Result
from pipesim.explain.anatomy.parts import Anatomy
from pipesim.explain.anatomy.read import anatomy
from pipesim.formats.documents import anatomy_document
from pipesim.model.program import Program
from pipesim.report.pages.show import show_lines
from pipesim.report.pictures.svg import show_svg
from pipesim.report.text.words import count


@dataclass(frozen=True, repr=False, eq=False)
class Diagram(Result):
    """The roles, barriers and tiles of one CTA. ``data`` lists them; ``description`` is the author's."""

    data: Anatomy
    description: str = ""

    def _in_short(self) -> str:
        barriers = sum(group.size for group in self.data.groups)
        return f"{self.data.name}: {count(len(self.data.roles), 'role')}, {count(barriers, 'barrier')}"

    def _lines(self, width: int) -> list[str]:
        return show_lines(self.data, width, self.description)

    def _document(self) -> object:
        return anatomy_document(self.data)

    def pictures(self) -> Sequence[tuple[str, str]]:
        """The diagram: a lane for each role, a row for each group of barriers and each tile."""
        return (_picture(self.data),)


def show(
    x: Given,
    *,
    rank: int = 0,
    ctas: int | None = None,
    launch: GivenLaunch = None,
    set: GivenWords = None,  # noqa: A002  # as the command's option
    box: GivenBoxes = None,
    **params: int,
) -> Diagram:
    """Draw a protocol: its roles, the barriers between them, and the tiles that they pass on.

    ``x``, the launch and ``params`` as in :func:`pipesim.check`; ``rank`` is the CTA of its cluster to show. Raises
    UsageError.
    """
    target, _, program = build_target(x, params, ctas, launch=KernelLaunch(launch, set, box))
    return Diagram(anatomy(program, rank), target.description)


def diagram_picture(program: Program) -> tuple[str, str]:
    """The picture of CTA 0 of a program: what it shows in words, and as SVG."""
    return _picture(anatomy(program))


def _picture(found: Anatomy) -> tuple[str, str]:
    return f"the roles and barriers of {found.name}", show_svg(found)
