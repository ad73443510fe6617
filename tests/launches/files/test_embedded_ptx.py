"""What a program, a library, an object or a compiler's cache has PTX of."""

from pathlib import Path

import pytest

from pipesim.errors import PtxError, UsageError
from pipesim.launches.files.embedded_ptx import FoundKernel, chosen_kernel, found_kernels
from tests.support.fat_binaries import ZSTD, container, entry

PTX, ELF = 1, 2


def kernels_in(path: Path) -> dict[str, FoundKernel]:
    """The kernels of a path that have PTX, by name."""
    return {each.name: each for each in found_kernels(path) if each.text}


def text_of(*kernels: str, target: str = "sm_90") -> bytes:
    """A module with kernels that do nothing."""
    entries = "".join(f".visible .entry {name}(.param .u64 out)\n{{\nret;\n}}\n" for name in kernels)
    return f".version 8.5\n.target {target}\n.address_size 64\n{entries}".encode()


def library(*containers: bytes) -> bytes:
    """Containers among other bytes, as a linker leaves them."""
    return b"\x7fELF" + bytes(60) + b"".join(each + bytes(-len(each) % 8 + 24) for each in containers)


def written(tmp_path: Path, data: bytes, name: str = "lib.so") -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


def test_a_folder_is_read_as_a_compilers_cache(tmp_path: Path) -> None:
    (tmp_path / "hash").mkdir()
    written(tmp_path / "hash", text_of("softmax"), "softmax.ptx")
    assert kernels_in(tmp_path)["softmax"].origin == "hash/softmax.ptx"
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="has no kernel"):
        kernels_in(tmp_path / "empty")


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (library(container(entry(ELF, 90, b"code"), entry(ELF, 80, b"code"))), "machine code only, for sm_80, sm_90"),
        (library(container(entry(PTX, 90, text_of("a")))[:100]), "its fat binary is damaged, or cut"),
        (bytes(4) + ZSTD, "there is no fat binary in it"),  # not aligned: data
        (b"no fat binary", "there is no fat binary in it"),
    ],
)
def test_a_file_without_ptx(tmp_path: Path, data: bytes, cause: str) -> None:
    with pytest.raises(PtxError) as raised:
        chosen_kernel(written(tmp_path, data), "")
    assert raised.value.fact.endswith("has no PTX")
    assert cause in raised.value.cause
    assert "code=[sm_90a,compute_90a]" in raised.value.correction


def test_an_empty_file(tmp_path: Path) -> None:
    with pytest.raises(PtxError, match="is empty"):
        kernels_in(written(tmp_path, b""))


def test_one_of_several_has_to_be_named(tmp_path: Path) -> None:
    path = written(tmp_path, library(container(entry(PTX, 90, text_of(*(f"k{n:02}" for n in range(15)))))))
    with pytest.raises(PtxError, match=r"has PTX of 15 kernels\n") as raised:
        chosen_kernel(path, "")
    assert raised.value.cause.startswith("they are k00, k01, ")
    assert raised.value.cause.endswith("k11 and 3 more")
    with pytest.raises(PtxError, match="has PTX of 15 kernels, and none is called other"):
        chosen_kernel(path, "other")
    assert chosen_kernel(path, "k14").name == "k14"
