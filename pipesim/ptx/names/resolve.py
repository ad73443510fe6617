"""From an instruction's places in the source to the path of its barrier or tile, as the author's line has it.

The innermost place says which operand or argument it is. Where that is a parameter, the call one place further out
says what was given for it; where it is a member, whose. So a wrapper, a class or a library is passed through.
"""

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise

from pipesim.ptx.launch.values import Launch
from pipesim.ptx.names.cpp_text import Call, CppText, receiver_path
from pipesim.ptx.names.paths import matching, path_of, put_in, root_of, split_at_commas
from pipesim.ptx.names.python_text import PythonText
from pipesim.ptx.source_files import HeadingText, SourceFiles
from pipesim.ptx.text.declarations import Function
from pipesim.ptx.text.instruction import Frame, Instruction

_COMPONENT = re.compile(
    r"L[a-z]n?\d+E|[ST][0-9A-Z]*_|(\d{1,3})", re.ASCII
)  #: of a mangled name; one with a length is a name
_FINAL = "="  #: before a path that begins with a local object: further out there is no other name for it
_OPERATOR = re.compile(r"E(?:\d*_)?cl[EI]", re.ASCII)
_CONSTRUCTOR = re.compile(r"C[1-3](?:E|I)")
_COPIES = frozenset({"cp", "clusterlaunchcontrol"})  #: their destination is the first operand, the barrier the last
_CUTE, _CUTE_COPY = ("_ZN4cute", "_ZNK4cute"), "_ZN4cute4copy"
#: Of a tensor, or of one in a tuple, with coordinates.
_VIEW = re.compile(r"([A-Za-z_]\w*|(?:\w+::)*get<\d+>\(\w+\))\s*(?:(\()|\Z)")
_PARTITION = re.compile(r"\.partition_[A-Z]\w*\(\s*(\w+)\s*\)\Z")
_NEAR = 4000  #: characters of a function after a line
_FEW = 4  #: objects of one kind that one statement names


