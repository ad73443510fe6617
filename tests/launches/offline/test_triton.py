"""Triton and Gluon offline. Triton itself is not installed here: a small stand-in has what the module uses of it."""

import sys
import types
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest

from pipesim import launches
from pipesim.errors import MissingExtraError, OutputExistsError, UsageError
from pipesim.launches.offline import tensor_map
from pipesim.ptx.launch.file import read_launch
from pipesim.ptx.launch.values import Array, Field, Launch, Number, Parameter, Pointer, TensorMap

PTX = ".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry k()\n.maxnreg 168\n{ ret; }\n"
META = {"swizzle": 3, "elem_size": 2, "elem_type": 10, "block_size": [128, 64], "fp4_padded": False}


@dataclass
class Tensor:
    """What Triton asks of a tensor."""

    dtype: str = "torch.float16"
    device: str = "meta"
    values: tuple[int, ...] = ()

    def numel(self) -> int:
        return len(self.values)

    def flatten(self) -> "Tensor":
        return self

    def tolist(self) -> list[int]:
        return list(self.values)


@dataclass
class Descriptor:
    """A tensor descriptor."""

    shape: list[int]
    strides: list[int]
    base: Tensor = field(default_factory=Tensor)
    padding: str = "zero"
    round_f32_to_tf32: bool = False


class Kernel:
    """A compiled function with one cache entry, whose launch asks the active driver for its target, as Triton does."""

    def __init__(self, signature: dict[str, Any], descriptors: tuple[Any, ...] = (), times: int = 1) -> None:
        metadata = types.SimpleNamespace(name="k", num_ctas=2, num_warps=4, shared=4096, tensordesc_meta=descriptors)
        source = types.SimpleNamespace(fn=types.SimpleNamespace(arg_names=list(signature)), signature=signature)
        self.compiled = types.SimpleNamespace(asm={"ptx": PTX}, metadata=metadata, src=source)
        self.device_caches = {90: ({"key": self.compiled},)}
        self.times = times
        self.targets: list[int] = []

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        def run(*args: Any, **options: Any) -> None:
            driver = sys.modules["triton.runtime.driver"].driver._active
            self.targets.append(driver.get_current_target().arch)
            assert driver.get_device_capability() == divmod(self.targets[-1], 10)
            assert driver.utils.get_device_properties(0)["max_shared_mem"] == 232448
            launcher = driver.launcher_cls(self.compiled.src, self.compiled.metadata)
            for _ in range(self.times):
                launcher(*(*grid, 1, 1)[:3], 0, None, None, None, None, None, *args)

        return run


@pytest.fixture
def stand_in(monkeypatch):
    """Modules with the names that are imported."""
    names = ("triton", "triton.backends", "triton.backends.compiler", "triton.runtime", "triton.runtime.driver")
    made = {name: types.ModuleType(name) for name in names}
    compiler, driver = made["triton.backends.compiler"], made["triton.runtime.driver"]
    monkeypatch.setattr(compiler, "GPUTarget", lambda _, arch, warp: types.SimpleNamespace(arch=arch), raising=False)
    config = types.SimpleNamespace(_active="before")
    config.set_active = lambda active: setattr(config, "_active", active)
    monkeypatch.setattr(driver, "driver", config, raising=False)
    for name, module in made.items():
        monkeypatch.setitem(sys.modules, name, module)
    return config


def test_a_launch_is_described(stand_in):
    signature = {"p": "*fp16", "n": "i32", "C": "constexpr", "x": "fp32", "flag": "i1", "t": ("i64", "*i32")}
    sizes = Tensor("torch.int32", "cpu", (3, -4))
    made = launches.triton(Kernel(signature), Tensor(), 7, 64, 0.5, True, (9, sizes), grid=(5, 2))
    contents = (
        ("p", Pointer()),
        ("n", Number("s32", 7)),
        ("x", Number("f32", 0.5)),
        ("flag", Number("u8", 1)),
        ("t", Number("s64", 9)),
        ("t", Pointer(contents=(Field(0, Array("s32", (3, -4))),))),
        ("global_scratch", Pointer()),
        ("profile_scratch", Pointer()),
    )
    parameters = tuple(Parameter(*each) for each in contents)
    assert made.launch == Launch("k", (10, 2, 1), (128, 1, 1), (2, 1, 1), 4096, 168, parameters)
    assert (made.name, made.arch, made.ptx) == ("k", "sm_90a", PTX)
    assert stand_in._active == "before"


