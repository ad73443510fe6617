"""A protocol's file in a process of its own: what it does to that process is not done to the one that answers.

The file is code, so it may print, call ``os._exit(0)`` or change modules of pipesim. The process that gives the verdict
runs none of it: it gets the flat program as data. The other one is forked, which costs milliseconds (where a system has
no fork, another Python is started), and is asked for a program of other parameters as often as needed; its standard
output is standard error. It ends with this process.
"""

from __future__ import annotations

import marshal
import os
import signal
import struct
import subprocess
import sys
import traceback
import warnings
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from importlib import import_module
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from pipesim import errors, targets
from pipesim.errors import PipesimError, ProtocolError
from pipesim.inputs import quote_protocols_of
from pipesim.lang.author import in_words, raised_at
from pipesim.model.coverage import Assumed, Assumption, Coverage, NotJudged, NotJudgedKind
from pipesim.model.ops import Space
from pipesim.model.program import Program
from pipesim.model.tables import Access, Agent, Barrier, SourceInstruction, Tile, Work
from pipesim.process.parent import end_forks, end_with
from pipesim.process.system import HAS_FORK, KILL, set_held
from pipesim.process.watch import current, forget_in_child, in_main_thread, signals_held
from pipesim.protocol_files import require_python_allowed
from pipesim.protocols.catalog import BUILT_IN
from pipesim.targets import Target

if TYPE_CHECKING:
    from pipesim.prove.repair.kinds import Ranked, Repair

_HEAD = ">8sQI"  #: of a message before its body: its mark, the length, and the checksum
_MARK = b"pipesim\n"
_PART = 1 << 20  #: bytes that are read in one call
_MOST_FILES = 1 << 16  #: descriptors of a process
_TARGET, _PROGRAM, _ERROR, _MEMORY, _INTERNAL = range(5)  #: what an answer is
Message = tuple[Any, ...]

_running: set[_Process] = set()


def find(text: str) -> Target:
    """The target that ``text`` names, as :func:`pipesim.targets.find`; a Python file runs in a process of its own.

    Raises as that does; ProtocolError if that process ends before it has answered. :func:`close` ends the processes.
    """
    file = text.rpartition(":")[0] if not text.removesuffix(":").endswith(".py") else text.removesuffix(":")
    if text in BUILT_IN or not file.endswith(".py"):
        return targets.find(text)
    require_python_allowed(Path(file))
    quote_protocols_of(Path(file))
    process = _Process(text)
    try:
        return process.target()
    except BaseException:
        process.close()
        raise


def said_of(file: str, module: str, function: str, *words: str) -> tuple[str, ...]:
    """What a function of pipesim says of a Python file, in a process of the file's own: it gets the path and ``words``.

    Raises as :func:`find` does of a file that cannot be imported, and what the function raises.
    """
    require_python_allowed(Path(file))
    process = _Process(file, module, function, *words)
    try:
        process.start()
        return tuple(map(str, process.description[1:]))
    finally:
        process.close()


def close() -> None:
    """End the processes of all files; a target of one starts it again when it is asked for a program."""
    for process in list(_running):
        process.close()


