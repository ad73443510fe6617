"""What the commands share: the shape of a command, and arguments that mean the same everywhere."""

from __future__ import annotations

import argparse
import math
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pipesim.bounds import MAX_JSON_BYTES
from pipesim.cli.completers import built_in, parameters, profiles, protocols
from pipesim.cli.output import progress
from pipesim.errors import ParameterError, UnknownProtocolError, UsageError
from pipesim.inputs import InputKind
from pipesim.process.files import require_free

if TYPE_CHECKING:
    from pipesim.model.coverage import Strictness
    from pipesim.model.program import Program
    from pipesim.targets import Target

WHOLE_TIME = 600.0  #: seconds that a command may take that has no steps, unless a person sets another limit
_CHECKED = InputKind(
    "JSON of a check", MAX_JSON_BYTES, ParameterError, "give what `pipesim check ... --json` of the same line printed"
)
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*([KMGTkmgt]?)(?:i?[Bb])?")
_WHOLE = re.compile(r"[+-]?[0-9]{1,4000}")  # int() takes 1_0 for 10, other alphabets' digits, and spaces


FOUND = ("entries", "list", "watch", "no_cache")  #: options of a path with kernels

Example = tuple[str, str]  #: a command as it is typed, and what it is for
Completer = Callable[..., list[str]]  #: called with ``prefix`` and ``parsed_args``, as argcomplete does


@dataclass(frozen=True)
class Command:
    """One command: its name, its line in the overview, its arguments, and what carries it out (gives the exit code).

    ``examples`` end its help; a test runs them. ``in_steps``: the time limit is that of each step (check and verify),
    and the command says itself when the work on one protocol begins (:func:`pipesim.cli.limits.start`).
    """

    name: str
    summary: str
    description: str
    arguments: Callable[[argparse.ArgumentParser], None]
    carry_out: Callable[[argparse.Namespace], int]
    examples: tuple[Example, ...] = ()
    in_steps: bool = False

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Its arguments, and ``--json``, which every command has."""
        self.arguments(parser)
        add_flag(parser, "--json", "print the result as JSON instead of a report")


def complete(action: argparse.Action, completer: Completer) -> None:
    """Let the shell complete an argument so; argcomplete looks for it under this name."""
    action.completer = completer  # type: ignore[attr-defined]


def names_of(names: Iterable[str]) -> Completer:
    """One of these words."""
    words = list(names)
    return lambda **_: words


def add_flag(parser: argparse._ActionsContainer, name: str, text: str) -> None:
    """An option without a value."""
    parser.add_argument(name, action="store_true", help=text)


def add_value(
    parser: argparse._ActionsContainer, names: str, metavar: str | None, text: str, kind: Callable[[str], object] = str,
    default: object = None, dest: str | None = None,
) -> argparse.Action:  # fmt: skip
    """An option with a value; ``names``: apart by spaces."""
    return parser.add_argument(*names.split(), metavar=metavar, help=text, type=kind, default=default, dest=dest)


def add_values(
    parser: argparse._ActionsContainer, names: str, metavar: str, text: str, kind: Callable[[str], object] = str,
    dest: str | None = None,
) -> argparse.Action:  # fmt: skip
    """An option that may be repeated: all its values in a list."""
    said = names.split()
    return parser.add_argument(*said, metavar=metavar, help=text, type=kind, dest=dest, action="append", default=[])


def add_protocol(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """The protocol, its parameters and the size of the launch. ``optional``: the protocol may be None."""
    named = parser.add_argument(
        "protocol",
        nargs="?" if optional else None,
        help="a built-in name (see `pipesim list`), file.py, file.py:function, or a program's .json",
    )
    complete(named, protocols)
    add_params(parser, "a parameter of the protocol; may be repeated")
    add_ctas(parser)


def add_chosen(parser: argparse.ArgumentParser, *, named: str, every: str) -> None:
    """Protocols, ``--all`` and ``--except``, read with :func:`named_protocols`; ``named``, ``every``: their help."""
    complete(parser.add_argument("protocol", nargs="*", help=named), protocols)
    add_flag(parser, "--all", every)
    text = "leave this one out of --all; may be repeated"
    complete(add_values(parser, "--except", "NAME", text, dest="excepted"), built_in)


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
        nothing = f"nothing is left to {verb}" if names else f"nothing is named to {verb}"
        new = ", of which pipesim new --ptx kernel.ptx writes the launch file; or"
        kernel = f"a kernel: pipesim check kernel.ptx{new}" if verb == "check" else "name"
        raise UsageError(nothing, correction=f"{kernel} a protocol (pipesim list), or --all for the built-in ones")
    return left


def add_launch(parser: argparse.ArgumentParser) -> None:
    """``--launch``, ``--set`` and ``--box`` of a kernel's PTX, to be read with :func:`target_of`."""
    add_value(parser, "--launch", "FILE", "the launch file of a .ptx (default: the .json beside it)", default="")
    text = (
        "a word of a .ptx kernel's parameters, by its byte offset, the CTA to follow, cta=5, or a size: grid=132, "
        "grid.y=2, block=384, shared=65536; of a Triton function an argument, BLOCK=64, a=*fp32; may be repeated"
    )
    add_values(parser, "--set", "OFFSET=VALUE", text, dest="sets")
    text = (
        "the box of the tensor map at a byte offset of a .ptx kernel's parameters, or of a parameter by its name, "
        "such as 0=bf16:64,128; TYPE may be left out where the launch file has it; may be repeated"
    )
    add_values(parser, "--box", "OFFSET=TYPE:SIZES", text, "--box {}".format, "sets")
    one = parser.add_argument_group("a folder, a program, a library, an object, a .cu, a .mojo, a function of Triton")
    add_values(
        one, "--entry", "NAME", "the kernel, by its name, or as 'gemm*', where there are several", dest="entries"
    )
    add_value(one, "--arch", "ARCH", "what a source is compiled for", default="")
    add_values(one, "-I --include", "DIR", "a folder of its headers")
    add_source_roots(parser)


