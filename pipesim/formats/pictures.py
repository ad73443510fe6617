"""What can be drawn of a protocol, and in which formats."""

from pipesim.errors import ParameterError

TIMELINE, COUNTEREXAMPLE, HANG = "timeline", "counterexample", "hang"
PICTURES = (TIMELINE, COUNTEREXAMPLE, HANG)
FORMATS = ("perfetto", "html", "svg")  #: of a timeline; of the others html and svg


def require_drawn(picture: str, to: str) -> None:
    """ParameterError where there is no such picture, or none in this format."""
    if picture not in PICTURES:
        raise ParameterError(f"there is no picture {picture!r}", correction=f"use one of {', '.join(PICTURES)}")
    if picture != TIMELINE and to not in ("html", "svg"):
        raise ParameterError(
            f"the picture of a {picture} cannot be exported to {to}",
            cause="a counterexample has moves and no times",
            correction="use html or svg",
        )
    if picture == HANG and to != "svg":
        raise ParameterError(
            f"the picture of a {HANG} is an SVG", correction=f"use svg, or the picture {COUNTEREXAMPLE}"
        )
