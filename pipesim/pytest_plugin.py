"""For pytest, which loads this by itself where pipesim is installed: ``captured_launches``, the launches of a test.

def test_my_kernel(captured_launches):
my_kernel[grid](a, b, c)
assert captured_launches.check().all_proved
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pipesim.launches.capture import CapturedLaunches


@pytest.fixture
def captured_launches(tmp_path: Path) -> Iterator[CapturedLaunches]:
    """The launches of this test, from here on: see :func:`pipesim.capture_launches`.

    The files are in ``tmp_path / "launches"``. A test that asks for it is skipped where there is no CUPTI or driver.
    """
    from pipesim.errors import MissingExtraError
    from pipesim.launches.capture import capture_launches

    with ExitStack() as stack:
        try:
            captured = stack.enter_context(capture_launches(tmp_path / "launches"))
        except MissingExtraError as error:
            pytest.skip(f"launches cannot be captured: {error.fact}")
        yield captured
