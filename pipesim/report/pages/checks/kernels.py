"""``pipesim check PATH``: the kernels of a folder, a program or a library, and a list of what is missing."""

import shlex
from collections import Counter
from collections.abc import Sequence

from pipesim.answers.views.kernels import KernelRow
from pipesim.errors import PipesimError
from pipesim.report.text.console import mark
from pipesim.report.text.layout import wrap
from pipesim.report.text.words import count, listed, number

_OK = {0: True, 3: None}  #: by exit code; else something is wrong


def kernels_lines(rows: Sequence[KernelRow], given: Sequence[str], width: int, code: int | None) -> list[str]:
    """The rows in lines of at most ``width`` cells; the commands at the end are whole, to be copied.

    ``given``: the paths and settings of the command. ``code``: the exit code of all, None where they are listed only.
    """
    lines: list[str] = []
    for each in rows:
        parts = [each.title, each.arch, "mbarriers" * each.mbarriers, each.origin, each.launch]
        head = f"{mark(_OK.get(each.exit_code, False))} " if each.verdict or each.exit_code else "  "
        lines += wrap(" · ".join(filter(None, parts)), width, head, "    ")
        lines += wrap(each.said, width, "    ") if each.said else []
    kernels = [each for each in rows if each.name or each.exit_code != PipesimError.exit_code]
    found = Counter("with values missing" if each.needs else each.verdict for each in kernels)
    found["without a verdict"] = found.pop("", 0)
    said = [f"{number(many)} {what}" for what, many in found.items() if many]
    sentence = count(len(kernels), "kernel") + (f": {listed(said)}" if said and code is not None else "")
    unread = count(len(rows) - len(kernels), "file")
    sentence += f"; {unread} could not be read" if len(rows) > len(kernels) else ""
    lines += ["", *wrap(sentence, width, "" if code is None else f"{mark(_OK.get(code, False))} ")]
    asked = dict.fromkeys((each.name, " ".join(each.needs)) for each in rows if each.needs)
    lines += ["", "  What is missing, as the commands that give it:"] if asked else []
    command = f"  pipesim check {shlex.join(given)} --entry"
    lines += [f"{command} {shlex.quote(name)} {needs}" for name, needs in asked]
    wrong = next((each.name for each in rows if each.exit_code == 1), None)
    return lines if wrong is None else [*lines, "", f"{command} {shlex.quote(wrong)}"]