def add_found(parser: argparse.ArgumentParser) -> None:
    """The options of a path with several kernels, each of which is checked."""
    found = parser.add_argument_group("several kernels; --entry may be repeated")
    add_flag(found, "--list", "list the kernels, and check none")
    add_jobs(found, "processes (default: as many as there are processors)")
    add_flag(found, "--no-cache", "neither look verdicts up nor keep them")
    add_flag(found, "--watch", "check again what changes, until Ctrl-C")


def add_jobs(parser: argparse._ActionsContainer, text: str) -> None:
    """``--jobs``, read with :func:`require_positive`."""
    add_value(parser, "--jobs", "N", text, int)


def require_positive(options: argparse.Namespace, *names: str) -> None:
    """ParameterError for a number of one of these options that is below 1."""
    for name in names:
        if (value := getattr(options, name)) is not None and value < 1:
            raise ParameterError(f"{flag_of(name)} {value}", correction="give 1 or more")


def refuse_beside(options: argparse.Namespace, asked: str, *names: str) -> None:
    """ParameterError for one of these options, which another one excludes."""
    for name in names:
        if getattr(options, name) not in (None, [], False):
            raise ParameterError(f"{asked} and {flag_of(name)}", correction="give one of them")


def flag_of(name: str) -> str:
    """An option as it is written, by its name among those that were parsed."""
    return f"--{name.replace('_', '-')}"


def has_kernels(options: argparse.Namespace, name: str) -> bool:
    """Whether a name is a path whose kernels are looked for: of a PTX file with an option for that."""
    from pipesim.protocol_files import jit_functions
    from pipesim.protocols.catalog import BUILT_IN
    from pipesim.targets import COMPILED, SOURCES

    path = Path(name)
    if not hasattr(options, "entries") or name in BUILT_IN:
        return False
    if path.suffix in (".ptx", *SOURCES):
        return path.suffix != ".ptx" or (path.exists() and any(getattr(options, each, None) for each in FOUND))
    if not path.exists() or path.suffix == ".py":
        return bool(jit_functions(name))
    if not path.is_file() or path.suffix in COMPILED:
        return path.is_dir() or path.suffix in COMPILED
    with path.open("rb") as file:  # a program, library or object, or an archive of these
        return file.read(8).startswith((b"\x7fELF", b"!<arch>\n"))


def add_source_roots(parser: argparse.ArgumentParser) -> None:
    """``--source-root``, which holds for the whole command (:mod:`pipesim.inputs`)."""
    text = "read source lines below DIR as well, not only below the file's folder and the current one; may be repeated"
    add_values(parser, "--source-root", "DIR", text, Path, "source_roots")


def add_untrusted(parser: argparse.ArgumentParser) -> None:
    """``--untrusted``."""
    text = (
        "for files of strangers: no Python protocol, no reads beside the inputs, no network and no process; "
        "by the kernel (Landlock, seccomp) where it can"
    )
    add_flag(parser, "--untrusted", text)


