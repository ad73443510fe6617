"""Commands of the doctor name what pip can install: the checkout that pipesim was installed from."""

import json
from pathlib import Path

import pytest

from pipesim.doctor.examine import as_installed, checkout


def record(folder: Path) -> str:
    return json.dumps({"dir_info": {}, "url": folder.as_uri()})


def test_a_checkout_is_found_while_it_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "a clone"
    folder.mkdir()
    assert checkout(record(folder)) is None, "no package"
    (folder / "pyproject.toml").touch()
    assert checkout(record(folder)) == folder


@pytest.mark.parametrize(
    "text", [None, "", "no JSON", "[]", "{}", '{"url": 5}', '{"url": "https://example.com/p.whl"}']
)
def test_what_is_no_checkout(text: str | None) -> None:
    assert checkout(text) is None


def test_commands_name_the_folder() -> None:
    folder = Path("/home/a b/clone")
    assert as_installed("pip install 'pipesim[gpu]'", folder) == "pip install '/home/a b/clone[gpu]'"
    assert as_installed("pip install --upgrade pipesim", Path("/src")) == "pip install --upgrade /src"
    for other in ("pip install triton", "install the CUDA toolkit, not pipesim", ""):
        assert as_installed(other, folder) == other
    assert as_installed("pip install 'pipesim[gpu]'", None) == "pip install 'pipesim[gpu]'"
