"""``pipesim doctor``: what is there, what is missing, and what is possible, on machines that a test makes up."""

# ruff: noqa: N802  # the driver's functions have its names
import ctypes
import json
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import pipesim
from hwkernels.device.presence import DriverPresent, GpuPresent, driver_present
from pipesim.answers.views.doctor import MachinePart, Purpose
from pipesim.cli.main import main
from pipesim.doctor import examine as examination
from pipesim.doctor.examine import (
    Requirement,
    cupti_part,
    driver_part,
    gpu_part,
    hopper_part,
    own_requirements,
    package_parts,
    python_part,
    report_of,
    requirement,
    tool_parts,
    triton_part,
)
from pipesim.report.pages.doctor import doctor_lines

H200 = DriverPresent((13, 0), "580.65.06", (GpuPresent("NVIDIA H200", (9, 0)),))
NONE = DriverPresent(problem="libcuda.so.1: cannot open shared object file")


class FakeCuda:
    """The functions of ``libcuda`` that are asked; ``init`` is what cuInit returns."""

    def __init__(self, init: int = 0, version: int = 13000) -> None:
        self._init, self._version = init, version

    def cuDriverGetVersion(self, number: Any) -> int:
        return self._set(number, self._version)

    def cuInit(self, _: int) -> int:
        return self._init

    def cuGetErrorName(self, status: int, text: Any) -> int:
        text._obj.value = b"CUDA_ERROR_NO_DEVICE" if status == 100 else None
        return 0

    def cuDeviceGetCount(self, number: Any) -> int:
        return self._set(number, 2)

    def cuDeviceGet(self, device: Any, ordinal: int) -> int:
        return self._set(device, 10 + ordinal)

    def cuDeviceGetName(self, name: Any, size: int, device: ctypes.c_int) -> int:
        assert size == len(name)
        name.value = b"GPU of handle %d" % device.value
        return 0

    def cuDeviceGetAttribute(self, number: Any, attribute: int, device: ctypes.c_int) -> int:
        return self._set(number, {75: device.value, 76: 1}[attribute])

    def _set(self, to: Any, value: int) -> int:
        to._obj.value = value
        return 0


class TestDriver:
    def test_says_its_version_and_gpus(self, tmp_path: Path) -> None:
        module = tmp_path / "version"
        module.write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun\nGCC version: 13\n", "utf-8")
        found = driver_present(lambda _: FakeCuda(), module)
        gpus = (GpuPresent("GPU of handle 10", (10, 1)), GpuPresent("GPU of handle 11", (11, 1)))
        assert found == DriverPresent((13, 0), "580.65.06", gpus)

    def test_that_cannot_be_used_says_why(self, tmp_path: Path) -> None:
        found = driver_present(lambda _: FakeCuda(init=100, version=12080), tmp_path / "none")
        assert found == DriverPresent((12, 8), problem="cuInit failed: CUDA_ERROR_NO_DEVICE")
        assert driver_present(lambda _: FakeCuda(init=7), tmp_path / "none").problem == "cuInit failed: 7"

    def test_there_may_be_none(self, tmp_path: Path) -> None:
        def load(name: str) -> Any:
            raise OSError(f"{name}: no")

        assert driver_present(load, tmp_path / "none") == DriverPresent(problem="libcuda.so.1: no")


class TestParts:
    def test_an_old_python(self) -> None:
        part = python_part((3, 10, 2), "python")
        assert (part.is_there, part.problem) == (False, "3.10.2 is older than 3.11")
        assert python_part((3, 12, 1), "python").found == "3.12.1 · python"

    @pytest.mark.parametrize(
        ("found", "problem", "correction"),
        [
            (NONE, NONE.problem, "on a machine with an NVIDIA GPU: install a driver of branch 580 or newer"),
            (
                DriverPresent(module="580.65.06", problem="no file"), "no file",
                "start the container with its GPUs (docker run --gpus all): the machine has a driver",
            ),
            (
                DriverPresent((12, 8), "570.1"), "570.1 (CUDA 12.8): the CUDA packages need a driver for CUDA 13.0",
                "install a driver of branch 580 or newer",
            ),
        ],
    )  # fmt: skip
    def test_a_driver_that_will_not_do(self, found: DriverPresent, problem: str, correction: str) -> None:
        part = driver_part(found)
        assert (part.is_there, part.problem, part.correction) == (False, problem, correction)

    def test_a_gpu(self) -> None:
        assert (driver_part(H200).found, gpu_part(H200).found) == ("580.65.06 (CUDA 13.0)", "NVIDIA H200 (sm_90)")
        assert hopper_part(H200).is_there
        blackwell = DriverPresent((13, 0), "", (GpuPresent("NVIDIA B200", (10, 0)),))
        assert (gpu_part(blackwell).is_there, hopper_part(blackwell).problem) == (
            True, "NVIDIA B200 runs no code for sm_90a"
        )  # fmt: skip
        assert gpu_part(DriverPresent((13, 0))).problem == "the driver sees none"

    def test_cupti_is_the_first_that_can_be_loaded(self) -> None:
        def load(name: str) -> Any:
            if name != "b":
                raise OSError(f"{name}: no")

        assert cupti_part(load, ["a", "b"]).found == "b"
        assert cupti_part(load, ["a"]).problem == "a: no"
        assert cupti_part(load, []).problem == "libcupti was not found"

    def test_tools_of_others(self) -> None:
        parts = tool_parts({"gcc": "/bin/gcc", "spin": "/bin/spin"}.get)
        assert [part.is_there for part in parts] == [True, False, True]
        assert all(part.needed == () for part in parts), "nothing depends on them"