@dataclass
class Resolver:
    """Reads the source files of a kernel; each chain of places is looked up only once."""

    sources: SourceFiles
    _texts: dict[str, CppText | PythonText | None] = field(default_factory=dict)
    _found: dict[tuple[tuple[Frame, ...], bool], tuple[str, ...]] = field(default_factory=dict)

    def paths(self, each: Instruction, *, tile: bool = False) -> tuple[str, ...]:
        """The paths that an instruction's barrier (or the range that its copy writes) may have in the source.

        Several where its statement has several calls of this kind, in their order; () where nothing is known.
        """
        if each.source is None or not each.source.line:
            return ()
        copy = each.opcode in _COPIES
        return () if tile and not copy else self.paths_at(each.source.frames, copy=copy, tile=tile)

    def paths_at(self, frames: tuple[Frame, ...], *, copy: bool = False, tile: bool = False) -> tuple[str, ...]:
        """Those that an instruction at these places may have."""
        key = (frames, tile)
        if key not in self._found:
            self._found[key] = self._resolved(frames, copy=copy, tile=tile) or (self._tensor(frames) if tile else ())
        return self._found[key]

    def _tensor(self, frames: tuple[Frame, ...]) -> tuple[str, ...]:
        """The shared memory of the tensor that CuTe's ``copy`` writes: its call passes the tensor on in parts."""
        for n, (frame, inner) in reversed(list(enumerate(pairwise(frames)))):
            text = self._text(frame)
            if not inner.function.startswith(_CUTE_COPY) or frame.function.startswith(_CUTE):
                continue
            at = text.place(frame.line, frame.column) if isinstance(text, CppText) else 0
            calls = _called(text.calls(text.statement(at)), at, inner) if isinstance(text, CppText) else []
            given = calls[0].arguments[-1] if len(calls) == 1 and calls[0].arguments else ""
            view = _VIEW.match(given)
            coordinates = given[view.end() : -1] if view is not None else ""
            whole = view is not None and (not view[2] or matching(given, view.end() - 1) == len(given) - 1)
            if view is None or not whole or not isinstance(text, CppText):
                return ()
            path, head = path_of(view[1]), text.head(at, _function_names(frame.function))
            for _ in range(_FEW):
                meaning = text.meaning(path, head, at) if head is not None and path not in head.parameters else ""
                part = _PARTITION.search(meaning)
                path = (part[1] if part is not None else path_of(meaning)) or path
            index = [each for each in split_at_commas(coordinates) if each != "_"]
            found = (f"{path}[{index[-1]}]" if index else path,)
            if head is None or path not in head.parameters:
                return found if head is not None else ()
            span = (head.body, at + _NEAR)  # of a tuple of several tensors that are written no one has its name
            views = {each.arguments[-1].partition(path)[0] for each in text.calls(span) if each.name == "copy"}
            return self._resolved(frames[: n + 1], tile=True, found=found) if n and len(views) == 1 else ()
        return ()

    def value(self, each: Instruction) -> str:
        """What Python source calls the value that an instruction copies or computes, or its source; "" if not known."""
        return self._value(each.source.frames) if each.source is not None and each.source.sure else ""

    def operands(self, each: Instruction) -> list[str]:
        """The paths of the operands of a product in Python source, at whose place an instruction is."""
        place = each.source.frames[-1] if each.source is not None else Frame("", 0, "")
        text = self._text(place)
        return text.operands_at(place.line, place.column) if isinstance(text, PythonText) else []

    def is_operand(self, place: Frame) -> bool:
        """Whether a place in C++ is an ``asm`` whose operand can be read; True of Python that can be read."""
        text = self._text(place)
        if not isinstance(text, CppText):
            return text is not None
        return bool(text.asm_operand(text.statement(text.place(place.line, place.column)), 0))

    def parameters(self, place: Frame) -> tuple[str, ...]:
        """The names of the parameters of the function that a place is in; in Python without the constants."""
        text = self._text(place)
        if isinstance(text, PythonText):
            return text.parameters_at(place.line)
        head = text.head(text.place(place.line, place.column), _function_names(place.function)) if text else None
        return head.parameters if head is not None else ()

    def headings(self, place: Frame) -> tuple[int, list[HeadingText]]:
        """Where a place is in its text, and the conditions and loops there."""
        text = self._text(place)
        at = text.place(place.line, place.column) if text is not None else 0
        return at, text.headings(at) if text is not None and place.column else []

    def definition(self, name: str, place: Frame) -> str:
        """What a name is made of in the C++ text around a place; "" if it is not certain."""
        text = self._text(place)
        return text.definition(name, text.place(place.line, place.column)) if isinstance(text, CppText) else ""

    def _value(self, frames: tuple[Frame, ...]) -> str:
        outer, place = frames[:-1], frames[-1]
        text = self._text(place)
        name = text.value_at(place.line, place.column) if isinstance(text, PythonText) else None
        if name is None and outer and (found := self._value(outer)):
            return found
        if name or not isinstance(text, PythonText):
            return name or ""
        name = text.origin_at(place.line, place.column)
        for frame, inner in pairwise(reversed(frames)):
            caller = self._text(inner)
            given = self._in_python(caller, inner, frame, (name,)) if isinstance(caller, PythonText) else ()
            if not given:
                break
            name = given[0]
        return name

    def _text(self, frame: Frame) -> CppText | PythonText | None:
        name = frame.file
        if name not in self._texts:
            lines = self.sources.lines(name)
            made: CppText | PythonText | None = None
            if lines:
                python = name.endswith(".py")
                made = PythonText(lines) if python else CppText(lines, lines_end=name.endswith(".mojo"))
            self._texts[name] = made
        return self._texts[name]

    def _resolved(
        self, frames: tuple[Frame, ...], *, copy: bool = True, tile: bool, found: tuple[str, ...] = ()
    ) -> tuple[str, ...]:
        """``found``: what the innermost function calls it, where that is known: one of its parameters."""
        own = bool(found)  # a tensor is what a local variable has, not what that was made of
        for at in range(len(frames) - 1 - own, -1, -1):
            text = self._text(frames[at])
            if text is None:
                if found:
                    return ()  # the author's line cannot be read
                continue
            inner = frames[at + 1] if at + 1 < len(frames) else None
            if isinstance(text, PythonText):
                found = self._in_python(text, frames[at], inner, found, tile=tile)
            elif found and inner is not None:
                passed: list[str] = []
                for each in found:
                    final = each.startswith(_FINAL)
                    passed += [each] if final else self._outward(text, frames[at], inner, each, outermost=own or not at)
                found = tuple(dict.fromkeys(passed))
            else:
                found = self._first(text, frames[at], inner, copy=copy, tile=tile, outermost=not at)
            if not found or len(found) > _FEW:
                return ()
        return tuple(each.removeprefix(_FINAL) for each in found)

    def _first(
        self, text: CppText, frame: Frame, inner: Frame | None, *, copy: bool, tile: bool, outermost: bool
    ) -> tuple[str, ...]:
        """What the innermost place that can be read says."""
        at = text.place(frame.line, frame.column)
        at = max(at, text.text.find("asm volatile", at, text.place(frame.line + 1, 1)))  # nvcc may have a column before
        span = text.statement(at)
        operand = text.asm_operand(span, -1 if copy and not tile else 0)
        if operand:
            return self._seen_through(text, frame, at, path_of(operand), outermost=outermost)
        if copy or tile:
            return ()
        calls = _called(text.calls(span), at, inner)
        found = [receiver_path(each) or (path_of(each.arguments[0]) if each.arguments else "") for each in calls]
        return tuple(path for path in dict.fromkeys(found) if path)

    def _seen_through(self, text: CppText, frame: Frame, at: int, path: str, *, outermost: bool) -> tuple[str, ...]:
        """A path, or what a local variable that is its root was made of: in the author's own line an address only."""
        head = text.head(at, _function_names(frame.function)) if path else None
        for _ in range(_FEW):
            if head is None or root_of(path) in head.parameters or (outermost and root_of(path) != path):
                break
            meaning = text.meaning(root_of(path), head, at)
            better = put_in(path, meaning) if meaning else ""
            if not better or better == path or (outermost and root_of(better) == better):
                break
            path = better
        return (path,) if path and not text.is_index(path, at) else ()

    def _outward(self, text: CppText, frame: Frame, inner: Frame, path: str, *, outermost: bool) -> tuple[str, ...]:
        """A path of the function that is called at a place, in the words of the place."""
        callee = self._text(inner)
        if not isinstance(callee, CppText):
            return ()
        at = text.place(frame.line, frame.column)
        there = callee.place(inner.line, inner.column)
        head = callee.head(there, _function_names(inner.function))
        if head is None:
            return ()
        if root_of(path) not in head.parameters and callee.declares(root_of(path), head, there):
            return (_FINAL + path,) if path != root_of(path) else ()
        if root_of(path) not in head.parameters and _is_lambda_of(inner.function, frame.function):
            return self._seen_through(text, frame, at, path, outermost=outermost)  # which it captures
        found: list[str] = []
        for call in _called(text.calls(text.statement(at)), at, inner):
            root, made = root_of(path), path
            if root in head.parameters:
                number = head.parameters.index(root)
                made = put_in(path, call.arguments[number]) if number < len(call.arguments) else ""
            elif call.receiver or (_is_constructor(inner.function) and call.name not in _components(inner.function)):
                owner = receiver_path(call) if call.receiver else call.name
                own = path.removeprefix("this").removeprefix(".")
                made = f"{owner}.{own}" if owner and own else owner
            if made and call.name.isupper():
                found.append(_FINAL + made)  # its arguments are the author's; the lines further out include it
            elif made:
                found += self._seen_through(text, frame, at, made, outermost=outermost)
        return tuple(dict.fromkeys(found))

    def _in_python(
        self, text: PythonText, frame: Frame, inner: Frame | None, found: tuple[str, ...], *, tile: bool = False
    ) -> tuple[str, ...]:
        call = text.call_at(frame.line, frame.column)
        if call is None:
            return ()
        if not found or inner is None:
            path = text.tile_of(call) if tile else text.barrier_of(call)
            return (path,) if path else ()
        callee = self._text(inner)
        function = callee.function_at(inner.line) if isinstance(callee, PythonText) else None
        if function is None or not isinstance(callee, PythonText):
            return ()
        passed = []
        for path in found:
            given = text.argument(call, function, root_of(path))
            if given:
                passed.append(put_in(path, given))
            elif callee.is_result(function, root_of(path)):
                target = text.target_of(call)
                passed.append(target + path[len(root_of(path)) :] if target else "")
        return tuple(path for path in dict.fromkeys(passed) if path)