def target_of(options: argparse.Namespace, name: str, launch: str = "") -> Target:
    """What a command's argument names, with the launch that the options give, else ``launch``."""
    launch = options.launch or launch
    if has_kernels(options, name):
        from pipesim.cli.found_kernels import only_target  # with what most commands do without

        return only_target(options, name, launch)
    if name.endswith(".ptx") or launch or options.sets:
        from pipesim.targets import find

        return find(name, launch=launch, sets=options.sets)
    from pipesim.protocol_process import find as find_in_process

    return find_in_process(name)


def add_ctas(parser: argparse.ArgumentParser) -> None:
    """``--ctas``: the size of the launch."""
    text = "CTAs in the launch, whole clusters (default one cluster, or what a program's file says)"
    add_value(parser, "--ctas", "N", text, int)


def add_params(parser: argparse.ArgumentParser, text: str, metavar: str = "NAME=VALUE") -> None:
    """``-p NAME=VALUE``, to be read with :func:`params_of`."""
    complete(add_values(parser, "-p --param", metavar, text), parameters)


def add_profile(
    parser: argparse.ArgumentParser, text: str = "latency profile: h100, h200 or a JSON file (default h100)"
) -> None:
    """``--profile``, whose default ``text`` says."""
    complete(add_value(parser, "--profile", None, text), profiles)


def add_strict(parser: argparse.ArgumentParser) -> None:
    """``--strict`` and ``--strict-NAME``: what a verdict may not assume, read with :func:`strictness_of`."""
    from pipesim.model.coverage import Assumption

    rules = parser.add_argument_group(
        "assumptions", "what a proof may not rest on; `pipesim explain NAME` says what each is and who relies on it"
    )
    add_flag(rules, "--strict", "assume nothing: all of the following")
    for each in Assumption:
        rules.add_argument(each.switch, dest="strict_names", action="append_const", const=each, help=argparse.SUPPRESS)
    rules.add_argument(
        "--strict-NAME", dest="strict_help", action="store_true", help=", ".join(each.value for each in Assumption)
    )


def strictness_of(options: argparse.Namespace) -> Strictness:
    """The assumptions that a command line rules out."""
    from pipesim.model.coverage import STRICTEST, Strictness

    return STRICTEST if options.strict else Strictness(options.strict_names or ())


def build_target(
    options: argparse.Namespace, name: str, launch: str = "", *, timed: bool = False
) -> tuple[Target, Program]:
    """What a command names, by the optional rules that it asks for, and its program. ``timed``: to be simulated."""
    with progress(f"flattening {name}"):
        target = target_of(options, name, launch)
        target = (target.timed() if timed else target).with_strictness(strictness_of(options))
        return target, target.build(params_of(options), grid=options.ctas)


def schedule_text(given: str) -> str:
    """A schedule as ``check`` prints it; of ``@FILE`` or ``@FILE:N`` that of the first, or Nth, finding of a --json."""
    if not given.startswith("@"):
        return given
    named, _, nth = given[1:].rpartition(":") if re.search(r":\d{1,4}\Z", given) else (given[1:], "", "0")
    try:
        return str(
            _CHECKED.parse_json(_CHECKED.read_text(Path(named)), named)["report"]["refutations"][int(nth)]["replay"]
        )
    except (KeyError, IndexError, TypeError):
        raise ParameterError(f"{named} has no schedule of finding {nth}", correction=_CHECKED.correction) from None


def add_force(parser: argparse.ArgumentParser) -> None:
    """``--force``."""
    add_flag(parser, "--force", "overwrite an existing output file")


def add_caught(parser: argparse.ArgumentParser, out: Path, most_bytes: str) -> None:
    """Where what a program launches is written, of which kernels, and how much of it."""
    add_value(parser, "--out", "DIR", f"the folder to write (default {out})", Path, out)
    add_values(
        parser, "--kernels", "PATTERN", "only kernels whose name in the PTX matches, as 'gemm*'; may be repeated"
    )
    text = f"of what a process records, PTX included (default {most_bytes})"
    add_value(parser, "--max-bytes", "SIZE", text, bytes_of, bytes_of(most_bytes))


def add_dump(parser: argparse.ArgumentParser) -> None:
    """``--ptx``: where the PTX is of kernels of which the program loads machine code alone."""
    add_value(parser, "--ptx", "DIR", "PTX files of a compiler's dump, for kernels whose PTX is not found", Path)


