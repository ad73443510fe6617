"""The order in which CUPTI is looked for."""

from pathlib import Path

from pipesim.launches.observe.cupti import SONAMES, cupti_libraries


def made(folder: Path, name: str) -> str:
    path = folder / name
    path.parent.mkdir(parents=True)
    path.touch()
    return str(path)


def test_without_any_the_loader_is_asked(tmp_path):
    assert cupti_libraries({}, [str(tmp_path)], tmp_path / "none") == SONAMES


def test_one_that_is_loaded_comes_first(tmp_path):
    new = made(tmp_path / "second", "nvidia/cu13/lib/libcupti.so.13")
    maps = tmp_path / "maps"
    line = "7f00-7f01 r-xp 00000000 08:01 1 /a folder/libcupti.so.12\n"
    maps.write_text(line + "7f01-7f02 rw-p 00000000 00:00 0 \n" + line)
    found = cupti_libraries({}, [str(tmp_path / "second")], maps)
    assert found == ("/a folder/libcupti.so.12", new, *SONAMES)
