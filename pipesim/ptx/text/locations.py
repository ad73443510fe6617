"""Places in a PTX file: its text by lines, the author's lines that ``.loc`` names, and which of them reports name."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from pipesim.errors import PtxError
from pipesim.ptx.text.instruction import Frame, Instruction, SourceLine

LOC = re.compile(r"\.loc\s+(\d{1,9})\s+(\d{1,9})(?:\s+(\d{1,9}))?([^\n;{}]*)")
_FILE = re.compile(r'^[ \t]*\.file[ \t]+(\d{1,9})[ \t]+"([^"\n]*)"(?:[ \t]+"([^"\n]*)")?', re.MULTILINE)
_WHOLE = re.compile(r"[/\\]|[A-Za-z]:")  #: how a path begins that is not below a folder
_INLINED = re.compile(r"inlined_at\s+(\d{1,9})\s+(\d{1,9})(?:\s+(\d{1,9}))?")
_NAME = re.compile(r"function_name\s+([\w$]+)(?:\s*\+\s*(\d{1,9}))?")
_STRINGS = re.compile(r"^[ \t]*\.section[ \t]+\.debug_str\s*\{([^{}]*)\}", re.MULTILINE)
_LABEL = re.compile(r"[\w$]+\Z")
_BYTE = re.compile(r"(?<![\w.$])(?:0[xX][0-9a-fA-F]{1,4}|[1-9][0-9]{0,5}|0)\b")
_NOWHERE = Frame("", 0, "")
_DEEPEST = 64  #: functions inlined into each other
#: Folders of installed packages, of the system, and of the headers of CUDA's, CUTLASS's and compilers' own libraries.
_LIBRARY = re.compile(
    r"(?:^|/)(?:site-packages|dist-packages)/"
    r"|^/usr/(?:include|lib|lib64|share)/|/(?:cuda|cuda-[\d.]+)/(?:.*/)?include/|/lib/clang/"
    r"|(?:^|/)include/(?:cutlass|cute|cuda|cub|thrust|nv|crt)/|^(?:cutlass|cute|cuda/std|cuda/__ptx|cub|thrust)/"
    r"|(?:^|/)triton/(?:language|experimental/gluon|tools)/|(?:^|/)tl_templates/"
    r"|(?:^|/)(?:mojo/)?stdlib/(?:std|src|stdlib)/"
)
#: What a report can be about: the lines of other instructions, as those of an address, tell no functions apart.
_REPORTED = frozenset(
    {"mbarrier", "bar", "barrier", "fence", "membar", "wgmma", "tcgen05", "cp", "ld", "st", "red", "atom", "multimem"}
    | {"stmatrix", "ldmatrix", "setmaxnreg", "clusterlaunchcontrol", "griddepcontrol"}
)
_OF_A_HEADER = 3  #: lines of a function in another file than its caller's that is a helper, wherever it is called


def source_files(text: str) -> dict[int, str]:
    """The name of each ``.file``, by its number; two strings are a folder and a name."""
    found = {}
    for directive in _lines_with(_FILE, ".file", text):
        number, first, second = directive[1], directive[2], directive[3] or ""
        found[int(number)] = f"{first.rstrip('/')}/{second}" if second and not _WHOLE.match(second) else second or first
    return found


def _lines_with(pattern: re.Pattern[str], word: str, text: str) -> Iterator[re.Match[str]]:
    """The matches of a pattern that begins with a line and has this word in it, which is looked for first."""
    at = text.find(word)
    while at >= 0:
        found = pattern.match(text, text.rfind("\n", 0, at) + 1)
        if found is not None:
            yield found
        at = text.find(word, max(at + 1, found.end() if found is not None else 0))


class DebugStrings:
    """The texts of the section ``.debug_str``, by their labels; each is read where it is first asked for."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._places: dict[str, tuple[int, int]] = {}
        self._found: dict[str, str] = {}
        for section in _lines_with(_STRINGS, ".debug_str", text):
            self._read(*section.span(1))

    def _read(self, begin: int, end: int) -> None:
        """Find the labels of a section, which is long: each ends with a colon, and nothing else has one."""
        text, name, first = self._text, "", begin
        colon = text.find(":", begin, end)
        while colon >= 0:
            label = _LABEL.search(text[max(text.rfind("\n", begin, colon) + 1, first) : colon])
            if label is not None:
                self._places[name] = (first, colon - len(label[0]))
                name, first = label[0], colon + 1
            colon = text.find(":", colon + 1, end)
        self._places[name] = (first, end)
        self._places.pop("", None)

    def get(self, name: str) -> str:
        """The text at a label, up to its first zero; "" if there is no such label."""
        if name not in self._found:
            start, end = self._places.get(name, (0, 0))
            self._found[name] = self._bytes(start, end).partition(b"\0")[0].decode(errors="replace")
        return self._found[name]

    def _bytes(self, start: int, end: int) -> bytes:
        try:  # as compilers write them
            return bytes(map(int, self._text[start:end].replace(".b8", " ").replace(",", " ").split()))
        except ValueError:
            return bytes(int(each, 0) & 255 for each in _BYTE.findall(self._text, start, end))


