"""What an agent may ask, each a command of pipesim in a process of its own, and its answer as JSON of at most 2 kB.

Every call is a command line with ``--json``: what is refused there, and limited, is so here.
"""

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, assert_never

from pipesim.errors import InternalError, PipesimError, UsageError
from pipesim.formats.documents import document, plain
from pipesim.model.coverage import Assumption
from pipesim.report.text.layout import middle

MOST_BYTES = 2_048  #: of an answer
_MOST_CELLS = (400, 200, 100, 40)  #: of a text in an answer that is too long
_ALL = "all"


class ArgumentForm(Enum):
    """How an argument is given; the value is its JSON Schema."""

    TEXT = {"type": "string"}  # noqa: RUF012  # a value of an enum
    TEXTS = {"type": "array", "items": {"type": "string"}}  # noqa: RUF012
    FLAG = {"type": "boolean"}  # noqa: RUF012
    SECONDS = {"type": "number", "exclusiveMinimum": 0}  # noqa: RUF012
    ASSUMPTIONS = {  # noqa: RUF012
        "type": "array", "items": {"enum": [_ALL, *(each.value for each in Assumption)]}
    }  # fmt: skip


@dataclass(frozen=True)
class ToolArgument:
    """An argument of a tool: ``option`` is the command's, "" for what has none. ``needed``: not optional."""

    what: str
    form: ArgumentForm = ArgumentForm.TEXT
    option: str = ""
    needed: bool = False


@dataclass(frozen=True)
class AgentTool:
    """A tool: its name, what it answers, the words of its command line, and its arguments by name."""

    name: str
    what: str
    words: tuple[str, ...]
    arguments: Mapping[str, ToolArgument]

    def schema(self) -> dict[str, object]:
        """The JSON Schema of the arguments."""
        return {
            "type": "object",
            "properties": {
                name: {**each.form.value, "description": each.what} for name, each in self.arguments.items()
            },
            "required": [name for name, each in self.arguments.items() if each.needed],
            "additionalProperties": False,
        }

    def line(self, given: Mapping[str, object]) -> list[str]:
        """The words of the command line for these arguments. UsageError for others than it has."""
        for name in given.keys() - self.arguments.keys():
            known = ", ".join(self.arguments)
            raise UsageError(f"{self.name} has no argument {name!r}", correction=f"it has {known}")
        words, alone = list(self.words), list[str]()
        for name, argument in self.arguments.items():
            value = given.get(name)
            if value is None and argument.needed:
                raise UsageError(f"{self.name} needs the argument {name!r}", correction=f"{name}: {argument.what}")
            texts = list(_words(argument, f"{name!r} of {self.name}", value))
            (words if argument.option or argument.form is ArgumentForm.ASSUMPTIONS else alone).extend(texts)
        return [*words, "--", *alone]


def _words(argument: ToolArgument, name: str, value: object) -> Iterator[str]:
    option = f"{argument.option}=" if argument.option else ""
    match argument.form:
        case _ if value is None:
            return
        case ArgumentForm.TEXT if isinstance(value, str) and value and "\0" not in value:
            yield f"{option}{value}"
        case ArgumentForm.SECONDS if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            yield f"{option}{value}"
        case ArgumentForm.FLAG if isinstance(value, bool):
            yield from [argument.option] * value
        case ArgumentForm.TEXTS if isinstance(value, list) and all(isinstance(each, str) for each in value):
            yield from (f"{option}{each}" for each in value)
        case ArgumentForm.ASSUMPTIONS if isinstance(value, list):
            switches = {_ALL: "--strict", **{each.value: each.switch for each in Assumption}}
            if any(each not in switches for each in value):
                raise UsageError(f"{name} names another assumption", correction=f"there are {', '.join(switches)}")
            yield from (switches[each] for each in value)
        case (
            ArgumentForm.TEXT | ArgumentForm.SECONDS | ArgumentForm.FLAG | ArgumentForm.TEXTS | ArgumentForm.ASSUMPTIONS
        ):
            raise UsageError(f"{name} is {middle(repr(value), 60)}", correction=f"by its schema: {argument.form.value}")
        case _:
            assert_never(argument.form)


_KERNEL = ToolArgument("a kernel's .ptx, or a program's .json; a path from the server's folder", needed=True)
_CHECKED = {
    "launch": ToolArgument("the launch file of a .ptx (default: the .json beside it)", option="--launch"),
    "set": ToolArgument("words of the parameters, as n=4096 or 20=2048", ArgumentForm.TEXTS, "--set"),
    "strict": ToolArgument("assumptions that the verdict may not make, or all", ArgumentForm.ASSUMPTIONS),
    "seconds": ToolArgument("time limit of each step after the verdict", ArgumentForm.SECONDS, "--time-limit"),
}
_ANY = ToolArgument("words that may have any value, as K=64..:64", ArgumentForm.TEXTS, "--any")
_BRIEF = ("check", "--format=brief")

