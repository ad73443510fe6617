"""The protocols that a command line names, one or several, and the program of one."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from pipesim.cli.arguments import params_of, strictness_of, target_of
from pipesim.cli.completers import built_in, complete, protocols
from pipesim.cli.output import progress
from pipesim.errors import UnknownProtocolError, UsageError

if TYPE_CHECKING:
    from pipesim.model.program import Program
    from pipesim.targets import Target


def add_chosen(parser: argparse.ArgumentParser, *, named: str, every: str) -> None:
    """Protocols, ``--all`` and ``--except``, to be read with :func:`chosen`; ``named`` and ``every`` are their help."""
    complete(parser.add_argument("protocol", nargs="*", help=named), protocols)
    parser.add_argument("--all", action="store_true", help=every)
    excepted = parser.add_argument(
        "--except", dest="excepted", metavar="NAME", action="append", default=[],
        help="leave this one out of --all; may be repeated",
    )  # fmt: skip
    complete(excepted, built_in)


def chosen(options: argparse.Namespace, verb: str) -> list[str]:
    """The protocols that a command line names, each once, in its order; with ``--all`` those built in after them.

    ``verb``: what is done with them. UsageError if there is none, or if something is to be left out that is not there.
    """
    import difflib

    from pipesim.protocols.catalog import BUILT_IN

    if options.excepted and not options.all:
        raise UsageError("--except removes protocols from --all, which was not given", correction="give both")
    names = list(dict.fromkeys([*options.protocol, *(sorted(BUILT_IN) if options.all else [])]))
    for name in options.excepted:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=3, cutoff=0.4)
            raise UnknownProtocolError(
                f"there is no protocol {name!r} to leave out",
                correction=f"did you mean {' or '.join(near)}?" if near else "see `pipesim list`",
            )
    left = [name for name in names if name not in options.excepted]
    if not left:
        nothing = f"nothing is left to {verb}" if names else "no protocol is named"
        raise UsageError(nothing, correction="give one or several, or --all for the built-in ones")
    return left


def built(options: argparse.Namespace, name: str, *, timed: bool = False) -> tuple[Target, Program]:
    """What a command names, by the optional rules that it asks for, and its program. ``timed``: to be simulated."""
    with progress(f"flattening {name}"):
        target = target_of(options, name)
        target = (target.timed() if timed else target).judging(strictness_of(options))
        return target, target.build(params_of(options), grid=options.ctas)
