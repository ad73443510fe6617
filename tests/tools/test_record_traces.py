"""What is recorded of every kernel: configurations that can be captured, each into a file of its own."""

import pytest

from hwkernels.capture.request import check_request
from hwkernels.capture.twin_subject import recorded_request
from hwkernels.twins import REGISTRY


@pytest.mark.parametrize("name", REGISTRY)
def test_every_configuration_can_be_asked_for(name: str) -> None:
    for recorded in REGISTRY[name].recorded:
        check_request(recorded_request(name, recorded))