TOOLS = (
    AgentTool(
        "check",
        "Whether any schedule of a GPU kernel hangs, races or breaks a rule of synchronisation: proved, refuted with "
        "the place, the cause and a correction, or unknown. Ask after every change of a kernel.",
        _BRIEF,
        {
            "file": _KERNEL,
            "quick": ToolArgument("the verdict alone, without a correction", ArgumentForm.FLAG, "--quick"),
            "any": _ANY,
            **_CHECKED,
        },
    ),
    AgentTool(
        "explain",
        "What a kind of finding (as deadlock, race) or an assumption of a verdict (as proxies) is: its cause, how it "
        "shows on the hardware, what corrects it.",
        ("explain", "--json"),
        {"name": ToolArgument("the kind of a finding, or an assumption, as an answer names it", needed=True)},
    ),
    AgentTool(
        "replay",
        "Whether the schedule of a finding still fails: replays it on a kernel, for example on a changed one.",
        _BRIEF,
        {
            "file": _KERNEL,
            "schedule": ToolArgument("the text after --replay in an answer of check", option="--replay", needed=True),
            **_CHECKED,
        },
    ),
    AgentTool(
        "against",
        "What a change of a kernel did: findings that are new, gone or unchanged, and how many differences its "
        "synchronisation has.",
        _BRIEF,
        {
            "new": _KERNEL,
            "old": ToolArgument("the older version of it", option="--against", needed=True),
            "any": _ANY,
            **_CHECKED,
        },
    ),
    AgentTool(
        "redundant",
        "Which waits, fences, arrives and barriers of a proved kernel could be removed, each proved without it.",
        (*_BRIEF, "--redundant"),
        {"file": _KERNEL, **_CHECKED},
    ),
    AgentTool(
        "autopsy",
        "Who waits for whom in a kernel that hung, from a core dump of its GPU.",
        ("autopsy", "--format=brief"),
        {
            "core": ToolArgument("the core dump, or the folder of `pipesim hang`", needed=True),
            "check": ToolArgument("whether check predicts this hang", ArgumentForm.FLAG, "--check"),
            "ptx": ToolArgument("the kernel's PTX, if it is not in the dump", option="--ptx"),
        },
    ),
)  # fmt: skip
_BY_NAME = {each.name: each for each in TOOLS}


async def answer(name: str, given: Mapping[str, object], *, python: bool) -> tuple[str, bool]:
    """The answer of a tool as JSON in one line, and whether it is an error.

    ``python``: files of Python may be run; without it a call is confined as by ``--untrusted``.
    """
    try:
        if name not in _BY_NAME:
            raise UsageError(f"there is no tool {name!r}", correction=f"there are {', '.join(_BY_NAME)}")
        words = _BY_NAME[name].line(given)
        confined = ["--untrusted"] if not python and words[0] != "explain" else []
        with TemporaryDirectory() as folder:  # a confined process can make none
            confined += [f"--save-launch={folder}"] * (words[0] == "autopsy" and bool({"check", "ptx"} & given.keys()))
            made = await _document([words[0], *confined, *words[1:]])
    except PipesimError as error:
        made = {name: plain(part) for name, part in document("error", error.exit_code, error=error).items()}
    return _in_bounds(made), "error" in made


async def _document(words: list[str]) -> dict[str, Any]:
    """What a command prints as JSON. It is ended with the call."""
    pipe = asyncio.subprocess.PIPE
    path = [str(Path(__file__).parents[2]), *sys.path]  # the same pipesim, and no module of the current folder
    code = f"import sys; sys.path[:] = {path!r}; import pipesim; del sys.path[0]; from pipesim.__main__ import run; "
    command = (sys.executable, "-P", "-c", f"{code}sys.exit(run())", *words)
    process = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe)
    try:
        out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    try:
        made = json.loads(out)
        assert isinstance(made, dict)
    except (ValueError, AssertionError):  # a line that cannot be parsed has no document
        said = err.decode("utf-8", "replace").strip().removeprefix("pipesim: ")
        if process.returncode == UsageError.exit_code:
            fact, _, correction = said.partition("\n  try: ")
            raise UsageError(fact, correction=correction) from None
        cause = f"it ended with status {process.returncode}: {middle(said, _MOST_CELLS[0])}"
        raise InternalError(f"pipesim {words[0]} printed no answer", cause=cause) from None
    return made


def _in_bounds(made: dict[str, Any]) -> str:
    """A document in one line, without what it has room for: examples, a schedule, then the middle of long texts."""
    text = json.dumps(made)
    for least in ("corrected", "example", "replay"):
        if len(text) > MOST_BYTES:
            text = json.dumps(made := _map(made, lambda name, value: "" if name == least else value))  # noqa: B023
    for most in _MOST_CELLS:
        if len(text) > MOST_BYTES:
            text = json.dumps(_map(made, lambda _, value: middle(value, most)))  # noqa: B023
    return text


def _map(value: Any, change: Any, name: str = "") -> Any:
    """A document with each of its texts changed, which ``change`` gets with the name of its member."""
    if isinstance(value, dict):
        return {key: _map(part, change, key) for key, part in value.items()}
    if isinstance(value, list):
        return [_map(part, change, name) for part in value]
    return change(name, value) if isinstance(value, str) else value