@dataclass
class Locations:
    """The places of one function's instructions, in the order of its ``.loc`` directives.

    An inlined place refers to the place of the call by file, line and column; that is the latest ``.loc`` with these
    numbers, which may itself be inlined. A call at the line where the function begins is none of the author's: so
    Triton marks what it moves into a partition; the author's place is the one inside. Where the place of the call has
    been inlined into several places and is not said again just before, as nvcc leaves it out in a loop that it
    unrolled, it cannot be known: the latest is taken, and the place is not ``sure``. But the place of a call is said
    once for each function that it was inlined into, without an instruction of its own: if all of these but one had it
    before, it is of that one.
    """

    files: dict[int, str]
    strings: DebugStrings
    function: str
    _frames: dict[tuple[str, ...], tuple[Frame, ...]] = field(default_factory=dict)
    _made: dict[tuple[tuple[Frame, ...], bool], SourceLine] = field(default_factory=dict)
    _several: set[tuple[str, ...]] = field(default_factory=set)  #: places that were inlined into different ones
    _unsure: set[tuple[str, ...]] = field(default_factory=set)
    _before: tuple[str, ...] = ()
    _caller: tuple[tuple[str, ...], tuple[Frame, ...]] = ((), ())  #: place and frames of the call that has that before
    _end: int = 0  #: of the directive before
    _calls: dict[tuple[str, ...], dict[tuple[Frame, ...], set[tuple[str, ...]]]] = field(default_factory=dict)
    _lost: set[tuple[str, ...]] = field(default_factory=set)  #: places of calls of which one has unknown frames
    _begins: Frame | None = None  #: the function's first line, where the first directive says it

    def place_of(self, directive: re.Match[str]) -> SourceLine | None:
        """The place that a ``.loc`` gives to the instructions after it; None for line 0, which means none."""
        file, line, column, rest = directive[1], directive[2], directive[3] or "0", directive[4]
        outer: tuple[Frame, ...] = ()
        name, sure, own = self.function, True, (file, line, column)
        key: tuple[str, ...] = ()
        if rest and (inlined := _INLINED.search(rest)) is not None:
            key = (inlined[1], inlined[2], inlined[3] or "0")
            if key == self._before and directive.string[self._end : directive.start()].isspace():
                self._was_call()
            outer = self._frames.get(key) or (self._frame(*key, self.function),)
            sure = key not in self._unsure if key == self._before else key not in self._several
            named = _NAME.search(rest)
            name = self.strings.get(named[1])[int(named[2] or 0) :] if named is not None else ""
        frames = (*outer, self._frame(file, line, column, name))[-_DEEPEST:]
        if not self._begins:
            self._begins = frames[0] if column == "0" else _NOWHERE
        if len(frames) > 1 and frames[0][:2] == self._begins[:2]:
            frames = frames[1:]
        if self._frames.setdefault(own, frames) != frames:
            self._several.add(own)
            self._frames[own] = frames
        (self._unsure.discard if sure else self._unsure.add)(own)
        self._before, self._caller, self._end = own, (key, outer), directive.end()
        if not frames[0].line:
            return None
        if (frames, sure) not in self._made:
            self._made[frames, sure] = SourceLine(*frames[0][:3], frames, sure)
        return self._made[frames, sure]

    def _was_call(self) -> None:
        """The place before is that of an inlined call: find whose call it is, where that was not sure."""
        own, (caller, outer) = self._before, self._caller
        if own in self._unsure:
            without = [each for each, inside in self._calls.get(caller, {}).items() if own not in inside]
            if len(without) != 1 or caller in self._lost:
                self._lost.add(own)
                return
            outer = without[0]
            self._frames[own] = (*outer, self._frames[own][-1])[-_DEEPEST:]
            self._unsure.discard(own)
        self._calls.setdefault(own, {}).setdefault(self._frames[own], set())
        self._calls.get(caller, {}).get(outer, set()).add(own)

    def _frame(self, file: str, line: str, column: str, name: str) -> Frame:
        return Frame(self.files.get(int(file), f"file {file}"), int(line), name, int(column))


def is_library(file: str) -> bool:
    """Whether a file, as ``.file`` names it, is not the user's."""
    return _LIBRARY.search(file) is not None