def _called(calls: list[Call], at: int, inner: Frame | None) -> list[Call]:
    """Those of a statement's calls that reach the place inside; the only outer one where no name tells."""
    after = [each for each in calls if each.end >= at]
    outer = [each for each in calls if not any(o.begin < each.begin < o.end for o in calls)]
    if inner is None:
        return [each for each in outer if each in after][:1] if len(outer) == 1 else []
    if _is_constructor(inner.function):
        return [each for each in outer if each in after][:1] or outer[-1:]
    if _is_operator(inner.function):
        return [each for each in outer if each in after][:1]
    last = max((inner.function.rfind(each.name) for each in after), default=-1)
    named = [each for each in after if each.name in _components(inner.function)]
    return [each for each in named if inner.function.rfind(each.name) == last] or (
        [each for each in outer if each.begin <= at <= each.end and each.name.isupper()]  # a macro has its own body
    )


def _is_constructor(function: str) -> bool:
    return function.startswith("_Z") and _CONSTRUCTOR.search(function) is not None


def _is_operator(function: str) -> bool:
    """Whether it is the ``operator()`` of a class, or a lambda."""
    return function.startswith("_Z") and _OPERATOR.search(function) is not None


def _is_lambda_of(function: str, enclosing: str) -> bool:
    encoding = enclosing[2:] if enclosing.startswith("_Z") else f"{len(enclosing)}{enclosing}"
    return function.startswith(f"_ZZ{encoding}") and _is_operator(function)


