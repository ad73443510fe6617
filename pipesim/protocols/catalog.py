"""The ready-made protocols by name, and how a protocol is found: by name, as ``file.py:function``, or as a program's file."""

from __future__ import annotations

import difflib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pipesim.errors import ParameterError, PipesimError, ProtocolError, UnknownProtocolError
from pipesim.model.program import Program
from pipesim.model.program_json import loads
from pipesim.model.protocol import Protocol
from pipesim.protocols.limits import require_fits
from pipesim.protocols.producer_consumer import producer_consumer

ProtocolFunction = Callable[..., Protocol]

BUILT_IN: dict[str, ProtocolFunction] = {"producer_consumer": producer_consumer}


@dataclass(frozen=True)
class Target:
    """What a command's first argument names: a function that makes a protocol, or a program that is ready.

    ``defaults`` are the function's parameters in its order.
    """

    name: str
    function: ProtocolFunction | None
    program: Program | None
    defaults: dict[str, int]
    summary: str

    def build(self, params: Mapping[str, int] | None = None, *, grid: int = 1) -> Program:
        """The flat program with these parameters (defaults for the rest); it fits the chip, or ConfigurationError."""
        if type(grid) is not int or grid < 1:
            raise ParameterError(f"a launch of {grid!r} CTAs", correction="use 1 or more")
        given = dict(params or {})
        if self.program is not None:
            if given:
                raise ParameterError(
                    f"{self.name} is a flat program and takes no parameters",
                    cause=f"given: {', '.join(given)}",
                    correction="flatten its protocol again with other parameters",
                )
            program = self.program
        else:
            program = self._flatten(given)
        program = program if grid == 1 else replace(program, grid=grid)
        require_fits(program)
        return program

    def _flatten(self, given: dict[str, int]) -> Program:
        for name, value in given.items():
            if name not in self.defaults:
                near = difflib.get_close_matches(name, self.defaults, n=1, cutoff=0.5)
                raise ParameterError(
                    f"{self.name} has no parameter {name!r}",
                    correction=f"did you mean {near[0]}?" if near else f"it has {', '.join(self.defaults) or 'none'}",
                )
            if type(value) is not int:
                raise ParameterError(f"{name} takes a whole number, not {value!r}")
        values = self.defaults | given
        assert self.function is not None
        try:
            protocol = self.function(**values)
        except PipesimError:
            raise
        except Exception as error:
            raise ProtocolError(f"{self.name} raised {type(error).__name__}: {error}", place=_line_of(error)) from error
        if not isinstance(protocol, Protocol):
            raise ProtocolError(f"{self.name} returned {type(protocol).__name__}", correction="return the Protocol")
        return protocol.flatten(values)


def find(text: str) -> Target:
    """The target that ``text`` names. UnknownProtocolError with the nearest names if there is none."""
    if text in BUILT_IN:
        return _target(text, BUILT_IN[text])
    path, colon, function = text.rpartition(":")
    if colon and path.endswith(".py"):
        return _target(text, _from_file(Path(path), function))
    if text.endswith(".json"):
        return _from_program(Path(text))
    if text.endswith(".py"):
        raise UnknownProtocolError(f"{text} names a file but no function", correction=f"write {text}:FUNCTION")
    near = difflib.get_close_matches(text, BUILT_IN, n=3, cutoff=0.4)
    raise UnknownProtocolError(
        f"there is no protocol {text!r}",
        correction=f"did you mean {' or '.join(near)}?"
        if near
        else "see `pipesim list`, or give file.py:function or a program's .json",
    )


def _target(name: str, function: ProtocolFunction) -> Target:
    defaults: dict[str, int] = {}
    for parameter in inspect.signature(function).parameters.values():
        if type(parameter.default) is not int:
            raise ProtocolError(
                f"{name}: parameter {parameter.name} has no whole number as its default",
                correction=f"write {parameter.name}: int = 4",
            )
        defaults[parameter.name] = parameter.default
    return Target(name, function, None, defaults, (inspect.getdoc(function) or "").partition("\n")[0])


def _from_program(path: Path) -> Target:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnknownProtocolError(f"the program {path} cannot be read", cause=str(error)) from None
    program = loads(text, str(path))
    return Target(str(path), None, program, dict(program.params), f"flat program {program.name}")


def _from_file(path: Path, function: str) -> ProtocolFunction:
    if not path.is_file():
        raise UnknownProtocolError(
            f"there is no file {path}", correction="give the path of a Python file, then :function"
        )
    spec = importlib.util.spec_from_file_location(f"pipesim_user_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and pickling in the user's file need to find it
    try:
        spec.loader.exec_module(module)
    except PipesimError:
        raise
    except Exception as error:
        raise ProtocolError(
            f"{path} cannot be imported: {type(error).__name__}: {error}", place=_line_of(error)
        ) from error
    found = getattr(module, function, None)
    if not callable(found):
        public = [
            n for n, v in vars(module).items() if inspect.isfunction(v) and v.__module__ == spec.name and n[0] != "_"
        ]
        near = difflib.get_close_matches(function, public, n=1, cutoff=0.4)
        raise UnknownProtocolError(
            f"{path} has no function {function!r}",
            correction=f"did you mean {near[0]}?" if near else f"it has {', '.join(public) or 'none'}",
        )
    return found  # type: ignore[no-any-return]  # what it returns is checked when it is called


def _line_of(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}"
    trace = error.__traceback__
    place = ""
    while trace is not None:
        place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place
