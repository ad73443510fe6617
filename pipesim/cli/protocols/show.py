"""``pipesim show``: what a protocol consists of, as a diagram in the terminal and as SVG."""

import argparse
from pathlib import Path

from pipesim.cli import arguments as given
from pipesim.cli.output import progress, show_answer
from pipesim.errors import UsageError

_MOST_DRAWN = 2  #: kinds of CTAs with other parts than the first


def _arguments(parser: argparse.ArgumentParser) -> None:
    given.add_protocol(parser)
    given.add_launch(parser)
    given.add_value(parser, "--rank", "R", "the CTA of this rank in its cluster (default 0)", int, 0)
    given.add_value(parser, "--svg", "FILE", "also write the diagram as an SVG picture", Path)
    given.add_force(parser)
    given.add_untrusted(parser)


def _carry_out(options: argparse.Namespace) -> int:
    if options.svg is not None:
        if options.svg.suffix.lower() != ".svg":
            raise UsageError(
                f"--svg {options.svg}: the picture can only be written as SVG",
                correction=f"name it {options.svg.with_suffix('.svg')}",
            )
        given.require_output(options.svg, force=options.force)

    from pipesim.answers.every_cta.kinds import anatomies
    from pipesim.formats.documents import anatomy_document
    from pipesim.process.files import write_whole
    from pipesim.report.pages.protocols.show import show_lines
    from pipesim.report.pictures.svg import show_svg

    with progress(f"flattening {options.protocol}"):
        target = given.target_of(options, options.protocol)
        program = target.build(given.params_of(options), grid=options.ctas)
        found, *others = anatomies(target, program, options.rank)
    if options.svg is not None:
        write_whole(options.svg, show_svg(found).encode(), force=options.force)

    def lines(width: int) -> list[str]:
        more = [line for each in others[:_MOST_DRAWN] for line in ["", *show_lines(each, width)]]
        return [*show_lines(found, width, target.description), *more]

    return show_answer(options, anatomy_document(found), lines)


COMMAND = given.Command(
    "show",
    "draw a protocol: roles, barriers, tiles",
    "Draw a protocol: its roles, the barriers between them, the tiles they pass on, and the resources of a CTA.",
    _arguments,
    _carry_out,
    (
        ("pipesim show gemm_sm90", "roles, barriers and tiles of a built-in protocol"),
        ("pipesim show my_kernel.py -p stages=2 --svg my_kernel.svg", "that of your file, as a picture too"),
    ),
)
