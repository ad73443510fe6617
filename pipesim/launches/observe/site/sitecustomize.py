"""Python runs this file when it starts, because `pipesim launches` puts its folder first on PYTHONPATH.

It begins to observe the process, and then runs the ``sitecustomize`` that Python would have run without it. No
error here may reach the program.
"""

import importlib.util
import os
import sys
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent


def _observe() -> None:
    """Begin, with the pipesim that this file is of, whatever the process has installed."""
    spool = Path(os.environ["PIPESIM_LAUNCHES_SPOOL"])
    if sys.version_info < (3, 11):  # noqa: UP036  # the program may run in another Python
        _note(spool, f"Python {sys.version.split()[0]} is older than 3.11: its launches were not observed")
        return
    _provide(_FOLDER.parents[2])
    from pipesim.errors import PipesimError
    from pipesim.launches.observe import Limits, start

    try:
        if os.environ.get("PIPESIM_RECORD"):
            from pipesim.launches.record.options import RecordOptions
            from pipesim.launches.record.process import start_recording
            from pipesim.launches.record.requests import asked_in

            options = RecordOptions.from_environment()
            start_recording(spool, Limits.from_environment(), options, asked_in(spool))
        else:
            start(spool, Limits.from_environment())
    except PipesimError as error:
        _note(spool, str(error))


def _provide(package: Path) -> None:
    """A package of this pipesim, which need not be on the program's path."""
    if package.name in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(
        package.name, package / "__init__.py", submodule_search_locations=[str(package)]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"{package} is not there")
    module = importlib.util.module_from_spec(spec)
    sys.modules[package.name] = module
    spec.loader.exec_module(module)


def _note(spool: Path, text: str) -> None:
    import json
    import secrets

    file = spool / f"{os.getpid()}-{secrets.token_hex(8)}.jsonl"
    file.write_text(json.dumps({"kind": "note", "text": text}) + "\n")


def _next() -> None:
    """Run the sitecustomize that comes after this one on the path."""
    this = sys.modules.pop("sitecustomize")
    here = sys.path[:]
    sys.path[:] = [each for each in sys.path if Path(each or ".").resolve() != _FOLDER]
    try:
        import sitecustomize  # noqa: F401
    except ImportError:
        pass
    finally:
        sys.modules.setdefault("sitecustomize", this)  # which whoever imports this file looks for
        sys.path[:] = [each for each in here if Path(each or ".").resolve() != _FOLDER]


if os.environ.get("PIPESIM_LAUNCHES_SPOOL"):
    try:
        _observe()
    except Exception as error:  # noqa: BLE001
        print(f"pipesim: the launches of this process are not observed: {error}", file=sys.stderr)
_next()