class _Process:
    """The process of one file, started where it is needed; lost after an exception, as what it would say next is."""

    def __init__(self, text: str, *asked: str) -> None:
        self._text, self._asked = text, asked  #: what find is asked, or the module and name of a function, and words
        self._child = 0
        self._started: subprocess.Popen[bytes] | None = None  #: where there is no fork
        self.description: Message = ()  #: what it says first

    def target(self) -> Target:
        """What it says about the file."""
        self.start()
        defaults, *words = self.description
        name, summary, description, spelling = map(str, words)
        found = Target(name, None, None, defaults, summary, spelling, description=description)
        return replace(found, maker=self.program, changer=self.changed, word_changer=self.word_changes)

    def program(self, values: dict[str, int], twice: bool) -> Program:  # noqa: FBT001  # as Target calls it
        """The program of these parameters. Raises as the file's function and its roles do."""
        return _program(self._made((values, twice)))

    def changed(self, values: dict[str, int], repair: Repair) -> Program | None:
        """As :meth:`Target.changed`."""
        parts = self._made((values, _plain_repair(repair)))
        return _program(parts) if parts else None

    def word_changes(self, values: dict[str, int]) -> tuple[Ranked, ...]:
        """As :meth:`Target.word_changes`."""
        return tuple((rank, _repair(how)) for rank, how in self._made((values, ())))

    def _made(self, request: Message) -> Message:
        try:
            self.start()
            _send(self._requests, request)
            return self._answer(_PROGRAM)
        except PipesimError:
            raise
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Kill it: it holds nothing that could be lost."""
        if not self._child:
            return
        child, self._child = self._child, 0
        current().leave(child)
        _running.discard(self)
        with suppress(OSError):  # it has ended
            os.kill(child, KILL)
        with suppress(ChildProcessError):
            self._end_of(child)
        os.close(self._requests)
        os.close(self._answers)

    def start(self) -> None:
        """Unless it runs."""
        if self._child:
            return
        inbox, self._requests = os.pipe()
        self._answers, outbox = os.pipe()
        parent = os.getpid() if in_main_thread() else 0
        with signals_held() as mask:
            if HAS_FORK:
                self._child = _fork()
                if not self._child:
                    _be_the_child((self._text, *self._asked), inbox, outbox, parent, mask)
            else:
                self._started = _another_python((self._text, *self._asked), inbox, outbox)
                self._child = self._started.pid
            _running.add(self)
        os.close(inbox)
        os.close(outbox)
        current().follow(self._child)
        try:
            self.description = self._answer(_TARGET)
        except BaseException:
            self.close()
            raise

    def _answer(self, wanted: int) -> Message:
        """What it answers, or the error that it reports instead."""
        try:
            answer = _receive(self._answers)
        except ValueError:
            raise self._lost("its answer is damaged") from None
        if answer is None:
            raise self._ended_error()
        kind, *parts = answer
        if kind == wanted:
            return tuple(parts)
        if kind == _ERROR:
            name, fact, place, cause, correction = map(str, parts)
            raise getattr(errors, name)(fact, place=place, cause=cause, correction=correction)
        if kind == _MEMORY:
            current().out_of_memory()
            raise ProtocolError(f"{self._text} needs more memory than there is", place=str(parts[0]))
        unexpected = RuntimeError(f"in the process of {self._text}: {parts[0]}")
        unexpected.add_note(str(parts[1]))
        raise unexpected

    def _ended_error(self) -> ProtocolError:
        """It ended instead of an answer."""
        code = self._end_of(self._child)
        if code == -KILL and current().is_over_memory:
            current().out_of_memory()
        return self._lost(f"exit code {code}" if code >= 0 else f"ended by {signal.Signals(-code).name}")

    def _end_of(self, child: int) -> int:
        """Wait until it has ended; its exit code, or the number of the signal that ended it, negative."""
        if self._started is not None:
            return self._started.wait()
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def _lost(self, how: str) -> ProtocolError:
        self.close()
        return ProtocolError(
            f"the process of {self._text} ended before it returned a program",
            cause=f"{how}: the file or a role may have called os._exit(), or closed or written to another's files",
            correction="let the function return its protocol, and its roles end by themselves",
        )


def _fork() -> int:
    """As os.fork. The child uses no lock that another thread of this process may hold: it has streams of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _another_python(call: tuple[str, ...], inbox: int, outbox: int) -> subprocess.Popen[bytes]:
    """Of a system without fork: a process that has the two pipes as its standard streams, and the modules of this."""
    script = f"from {__name__} import serve_from; serve_from({call!r})"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONSAFEPATH": "1"}
    return subprocess.Popen([sys.executable, "-c", script], stdin=inbox, stdout=outbox, env=environment)  # noqa: S603


