"""The places where frameworks launch kernels: theirs are changed for a recording, and come back after it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from pipesim.launches.record.launches import RecordedLaunches
from pipesim.launches.record.preparation import Assembler
from pipesim.launches.record.session import Frameworks

BESIDE, INSTRUMENTED = 99, 2
NAMES = ("triton", "triton.compiler.compiler", "cuda.core", "cuda.core.experimental", "cuda.bindings.driver")


class Recorded(RecordedLaunches):
    """Records the function 1, after a dry run."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int, Assembler]] = []

    @contextmanager
    def recorded_launch(
        self,
        function: int,
        stream: int,
        dry: Any,
        assembler: Assembler = Assembler(),  # noqa: B008
    ) -> Iterator[int]:
        self.asked.append((function, stream, assembler))
        if function != 1:
            yield function
            return
        dry(BESIDE)
        yield INSTRUMENTED


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Changes modules of the test, which have the names of the real ones."""
    made: list[Frameworks] = []

    def change(**modules: Any) -> Recorded:
        for name in NAMES:
            monkeypatch.delitem(sys.modules, name, raising=False)
        for name, module in modules.items():
            monkeypatch.setitem(sys.modules, name.replace("__", "."), module)
        launches = Recorded()
        made.append(Frameworks(launches))
        made[-1].change()
        return launches

    yield change
    for each in made:
        each.restore()


def module_of(**members: Any) -> ModuleType:
    made = ModuleType("made")
    vars(made).update(members)
    return made


class TestTriton:
    def compiler(self, *functions: int, **metadata: Any) -> tuple[Any, list[Any], list[tuple[Any, ...]]]:
        """A module, kernels with these functions, and their launches."""
        launched: list[tuple[Any, ...]] = []

        class CompiledKernel:
            def __init__(self, function: int) -> None:
                self.function, self.metadata = function, SimpleNamespace(**metadata)

            @property
            def run(self) -> Any:
                return lambda *given: launched.append(given)

        module = module_of(CompiledKernel=CompiledKernel)
        return module, [CompiledKernel(each) for each in functions], launched

    def test_the_assembler_has_the_options_of_the_kernel(self, changed: Any) -> None:
        module, (kernel,), _ = self.compiler(1, enable_fp_fusion=False, ptx_options="--opt-level 2")
        launches = changed(triton__compiler__compiler=module)
        kernel.run(1, 1, 1, 0, kernel.function, "packed", "metadata", None, None)
        assert launches.asked[0][2] == Assembler(None, ("--fmad=false", "--opt-level", "2"))


class Handle:
    """A handle of the bindings: a number in an object."""

    def __init__(self, value: int = 0) -> None:
        self.value = value

    def __int__(self) -> int:
        return self.value

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and int(other) == self.value

    def __hash__(self) -> int:
        return self.value


class CUfunction(Handle):
    """A function."""


class CUstream(Handle):
    """A stream."""


class TestBindings:
    def test_the_functions_of_the_driver(self, changed: Any) -> None:
        launched: list[tuple[Any, ...]] = []
        module = module_of(
            cuLaunchKernel=lambda *given: launched.append(given),
            cuLaunchKernelEx=lambda config, *given: launched.append((config.hStream, *given)),
            CUfunction=CUfunction,
            CUstream=CUstream,
        )
        launches = changed(cuda__bindings__driver=module)
        shape = (4, 1, 1, 128, 1, 1, 0)
        module.cuLaunchKernel(CUfunction(1), *shape, CUstream(7), "values", 0)
        module.cuLaunchKernel(CUfunction(3), *shape, None, "values", 0)
        module.cuLaunchKernelEx(SimpleNamespace(hStream=CUstream(8)), CUfunction(1), "values", 0)
        assert launched == [
            (CUfunction(1), *shape, CUstream(BESIDE), "values", 0),
            (CUfunction(INSTRUMENTED), *shape, CUstream(7), "values", 0),
            (CUfunction(3), *shape, None, "values", 0),
            (CUstream(BESIDE), CUfunction(1), "values", 0),
            (CUstream(8), CUfunction(INSTRUMENTED), "values", 0),
        ]
        assert [each[:2] for each in launches.asked] == [(1, 7), (3, 0), (1, 8)]

    def test_the_launch_is_in_its_own_stream_where_the_field_that_is_read_is_a_view(self, changed: Any) -> None:
        driver = pytest.importorskip("cuda.bindings.driver")
        launched: list[int] = []
        module = module_of(
            cuLaunchKernelEx=lambda config, *_: launched.append(int(config.hStream)),
            CUfunction=driver.CUfunction,
            CUstream=driver.CUstream,
        )
        changed(cuda__bindings__driver=module)
        config = driver.CUlaunchConfig()
        config.hStream = driver.CUstream(8)
        module.cuLaunchKernelEx(config, driver.CUfunction(1), "values", 0)
        assert launched == [BESIDE, 8]


class TestCore:
    class Kernel:
        """A kernel of ``cuda.core``."""

        def __init__(self, handle: int) -> None:
            self.handle = Handle(handle)

        @classmethod
        def from_handle(cls, handle: int) -> Any:
            return cls(handle)

    class Stream(Kernel):
        """A stream."""

        def __cuda_stream__(self) -> tuple[int, int]:
            return 0, int(self.handle)

    def test_launch(self, changed: Any) -> None:
        launched: list[tuple[Any, ...]] = []

        def launch(stream: Any, config: Any, kernel: Any, *values: Any) -> None:
            launched.append(
                (stream if stream == "builder" else int(stream.handle), config, int(kernel.handle), *values)
            )

        module = module_of(launch=launch, Kernel=self.Kernel, Stream=self.Stream)
        again = module_of(launch=launch, Kernel=self.Kernel, Stream=self.Stream)
        launches = changed(cuda__core=module, cuda__core__experimental=again)
        module.launch(self.Stream(7), "config", self.Kernel(1), 5)
        module.launch(self.Stream(7), "config", self.Kernel(3), 5)
        module.launch("builder", "config", self.Kernel(1), 5)  # of a graph
        assert launched == [
            (BESIDE, "config", 1, 5),
            (7, "config", INSTRUMENTED, 5),
            (7, "config", 3, 5),
            ("builder", "config", 1, 5),
        ]
        assert [each[:2] for each in launches.asked] == [(1, 7), (3, 7)]

    def test_the_real_one_is_changed_and_comes_back(self) -> None:
        core = pytest.importorskip("cuda.core")
        original = core.launch
        frameworks = Frameworks(Recorded())
        frameworks.change()
        changed = core.launch
        frameworks.restore()
        assert changed is not original
        assert core.launch is original
        assert hasattr(core.Kernel, "from_handle")
        assert hasattr(core.Stream, "from_handle")
        assert hasattr(core.Stream, "__cuda_stream__")


def test_a_framework_that_is_imported_later(changed: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "triton" / "compiler"
    folder.mkdir(parents=True)
    (tmp_path / "triton" / "__init__.py").write_text("")
    (folder / "__init__.py").write_text("")
    (folder / "compiler.py").write_text("class CompiledKernel:\n    run = property(lambda self: None)\n")
    monkeypatch.delitem(sys.modules, "triton.compiler", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    changed()
    from triton.compiler.compiler import CompiledKernel  # type: ignore[import-not-found,unused-ignore]

    assert type(CompiledKernel().run).__name__ == "partial"
    for name in ("triton", "triton.compiler", "triton.compiler.compiler"):
        monkeypatch.delitem(sys.modules, name)
