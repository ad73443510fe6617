"""A class name means one thing in the whole package: a reader who searches for it finds one definition."""

import re
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "pipesim"


def definitions(package: Path) -> dict[str, list[str]]:
    """For each class of the package the files that define it."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(package.rglob("*.py")):
        for name in re.findall(r"^ *class (\w+)[:(]", path.read_text(), re.MULTILINE):
            found[name].append(path.relative_to(package).as_posix())
    return found


def test_every_class_name_is_defined_once() -> None:
    assert {name: files for name, files in definitions(PACKAGE).items() if len(files) > 1} == {}
