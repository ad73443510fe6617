"""The command ``pipesim``: parses, hands over to one command, turns errors into exit codes.

0 agrees or safe; 1 findings or divergence; 2 usage; 3 unknown, untrustworthy or nothing to compare with; 4 outside the
tolerance. Only the modules of arguments are imported before a command is known, so that ``--help`` is fast.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from pipesim.cli import capture, diff, list_, run, verify
from pipesim.cli.arguments import Command
from pipesim.errors import PipesimError

COMMANDS: tuple[Command, ...] = (list_.COMMAND, run.COMMAND, capture.COMMAND, diff.COMMAND, verify.COMMAND)


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    top = argparse.ArgumentParser(
        prog="pipesim",
        description="Verify, explain and time the mbarrier pipelines of warp-specialised GPU kernels.",
        epilog="exit codes: 0 agrees · 1 findings or divergence · 2 usage · 3 unknown or nothing to compare with · 4 outside --tolerance",
    )
    top.add_argument("--version", action="version", version=_version())
    commands = top.add_subparsers(title="commands", dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        sub = commands.add_parser(command.name, help=command.summary, description=command.description)
        command.arguments(sub)
        sub.set_defaults(carry_out=command.carry_out)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    try:
        options = parser().parse_args(argv)
        code = int(options.carry_out(options))
        sys.stdout.flush()
    except PipesimError as error:
        print(f"pipesim: {error}", file=sys.stderr)  # noqa: T201  # the one place where errors reach a person
        return error.exit_code
    except BrokenPipeError:  # the reader of our output has gone: not an error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("pipesim: interrupted", file=sys.stderr)  # noqa: T201  # see above
        return 130
    return code


def _version() -> str:
    from pipesim import __version__

    return f"pipesim {__version__}"