def test_a_descriptor_is_a_map_and_its_sizes(stand_in):
    kernel = Kernel({"d": "tensordesc<fp16[128,64]>"}, (META,))
    made = launches.triton(kernel, Descriptor([1024, 512], [512, 1]), grid=(1,), arch="sm_90a")
    assert [each.content for each in made.launch.parameters[:5]] == [
        TensorMap("bf16", (512, 1024), (64, 128), (1024,), (), "128B"),
        Number("s32", 1024),
        Number("s32", 512),
        Number("s64", 512),
        Number("s64", 1),
    ]


def test_a_descriptor_that_the_kernel_encodes_is_a_pointer_sizes_and_flags(stand_in):
    made = launches.triton(Kernel({"d": "tensordesc<fp16[8]>"}), Descriptor([64], [1]), grid=(1,))
    assert [each.content for each in made.launch.parameters[:7]] == [
        Pointer(),
        Number("s64", 64),
        Number("s64", 1),
        Number("u8", 0),
        Number("u8", 0),
        Number("s32", 64),
        Number("s64", 1),
    ]


@pytest.mark.parametrize(
    ("changes", "tf32", "expected"),
    [
        ({"swizzle": 0, "elem_type": 0, "elem_size": 1}, False, TensorMap("u8", (64, 32), (64, 128), (64,))),
        ({"elem_type": 8}, False, TensorMap("f32_ftz", (64, 32), (64, 128), (128,), (), "128B")),
        ({"elem_type": 9}, False, TensorMap("f64", (64, 32), (64, 128), (128,), (), "128B")),
        ({"elem_type": 7, "elem_size": 4}, True, TensorMap("tf32", (64, 32), (64, 128), (256,), (), "128B")),
        ({"fp4_padded": True, "elem_size": 1}, False, TensorMap("u4_align16", (128, 32), (64, 128), (64,), (), "128B")),
        ({"is_im2col": True}, False, TensorMap("bf16", (64, 32), (64,), (128,), (), "128B", pixels=128)),
    ],
)
def test_the_box_is_that_of_the_metadata(changes, tf32, expected):
    """A block's shape is not the box; the device numbers some types in another order than the driver."""
    assert tensor_map(META | changes, [32, 64], [64, 1], tf32=tf32) == expected


def test_an_autotuned_kernel_has_its_first_configuration_only_while_it_runs(stand_in):
    seen = []

    class Tuner:
        configs: ClassVar = ["first", "second"]
        fn = Kernel({"n": "i32"})

        def __getitem__(self, grid):
            seen.append(list(self.configs))
            return self.fn[grid]

    tuner = Tuner()
    launches.triton(tuner, 3, grid=(1,))
    assert seen == [["first"]]
    assert tuner.configs == ["first", "second"]


@pytest.mark.parametrize("times", [0, 2])
def test_a_call_that_does_not_launch_one_kernel(stand_in, times):
    with pytest.raises(UsageError, match=f"the call launched {times} kernels"):
        launches.triton(Kernel({"n": "i32"}, times=times), 3, grid=(1,))
    assert stand_in._active == "before"


def test_an_architecture_that_is_not_known():
    with pytest.raises(UsageError, match="the architecture 'sm_80' is not known"):
        launches.triton(Kernel({}), grid=(1,), arch="sm_80")


def test_triton_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(MissingExtraError, match="Triton is not installed"):
        launches.triton(Kernel({}), grid=(1,))


def test_both_files_are_written_and_not_overwritten(stand_in, tmp_path):
    made = launches.triton(Kernel({"n": "i32"}), 3, grid=(1,))
    ptx, launch = made.save(tmp_path / "new")
    assert ptx.read_text() == PTX
    assert read_launch(launch.read_text(), "k.json") == made.launch
    with pytest.raises(OutputExistsError):
        made.save(tmp_path / "new")
    made.save(tmp_path / "new", force=True)
