"""What every SVG picture is made of: a file with a background of its own, lines of text, coordinates.

The colours stand on that background, so a picture is the same on a light page and on a dark one.
"""

from collections.abc import Sequence
from xml.sax.saxutils import escape

CELL = 7.0  #: width of a character of the words; the font is asked to keep to it
LINE = 16
MARGIN = 16

TEXT_STYLE = (
    "text{font:12px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1c2530}"
    ".name{font-weight:bold}.title{font-size:15px;font-weight:bold}.quiet{fill:#5b6673}"
)


def svg_file(title: str, style: str, defs: str, body: Sequence[str], width: float, height: float) -> str:
    """The file: ``body`` on a white background, ``title`` for those who cannot see it."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{px(width)}" height="{px(height)}" '
        f'viewBox="0 0 {px(width)} {px(height)}" role="img">'
    )
    return "\n".join(
        [
            head,
            f"<title>{xml_text(title)}</title>",
            f"<style>{style}</style>",
            f"<defs>{defs}</defs>",
            '<rect class="background" width="100%" height="100%" fill="#ffffff"/>',
            *body,
            "</svg>",
            "",
        ]
    )


def arrowhead(name: str, colour: str) -> str:
    """A marker for the end of a line, to stand in ``defs``."""
    return (
        f'<marker id="{name}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
        f'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z" fill="{colour}"/></marker>'
    )


def label(x: float, y: float, text: str, kind: str = "", *, middle_of: bool = False) -> str:
    """One line of text. Spaces that lead it are kept."""
    style = f' class="{kind}"' if kind else ""
    anchor = ' text-anchor="middle"' if middle_of else ""
    return f'<text{style} x="{px(x)}" y="{px(y)}"{anchor} xml:space="preserve">{xml_text(text)}</text>'


def box(kind: str, x: float, y: float, width: float, height: float, radius: int = 0) -> str:
    """A rectangle; its corners are round if ``radius`` says so."""
    corner = f' rx="{radius}"' if radius else ""
    return f'<rect class="{kind}" x="{px(x)}" y="{px(y)}" width="{px(width)}" height="{px(height)}"{corner}/>'


def xml_text(text: str, *, plain: bool = False) -> str:
    """Text as XML holds it: no character that XML has not; escaped unless ``plain``."""
    allowed = "".join(c if c.isprintable() else "?" for c in text)
    return allowed if plain else escape(allowed)


def px(value: float) -> str:
    """A coordinate: at most one decimal digit."""
    return f"{value:.1f}".removesuffix(".0")