def _function_names(function: str) -> frozenset[str]:
    """The names that the head of a function may have; none of a lambda's."""
    if _is_operator(function):
        return frozenset() if function.startswith("_ZZ") else frozenset({"operator"})
    return _components(function)


def _components(function: str) -> frozenset[str]:
    """The names in a function's mangled name; the name itself if it is not mangled."""
    if not function.startswith("_Z"):
        return frozenset({re.split(r"[.:]", function)[-1]})
    found, at = set(), 0
    while at < len(function):
        length = _COMPONENT.match(function, at)
        if length is None:
            at += 1
            continue
        at = length.end() + int(length[1] or 0)
        found.add(function[length.end() : at])
    return frozenset(found)


@lru_cache(maxsize=2)
def resolver_of(sources: SourceFiles) -> Resolver:
    """The one resolver of a kernel's sources, which are read once."""
    return Resolver(sources)


_HIDDEN = 2  #: pointers that Triton adds after the author's parameters
_MAP_BYTES = 128
_HEADS = 8  #: places of the kernel at which its head is looked for: the first is the head itself


def with_source_names(launch: Launch, function: Function, sources: SourceFiles | None) -> Launch:
    """The launch with the source's names for its parameters, where it has none of its own for any."""
    if sources is None or any(each.name for each in launch.parameters) or not launch.parameters:
        return launch
    pairs = zip(launch.parameters, _names(function, resolver_of(sources)), strict=False)
    named = tuple(each._replace(name=name) for each, name in pairs)
    return replace(launch, parameters=named) if len(named) == len(launch.parameters) else launch


def _names(function: Function, resolver: Resolver) -> tuple[str, ...]:
    """The names in the order of the PTX's parameters; () unless the source has as many.

    Triton leaves out a parameter of which it knows the value, and makes several of a tensor map: its kernel has names
    only where nothing is left out for sure.
    """
    places = dict.fromkeys(each.source.frames[0] for each in function.body if each.source is not None)
    for place in [each for each in places if each.function == function.name][:_HEADS]:
        python = place.file.endswith(".py")
        names = resolver.parameters(place) + ("",) * _HIDDEN * python
        known = [each for each in names if each]
        whole = len(known) == len(set(known)) == len(names) - _HIDDEN * python
        if whole and len(names) == len(function.params):
            return () if python and any(each.size == _MAP_BYTES for each in function.params) else names
    return ()
