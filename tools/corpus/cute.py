"""CuTe DSL: FlashAttention 4 out of its package, compiled to PTX and called without a GPU to see its launches.

PyTorch comes from the environment of Triton's kernels, which has it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tools.corpus import fake
from tools.corpus.environment import ROOT, Environment
from tools.corpus.on_triton import ENVIRONMENT as WITH_PYTORCH

ENVIRONMENT = Environment(
    "cute",
    ("flash-attn-4==4.0.0b36", "quack-kernels", "nvidia-cutlass-dsl", "einops", "apache-tvm-ffi", "torch-c-dlpack-ext"),
    beside=WITH_PYTORCH,
)
_SMS = {"sm_90a": "132", "sm_100a": "148"}


def cute(folder: Path) -> Iterator[str]:
    """The kernels of ``kernels/on_cute.py`` that have barriers, for both architectures."""
    ENVIRONMENT.made()
    library = fake.cute(ENVIRONMENT.folder)
    for arch, sms in _SMS.items():
        work = ENVIRONMENT.folder / "programs" / arch
        work.mkdir(parents=True, exist_ok=True)
        (work / "sizes").unlink(missing_ok=True)
        for old in work.glob("*.ptx"):
            old.unlink()
        yield from ENVIRONMENT.lines(
            ROOT / "tools" / "corpus" / "kernels" / "on_cute.py",
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
