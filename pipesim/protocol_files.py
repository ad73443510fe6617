"""The Python files of users: how one is run, and which of its functions make a protocol."""

import difflib
import importlib.util
import inspect
import re
import sys
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from pipesim.bounds import MAX_SOURCE_BYTES
from pipesim.errors import ProtocolError, SeveralProtocolsError, UnknownProtocolError, UsageError
from pipesim.inputs import InputKind, confined, quote_protocols_of
from pipesim.lang.author import NOT_OURS, in_words
from pipesim.lang.protocol import Protocol
from pipesim.protocols.catalog import ProtocolFunction

_JIT = re.compile(  #: a kernel; its decorator may have several lines, and may be called as a function
    r"^(?:@(?:\w+\.)*jit\b(?:\([^)]*\))?.*\n(?:@.*\n)*def (?=\w)|(?=\w+ = (?:\w+\.)*jit\())(\w+)", re.MULTILINE
)
_PYTHON = InputKind("Python file", MAX_SOURCE_BYTES, ProtocolError, "give a smaller one")
_MOST_PROPOSED = 4  #: functions of a file that an error proposes


def makers_of(path: Path) -> dict[str, ProtocolFunction]:
    """The functions of a Python file that make a protocol, in its order; the file is run.

    Those that say so, else all that can be called without more. UnknownProtocolError if there is no such file,
    ProtocolError if it cannot be imported.
    """
    return _makers(module_of(path))


def only_maker(file: str) -> tuple[str, ProtocolFunction]:
    """The one protocol of a file with its name. UnknownProtocolError if it has none, or several, which are named."""
    module = module_of(Path(file))
    found = list(_makers(module).items())
    if not found:
        raise UnknownProtocolError(
            f"{file} has no function that makes a protocol",
            cause=_others(module),
            correction="write one that ends with `return p`, each of its parameters with a whole number as its default",
        )
    if len(found) > 1:
        raise SeveralProtocolsError(
            f"{file} has several functions that make a protocol",
            cause=f"it has {', '.join(name for name, _ in found)}",
            correction=" or ".join(f"{file}:{name}" for name, _ in found[:_MOST_PROPOSED]),
        )
    return found[0]


def _makers(module: ModuleType) -> dict[str, ProtocolFunction]:
    annotated: dict[str, ProtocolFunction] = {}
    plain: dict[str, ProtocolFunction] = {}
    for name in _public(module):
        function = vars(module)[name]
        returns = inspect.get_annotations(function).get("return", inspect.Signature.empty)
        if returns is Protocol or (isinstance(returns, str) and returns in ("Protocol", "pipesim.Protocol")):
            annotated[name] = function
        elif returns is inspect.Signature.empty and all(
            type(parameter.default) is int for parameter in inspect.signature(function).parameters.values()
        ):
            plain[name] = function
    return annotated or plain


def _others(module: ModuleType) -> str:
    """What a file without a protocol has instead."""
    public = _public(module)
    if not public:
        return "it has no functions"
    return f"{', '.join(public)}: of another type, or with a parameter whose default is not a whole number"


def jit_functions(name: str) -> list[str]:
    """The kernels of Triton or Gluon that ``file.py`` or ``file.py:function`` names, by the text of the file.

    Of a file, in which nothing describes protocols, those that no other one calls.
    """
    file, _, function = (name, "", "") if name.endswith(".py") else name.rpartition(":")
    if not file.endswith(".py") or not Path(file).is_file():
        return []
    try:
        text = _PYTHON.read_text(Path(file))
    except ProtocolError:
        return []  # what is wrong is said where it is run
    whole = not function and not re.search(r"^(from|import) pipesim\b", text, re.MULTILINE)
    return [each for each in _JIT.findall(text) if each == function or (whole and text.count(f"{each}(") == 1)]


def function_of(path: Path, function: str) -> ProtocolFunction:
    """The function of this name in a Python file."""
    module = module_of(path)
    found = vars(module).get(function)  # what the file has, not what a __getattr__ of it makes up
    if not callable(found):
        raise UnknownProtocolError(f"{path} has no function {function!r}", correction=_functions(module, function))
    made: ProtocolFunction = found  # what it returns is checked when it is called
    return made


class _FromSource(SourceFileLoader):
    """Reads the source each time: bytecode is known by second and size, and a file may change twice in a second."""

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002  # the base class's
        """The compiled source, and no file beside it."""
        code: CodeType = self.source_to_code(self.get_data(self.path), self.path)
        return code


def module_of(path: Path) -> ModuleType:
    """A Python file, which is run; it may import from its folder, as ``python FILE``."""
    if not path.is_file():
        near = _near_files(path)
        raise UnknownProtocolError(
            f"there is no file {path}",
            correction=f"did you mean {near[0]}?" if near else "give the path of a Python file",
        )
    require_python_allowed(path)
    quote_protocols_of(path)
    name = f"pipesim_user_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path, loader=_FromSource(name, str(path.absolute())))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and pickling in the user's file need to find it
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    except NOT_OURS:
        raise
    except BaseException as error:
        raise ProtocolError(
            f"{path} cannot be imported: {in_words(error)}",
            place=_line_of(error, path),
            correction=_correction_for(error, path),
        ) from error
    finally:
        with suppress(ValueError):  # the file may have changed the list
            sys.path.remove(folder)
    return module


def require_python_allowed(path: Path) -> None:
    """UsageError in a process that reads files of strangers."""
    if confined:
        raise UsageError(
            f"{path} is not run",
            cause="a Python file is code, and --untrusted runs none",
            correction="leave --untrusted out, or name the flat program of it that `run --save-program` writes",
        )


def _near_files(path: Path) -> list[Path]:
    """The Python file beside it whose name is nearest, if one is near."""
    beside = {other.name: other for other in path.parent.glob("*.py")} if path.parent.is_dir() else {}
    return [beside[name] for name in difflib.get_close_matches(path.name, sorted(beside), n=1)]


def _functions(module: ModuleType, wanted: str) -> str:
    """What the module has instead of the function that was wanted."""
    public = [*_public(module), *(name for name, each in vars(module).items() if type(each).__name__ == "JITFunction")]
    near = difflib.get_close_matches(wanted, public, n=1, cutoff=0.4)
    return f"did you mean {near[0]}?" if near else f"it has {', '.join(public) or 'none'}"


def _public(module: ModuleType) -> list[str]:
    """The functions that a file defines, in its order."""
    return [
        name
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == vars(module).get("__name__") and not name.startswith("_")
    ]


def _correction_for(error: BaseException, path: Path) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"install {error.name} where pipesim is installed, put it beside {path}, or leave the import out"
    return f"fix the file until `python {path}` runs"


def _line_of(error: BaseException, path: Path) -> str:
    """``file:line`` that raised while ``path`` was imported: the last one in it, else the file itself."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno or 1}"
    trace = error.__traceback__
    place = str(path)
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename) == path.resolve():
            place = f"{path.resolve()}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place
