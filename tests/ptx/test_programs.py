"""The flat programs of our kernels, operation by operation: after a change on purpose, ``tools/update_golden.py``."""

import json
from pathlib import Path

import pytest

from tests.support.ptx_programs import PINNED, kernel_paths, summary


@pytest.mark.parametrize("path", kernel_paths(), ids=lambda path: path.stem)
def test_a_kernel_gives_the_program_that_is_pinned(path: Path) -> None:
    assert summary(path) == json.loads(PINNED.read_text(encoding="utf-8"))[path.stem]