def with_own_lines(body: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """The instructions of a function with the lines that reports name: the innermost ones of the user's functions, or
    of a library's where all are a library's, as of a kernel that its launcher calls.

    But not inside a helper, which says less than its call: a function that has no more lines of its own that reports
    can be about than places that call it, as one has that wraps an instruction.
    """
    lines = {each.source for each in body if each.source is not None and each.opcode in _REPORTED and _is_read(each)}
    helpers = Helpers(line.frames for line in lines)
    own: dict[SourceLine, SourceLine] = {}
    made = []
    for each in body:
        if (source := each.source) is not None and len(source.frames) > 1:
            if source not in own:
                own[source] = SourceLine(*helpers.own(source.frames)[:3], source.frames, source.sure)
            each = each._replace(source=own[source])
        made.append(each)
    return tuple(made)


def _is_read(each: Instruction) -> bool:
    return each.spaces.isdisjoint({"param", "const", "local"})


class Helpers:
    """Of each function its lines, and the places that call it; ``most``: lines that one of a header has as a helper."""

    def __init__(self, found: Iterable[tuple[Frame, ...]], most: int = _OF_A_HEADER) -> None:
        self._most = most
        self._lines: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
        self._calls: defaultdict[tuple[str, str], set[tuple[str, int, int]]] = defaultdict(set)
        for frames in found:
            for caller, frame in pairwise(frames):
                self._lines[frame.file, frame.function].add(frame.line)
                self._calls[frame.file, frame.function].add((caller.file, caller.line, caller.column))

    def own(self, frames: tuple[Frame, ...]) -> Frame:
        """The place that is named of an instruction."""
        said = [n for n, frame in enumerate(frames) if frame.line] or [0]
        named, *inside = [n for n in said if not is_library(frames[n].file)] or said
        for n in inside:
            frame = frames[n]
            lines = len(self._lines[frame.file, frame.function])
            calls = len(self._calls[frame.file, frame.function])
            if lines > max(calls, self._most * (frame.file != frames[named].file)):
                named = n
            elif calls > 1:
                break
        return frames[named]


MAX_CHARACTERS = 1 << 26  #: of a file: the largest that compilers wrote for one kernel had about a fortieth of it

_COMMENT = re.compile(r'//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/|/\*|"[^"\n]*+"')
_ASM_MARKS = ("begin inline asm", "end inline asm")
_QUOTED = 60  #: characters of the text in a message


class SourceText:
    """A file's text, its comments replaced by blanks so that every position and line stays.

    Raises PtxError for a text that is too large, has a byte that no text has, or ends inside a comment.
    """

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        end = text.find("\0")
        if end >= 0 and not text[end:].strip("\0 \t\r\n"):  # the end of a string of C, as CuTe DSL writes it
            text = text[:end]
        self.text = text
        if len(text) > MAX_CHARACTERS:
            raise PtxError(
                f"the text has {len(text):,} characters",
                place=name,
                cause=f"a PTX file may have {MAX_CHARACTERS:,}",
                correction="give the PTX of one kernel",
            )
        self._starts = list(accumulate((len(line) + 1 for line in text.split("\n")[:-1]), initial=0))
        if (zero := text.find("\0")) >= 0:
            raise self.error(zero, "the file is not text", cause="it may be a cubin or an object file")
        self._asm: list[int] = []  #: where inline asm begins and ends, in turns
        self.text = _COMMENT.sub(self._blank, text) if "/" in text else text

    def in_inline_asm(self, position: int) -> bool:
        """Whether a position is in what the author wrote as inline asm, which the compilers mark by comments."""
        return bisect_right(self._asm, position) % 2 == 1

    def _blank(self, found: re.Match[str]) -> str:
        """Blanks for a comment, with its line ends; a string stays."""
        text = found[0]
        if text == "/*":
            raise self.error(found.start(), "a comment is not closed", correction="end it with */")
        if text[0] == '"':
            return text
        if text.endswith(_ASM_MARKS[len(self._asm) % 2]):
            self._asm.append(found.start())
        return " " * len(text) if text[1] == "/" else re.sub(r"[^\n]", " ", text)

    def line(self, position: int) -> int:
        """The line, from 1 on, of a position in the text."""
        return bisect_right(self._starts, position)

    def error(self, position: int, fact: str, *, cause: str = "", correction: str = "") -> PtxError:
        """What is wrong at a position; without a cause, the text there is quoted."""
        begin = self._starts[self.line(position) - 1]
        there = self.text[position:].lstrip() if position < len(self.text) else ""
        quoted = " ".join(there[:_QUOTED].split("\n")[0].split())
        return PtxError(
            fact,
            place=f"{self.name}, line {self.line(position)}, column {position - begin + 1}",
            cause=cause or (f"it says {quoted!r}" if quoted else "the text ends there"),
            correction=correction,
        )

    def error_at(self, line: int, fact: str) -> PtxError:
        """What is wrong in a line."""
        begin = self._starts[min(line, len(self._starts)) - 1]
        first = len(self.text[begin:]) - len(self.text[begin:].lstrip())
        return self.error(begin + first, fact)
