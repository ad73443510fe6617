"""The pictures of the documentation are what the commands draw now, and contain nothing that is fetched."""

from xml.etree import ElementTree as ET

import pytest

from tests.support.lanes import long_but, slow_but
from tools.docs_pictures import BY_HAND, DRAWN, FOLDER, drawn


@pytest.mark.sampled(4, 8)
@pytest.mark.parametrize("name", long_but([name for name in DRAWN if "load-order" not in name], slow_but(DRAWN, DRAWN)))
def test_a_picture_is_what_is_drawn_now(name: str) -> None:
    kept = (FOLDER / name).read_bytes()
    assert kept == drawn(name)
    addresses = [value for each in ET.fromstring(kept).iter() for value in each.attrib.values() if "://" in value]
    assert addresses == []


def test_every_svg_of_the_folder_is_in_the_list() -> None:
    assert {path.name for path in FOLDER.glob("*.svg")} == {*DRAWN, *BY_HAND}