class TestPackages:
    NEEDED = (requirement("numpy>=1.26"), requirement('cuda-core<2,>=1.0; extra == "gpu"'))

    def test_requirements_are_read(self) -> None:
        assert (
            Requirement("numpy", ((">=", (1, 26)),)),
            Requirement("cuda-core", ((">=", (1, 0)), ("<", (2,))), "gpu"),
        ) == self.NEEDED
        assert [str(each) for each in self.NEEDED] == ["numpy>=1.26", "cuda-core>=1.0,<2"]
        assert requirement("pipesim[gpu]; extra == 'test'") == Requirement("pipesim", (), "test")

    def test_what_is_missing_and_what_is_old(self) -> None:
        plain, extra = package_parts(self.NEEDED, {"numpy": "1.20"}.get)
        assert (plain.name, plain.problem) == ("packages", "numpy>=1.26 is needed, and 1.20 is installed")
        assert (extra.name, extra.problem) == ("extra gpu", "cuda-core>=1.0,<2 is not installed")
        assert extra.correction == "pip install 'pipesim[gpu]'"
        *_, many = package_parts([requirement(f"p{n}>=1; extra == 'test'") for n in range(9)], dict[str, str]().get)
        assert many.problem.endswith("; p2>=1 is not installed; p3>=1 is not installed; 5 more")
        assert extra.needed == (Purpose.COMPILE, Purpose.CAPTURE, Purpose.LAUNCHES)
        assert [part.is_there for part in package_parts(self.NEEDED, {"numpy": "2.0", "cuda-core": "1.2"}.get)] == [
            True
        ] * 2

    def test_without_metadata_it_says_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def missing(name: str) -> Any:
            raise metadata.PackageNotFoundError(name)

        monkeypatch.setattr(metadata, "requires", missing)
        assert own_requirements() is None
        (part,) = package_parts(None, lambda _: None)
        assert (part.is_there, part.found) == (
            True, "pipesim runs from its source: which packages it needs is not known"
        )  # fmt: skip


class TestReport:
    PARTS = (
        MachinePart("Python", "3.12", needed=(Purpose.CHECK,)),
        *package_parts(TestPackages.NEEDED, {"numpy": "2.0"}.get),
        driver_part(NONE),
        gpu_part(NONE),
        triton_part(lambda _: "3.5.0"),
    )

    def test_the_page(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pipesim, "__file__", "/venv/pipesim/__init__.py")
        monkeypatch.setattr(pipesim, "__version__", "1.2.3")
        assert doctor_lines(report_of(self.PARTS, [Purpose.LAUNCHES]), 80) == PAGE.splitlines()

    @pytest.mark.slow
    def test_the_command(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(examination, "driver_present", lambda: NONE)
        assert main(["doctor", "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert (document["exit_code"], document["report"]["asked"]) == (0, ["check"])
        assert main(["doctor", "--for", "capture", "--for", "check", "--json"]) == 1
        document = json.loads(capsys.readouterr().out)
        assert (document["exit_code"], document["report"]["asked"]) == (1, ["capture", "check"])
        assert main(["doctor"]) == 0
        assert capsys.readouterr().out.endswith("✓ check: possible here\n")

    def test_every_use_can_be_asked_for(self) -> None:
        from pipesim.cli.doctor import USES

        assert tuple(use.name.lower() for use in Purpose) == USES


PAGE = """\
pipesim 1.2.3 /venv/pipesim

  ✓ Python     3.12
  ✓ packages   numpy 2.0
  ✗ extra gpu  cuda-core>=1.0,<2 is not installed
               try: pip install 'pipesim[gpu]'
  ✗ driver     libcuda.so.1: cannot open shared object file
               try: on a machine with an NVIDIA GPU: install a driver of branch
                 580 or newer
  ✗ GPU        there is no driver
  ✓ Triton     3.5.0

what is possible here

  ✓ check, run, diff and verify: protocols, kernels' PTX, recorded traces
  – compile CUDA kernels, as capture does (NVRTC) (needs extra gpu)
  – capture and verify with fresh traces of this GPU (needs extra gpu, driver
    and GPU)
  ✗ launches: catch the kernels that a program launches (needs extra gpu, driver
    and GPU)
  – hang: core dumps of a program whose kernels hang (needs driver and GPU)
  ✓ launches.triton: launch files of Triton and Gluon kernels, without a GPU
  ✓ pipesim's own tests

✗ launches: not possible here without extra gpu, driver and GPU
"""