# in the child


def serve_from(call: tuple[str, ...]) -> NoReturn:
    """In a Python that was started for a file: its standard streams are the pipes, until it has taken them."""
    inbox, outbox = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    _be_the_child(call, inbox, outbox, 0, set())


def _be_the_child(call: tuple[str, ...], inbox: int, outbox: int, parent: int, mask: set[int]) -> NoReturn:
    try:
        forget_in_child()
        set_held(mask)
        _detach(inbox, outbox)
        if parent:
            end_with(parent)
            end_forks()
        _serve(*call, inbox=inbox, outbox=outbox)
    finally:
        os._exit(1)  # the parent sees that there is no answer, and says so


def _detach(inbox: int, outbox: int) -> None:
    """Standard output is the report's; of the parent's files only the two pipes and standard error stay open."""
    low, high = sorted((inbox, outbox))
    for first, end in ((3, low), (low + 1, high), (high + 1, _MOST_FILES)):
        os.closerange(first, end)
    try:
        os.dup2(2, 1)
    except OSError:  # standard error is closed
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
    # they may hold what the parent writes
    _streams_of_parent.extend((sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__))
    stream = os.fdopen(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)
    sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = stream  # type: ignore[misc]  # of this process alone


_streams_of_parent: list[object] = []


def _serve(text: str, module: str = "", function: str = "", *words: str, inbox: int, outbox: int) -> None:
    """Describe the file, then make programs, until the parent asks no more."""
    me = os.getpid()
    target: Target | None = None

    def describe_file() -> Message:
        nonlocal target
        if module:
            return _TARGET, {}, *map(_exact, getattr(import_module(module), function)(Path(text), *words))
        target = targets.find(text)
        said = (target.name, target.summary, target.description, target.spelling)
        return _TARGET, {_exact(name): int(value) for name, value in target.defaults.items()}, *map(_exact, said)

    def make_program(values: dict[str, int], how: bool | Message) -> Message:  # noqa: FBT001  # as it is asked for
        assert target is not None, "the parent asks for no program of what is not there"
        if isinstance(how, bool):
            return _PROGRAM, *_plain(target.build(values, twice=how))
        if not how:
            return _PROGRAM, *((rank, _plain_repair(each)) for rank, each in target.word_changes(values))
        changed = target.changed(values, _repair(how))
        return _PROGRAM, *(_plain(changed) if changed is not None else ())

    answer = _carried_out(describe_file)
    while True:
        if os.getpid() != me:  # a process that a role forked also came here
            os._exit(0)
        _send(outbox, answer)
        request = _receive(inbox)
        if request is None:
            os._exit(0)
        answer = _carried_out(partial(make_program, *request))


def _carried_out(do: Callable[..., Message]) -> Message:
    """What it gives, or what it raises, as a message."""
    try:
        return do()
    except PipesimError as error:
        kind = next(each.__name__ for each in type(error).__mro__ if getattr(errors, each.__name__, None) is each)
        if _is_out_of_memory(error):
            return _MEMORY, error.place
        return _ERROR, kind, *map(_exact, (error.fact, error.place, error.cause, error.correction))
    except MemoryError as error:
        return _MEMORY, raised_at(error)
    except Exception as error:  # noqa: BLE001  # the parent reports it as what it is
        return _INTERNAL, in_words(error), traceback.format_exc()
    except BaseException as error:  # noqa: BLE001  # no signal is raised here: a role raised it
        return _ERROR, ProtocolError.__name__, f"a role or the file raised {in_words(error)}", raised_at(error), "", ""


def _is_out_of_memory(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, MemoryError):
        error = error.__cause__
    return error is not None


# messages: a mark, a length, a checksum, and plain values as Python writes them, which nothing evaluates


def _send(to: int, message: Message) -> None:
    body = marshal.dumps(message)
    left = memoryview(struct.pack(_HEAD, _MARK, len(body), zlib.crc32(body)) + body)
    while left:
        left = left[os.write(to, left) :]


