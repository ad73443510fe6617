"""Kernels written in Python. Triton's and Gluon's are compiled offline, in an environment with Triton and PyTorch.

FlashAttention 4, of the CuTe DSL, comes out of its package and is called without a GPU to see its launches.
"""

from collections.abc import Iterator
from pathlib import Path

from tools.corpus import fake
from tools.corpus.environment import ROOT, Environment

_TRITON = Environment("triton", ("triton", "torch", "numpy"))
_KERNELS = ROOT / "tools" / "corpus" / "kernels"


def triton(folder: Path) -> Iterator[str]:
    """The kernels of ``kernels/on_triton.py``."""
    return _run("on_triton.py", folder)


def gluon(folder: Path) -> Iterator[str]:
    """The kernels of ``kernels/on_gluon.py``."""
    return _run("on_gluon.py", folder)


def _run(script: str, folder: Path) -> Iterator[str]:
    _TRITON.made()
    yield from _TRITON.lines(_KERNELS / script, folder)


_CUTE = Environment(
    "cute",
    ("flash-attn-4==4.0.0b36", "quack-kernels", "nvidia-cutlass-dsl", "einops", "apache-tvm-ffi", "torch-c-dlpack-ext"),
    beside=_TRITON,
)
_SMS = {"sm_90a": "132", "sm_100a": "148"}


def cute(folder: Path) -> Iterator[str]:
    """The kernels of ``kernels/on_cute.py`` that have barriers, for both architectures."""
    _CUTE.made()
    library = fake.cute(_CUTE.folder)
    for arch, sms in _SMS.items():
        work = _CUTE.folder / "programs" / arch
        work.mkdir(parents=True, exist_ok=True)
        (work / "sizes").unlink(missing_ok=True)
        for old in work.glob("*.ptx"):
            old.unlink()
        yield from _CUTE.lines(
            _KERNELS / "on_cute.py",
            folder,
            arch,
            LD_PRELOAD=str(library),
            PIPESIM_NOTES=str(work / "notes"),
            PIPESIM_SIZES=str(work / "sizes"),
            PIPESIM_SMS=sms,
            PIPESIM_CC=arch.strip("sm_a"),
            FLASH_ATTENTION_NUM_SMS=sms,
            CUTE_DSL_ARCH=arch,
            CUTE_DSL_KEEP="ptx",
            CUTE_DSL_DUMP_DIR=str(work),
        )
