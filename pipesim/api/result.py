"""What every result can do: show itself as one line, as the report, as HTML with its pictures, and as JSON."""

from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from html import escape
from typing import Any

from pipesim.answers.views.check import Brief
from pipesim.answers.views.conclusion import Conclusion
from pipesim.api.call_arguments import Given, GivenBoxes, GivenLaunch, GivenWords, KernelLaunch, build_target
from pipesim.explain.anatomy.parts import Anatomy
from pipesim.explain.anatomy.read import anatomy
from pipesim.formats.documents import anatomy_document, as_json, document_of
from pipesim.model.program import Program
from pipesim.ptx.source_files import SourceFiles, current_sources, lines_read_from
from pipesim.report.findings.brief import brief_of_findings
from pipesim.report.pages.document import in_words
from pipesim.report.pages.protocols.show import show_lines
from pipesim.report.pictures.svg import show_svg
from pipesim.report.text.console import text_of
from pipesim.report.text.words import count
from pipesim.trace.schema import Rows, as_pandas, rows_table

WIDTH = 100  #: cells of a report as text
_REPR = 100  #: characters of a repr
_PRE = "font-family:monospace;line-height:1.25;overflow-x:auto;white-space:pre;background:none;color:inherit"


class Result(ABC):
    """An answer that can render itself. The same result gives the same text, HTML and JSON every time."""

    def __post_init__(self) -> None:
        """Keep where the lines of its kernel are read: another kernel may be read before it shows itself."""
        object.__setattr__(self, "_sources", current_sources())

    def __repr__(self) -> str:
        said = f"<{type(self).__name__} {self._in_short()}>"
        return said if len(said) <= _REPR else f"{said[: _REPR - 2]}…>"

    def __str__(self) -> str:
        with self._source_reader():
            return text_of(self._lines(WIDTH))

    def _repr_html_(self) -> str:
        """The report and its pictures, for a notebook: no style or script of the page is touched, light or dark."""
        return html_of(str(self), self.pictures())

    def to_arrow(self) -> Any:
        """What the result lists, as a ``pyarrow.Table``: the events of a run, the findings of a check, and so on."""
        return rows_table(*self._rows())

    def to_pandas(self) -> Any:
        """The same as a ``pandas.DataFrame``. UsageError where pandas is not installed."""
        return as_pandas(self.to_arrow())

    def to_json(self) -> str:
        """The answer as JSON: the document that the command prints with ``--json``."""
        return as_json(self._document(), in_words)

    def _source_reader(self) -> AbstractContextManager[None]:
        """Inside, source lines are those of its kernel."""
        sources: SourceFiles | None = getattr(self, "_sources", None)
        return lines_read_from(sources)

    @abstractmethod
    def _in_short(self) -> str:
        """What the repr says: a few words."""

    @abstractmethod
    def _lines(self, width: int) -> list[str]:
        """The report in lines of at most ``width`` cells."""

    @abstractmethod
    def _document(self) -> object:
        """What :meth:`to_json` writes."""

    def _rows(self) -> Rows:
        """What :meth:`to_arrow` lists."""
        return {"text": str}, [{"text": line} for line in str(self).split("\n")]

    def pictures(self) -> Sequence[tuple[str, str]]:
        """The pictures of its HTML, each as a caption and an SVG."""
        return ()

    def svg(self) -> str:
        """The first of its pictures, "" if it has none."""
        return next((svg for _, svg in self.pictures()), "")


class VerdictResult(Result):
    """A result with a verdict. It is true in a condition only if it is ``ok``: never where that is unknown."""

    report: Any  #: the whole answer as data

    @property
    def conclusion(self) -> Conclusion:
        """The conclusion: agrees, wrong, unknown, or outside the tolerance."""
        found: Conclusion = self.report.conclusion
        return found

    @property
    def ok(self) -> bool | None:
        """True: nothing is wrong. False: something is. None: unknown."""
        return self.conclusion.ok

    @property
    def brief(self) -> Brief:
        """The answer in at most 2 kB: the verdict, and of the first finding what is wrong, where and what to do."""
        return brief_of_findings(self.conclusion.value, self._in_short(), getattr(self.report, "findings", ()))

    def __bool__(self) -> bool:
        return self.ok is True

    def _document(self) -> object:
        return document_of(self.report)


def html_of(text: str, pictures: Sequence[tuple[str, str]]) -> str:
    """A text and pictures (caption, SVG), for a notebook."""
    shown = "".join(_image(name, svg) for name, svg in pictures)
    return f'<div><pre style="{_PRE}">{escape(text)}</pre>{shown}</div>'


def _image(name: str, svg: str) -> str:
    """An SVG as an image of its own, so that neither its style nor its ids meet those of the page."""
    data = b64encode(svg.encode()).decode("ascii")
    return (
        f'<p><img alt="{escape(name)}" style="max-width:100%;background:#ffffff" '
        f'src="data:image/svg+xml;base64,{data}"></p>'
    )


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