def _receive(source: int) -> Message | None:
    """The next message, None if the other end has exited. ValueError for what :func:`_send` did not write."""
    head = _read(source, struct.calcsize(_HEAD))
    if not head:
        return None
    mark, length, checksum = struct.unpack(_HEAD, head)
    if mark != _MARK:
        raise ValueError("what was read is not the head of a message")
    body = _read(source, length)
    if not body:
        return None
    if zlib.crc32(body) != checksum:
        raise ValueError("the checksum of a message does not match")
    message: Message = marshal.loads(body)  # noqa: S302  # from a process that has the rights of this one anyway
    return message


def _read(source: int, length: int) -> bytes:
    """As many bytes, none if the end comes first."""
    parts = bytearray()
    while len(parts) < length:
        part = os.read(source, min(length - len(parts), _PART))
        if not part:
            return b""
        parts += part
    return bytes(parts)


# the program as plain values: those of its fields in order, also of each row of its tables

_ROWS = ("agents", "barriers", "accesses", "tiles")
#: Without the strictness, which the asker says. The coverage of a protocol is what it assumes, and what is not judged.
_FIELDS = tuple(field.name for field in fields(Program) if field.name != "strictness")


def _plain(program: Program) -> Message:
    values = {name: getattr(program, name) for name in _FIELDS}
    for name in _ROWS:
        values[name] = tuple(tuple(map(_exact, vars(row).values())) for row in values[name])
    for name in ("sources", "loops", "notes", "pipelines", "overlaps"):
        values[name] = tuple(map(_exact, values[name]))
    values["work"] = tuple((_exact(w.line), _exact(w.name), _pairs(w.amounts)) for w in program.work)
    said = program.coverage
    assumed = tuple((each.kind.value, _exact(each.what), tuple(map(_exact, each.lines))) for each in said.assumed)
    values["coverage"] = assumed, tuple((each.kind.name, each.count, each.names) for each in said.not_judged)
    return _exact(values.pop("name")), *values.values()


def _program(parts: Message) -> Program:
    values: dict[str, Any] = dict(zip(_FIELDS, parts, strict=True))
    values["agents"] = tuple(starmap(Agent, values["agents"]))
    values["barriers"] = tuple(starmap(Barrier, values["barriers"]))
    values["accesses"] = tuple(Access(Space(space), *rest) for space, *rest in values["accesses"])
    values["tiles"] = tuple(Tile(name, Space(space), *rest) for name, space, *rest in values["tiles"])
    values["work"] = tuple(starmap(Work, values["work"]))
    assumed, not_judged = values["coverage"]
    values["coverage"] = Coverage(
        assumed=tuple(Assumed(Assumption(kind), what, lines) for kind, what, lines in assumed),
        not_judged=tuple(NotJudged(NotJudgedKind[kind], count, names) for kind, count, names in not_judged),
    )
    return Program(**values)


def _plain_repair(repair: Repair) -> Message:
    kind, *plain, at, past, also = (getattr(repair, each.name) for each in fields(repair))
    return (
        kind.value,
        *map(_exact, plain),
        *(tuple(map(_exact, each)) for each in (at, past)),
        *map(_plain_repair, also),
    )


def _repair(parts: Message) -> Repair:
    from pipesim.prove.repair.kinds import Repair, RepairKind  # with the engine, which the parent has

    kind, role, group, value, was, at, past, *also = parts
    sites = SourceInstruction(*at), SourceInstruction(*past)
    return Repair(RepairKind(kind), role, group, value, was, *sites, tuple(map(_repair, also)))


def _pairs(amounts: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    return tuple((_exact(kind), _exact(amount)) for kind, amount in amounts)


def _exact(value: Any) -> Any:
    """Text and numbers of just these types: a message holds no others, and an author's class may be one of theirs."""
    return str.__str__(value) if isinstance(value, str) else int(value)
