"""The protocols that a command line names: some, or all built-in ones without those that it leaves out."""

from __future__ import annotations

import argparse

from pipesim.cli.completers import built_in, complete, protocols
from pipesim.errors import UnknownProtocolError, UsageError


def add_chosen(parser: argparse.ArgumentParser, *, named: str, every: str) -> None:
    """Protocols, ``--all`` and ``--except``, read with :func:`named_protocols`; ``named``, ``every``: their help."""
    complete(parser.add_argument("protocol", nargs="*", help=named), protocols)
    parser.add_argument("--all", action="store_true", help=every)
    excepted = parser.add_argument(
        "--except", dest="excepted", metavar="NAME", action="append", default=[],
        help="leave this one out of --all; may be repeated",
    )  # fmt: skip
    complete(excepted, built_in)


def named_protocols(options: argparse.Namespace, verb: str) -> list[str]:
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