def add_program(parser: argparse.ArgumentParser, name: str) -> None:
    """``-- COMMAND ARGUMENT ...``: the program that the command ``name`` runs."""
    parser.usage = f"pipesim {name} [OPTION ...] -- COMMAND [ARGUMENT ...]"
    parser.set_defaults(source_roots=[Path("/")])  # a program that runs with the user's rights, no file of a stranger
    text = "the program to run, and its arguments"
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="-- COMMAND", help=text)


def program_of(options: argparse.Namespace) -> list[str]:
    """The program and its arguments. UsageError if there is none."""
    words: list[str] = options.words[1:] if options.words[:1] == ["--"] else options.words
    if not words:
        name = options.command
        raise UsageError(f"{name}: no program is given", correction=f"pipesim {name} -- python train.py")
    return words


def add_tolerance(parser: argparse.ArgumentParser, more: str = "") -> None:
    """``--tolerance``; ``more`` is added to what it says about itself."""
    text = f"exit with 4 if the simulated period is further than this from the measured one{more}"
    add_value(parser, "--tolerance", "PERCENT", text, percentage)


def add_limits(parser: argparse.ArgumentParser, *, in_steps: bool) -> None:
    """``--time-limit`` and ``--max-memory``, which every command has: None if they are not given."""
    limits = parser.add_argument_group("limits: what is not known by then is unknown (exit code 3)")
    text = f"time that the command may take (default {WHOLE_TIME:.0f})"
    if in_steps:
        text = (
            "for each step after the verdict: smallest size, shorter schedule, corrections, other sizes (default: a "
            "limit of work, so that the answer does not depend on the machine); all of a protocol: 20 times as long"
        )
    add_value(limits, "--time-limit", "SECONDS", text, seconds_of)
    text = "memory of each of its processes, as 500M or 4G (default 8G, or three quarters of what the machine has)"
    add_value(limits, "--max-memory", "SIZE", text, bytes_of)


def bytes_of(text: str) -> int:
    """A size above 0 in bytes, or in units of 1024 (K), 1024² (M), 1024³ (G), as ``4G``; argparse reports the rest."""
    found = _SIZE.fullmatch(text.strip())
    size = int(float(found[1]) * 1024 ** " KMGT".index((found[2] or " ").upper())) if found else 0
    if size < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a size of memory, for example 500M or 4G")
    return size


def seconds_of(text: str) -> float:
    """A number of seconds above 0; argparse reports anything else."""
    if not 0 < (value := _number(text)) < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number of seconds above 0, for example 60")
    return value


def percentage(text: str) -> float:
    """A percentage of 0 or more, with or without its sign; argparse reports anything else."""
    if not 0 <= (value := _number(text.removesuffix("%"))) < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a percentage of 0 or more, for example 5")
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def add_window(parser: argparse.ArgumentParser, text: str) -> None:
    """``--window A..B``: iterations A to B-1, read as (A, B), None if not given."""
    add_value(parser, "--window", "A..B", text, window_of)


def window_of(text: str) -> tuple[int, int]:
    """``10..42`` as (10, 42): the iterations 10 to 41. argparse reports anything else."""
    first, dots, end = text.partition("..")
    if not (dots and first.isdecimal() and end.isdecimal() and max(len(first), len(end)) < 10):
        raise argparse.ArgumentTypeError(f"{text!r}: expected a window A..B of iterations, for example 10..42")
    window = int(first), int(end)
    if window[0] >= window[1]:
        raise argparse.ArgumentTypeError(
            f"the window {text} keeps no iteration, because it ends before its second number; for example "
            f"{window[0]}..{window[0] + 32}"
        )
    return window


def params_of(options: argparse.Namespace) -> dict[str, int]:
    """The ``-p name=value`` of a command line; ParameterError for one that is malformed or given twice."""
    params: dict[str, int] = {}
    for text in options.param:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise ParameterError(
                f"-p {text}: expected NAME=VALUE",
                cause="a parameter is a name, an equals sign and a whole number, without spaces",
                correction=f"for example -p {name or 'stages'}=4",
            )
        if name in params:
            raise ParameterError(f"{name} is given more than once", correction="give it once")
        if not _WHOLE.fullmatch(value):
            raise ParameterError(f"{name} takes a whole number, not {value!r}", correction=f"for example -p {name}=4")
        params[name] = int(value)
    return params


def require_output(path: Path | None, *, force: bool) -> None:
    """Raise, before any work is done, if ``path`` cannot become a file or exists and may not be overwritten."""
    if path is None:
        return
    require_free(path, force=force)
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {path.parent}", correction="create it first, or name another")
    if not os.access(path.parent, os.W_OK):
        raise UsageError(f"cannot write to the folder {path.parent}", correction="name another folder")
