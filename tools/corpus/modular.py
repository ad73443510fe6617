"""Modular's own kernels out of their packages, launched by small programs of ours that run without a GPU.

A Mojo program has the PTX of its kernels in it and gives it to the driver; the driver of ``fake`` writes it to a file
and notes the launch.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tools.corpus import fake
from tools.corpus.corpus_kernel import CorpusKernel
from tools.corpus.environment import ROOT, Environment
from tools.corpus.launch_notes import launch_of

ENVIRONMENT = Environment("mojo", ("mojo", "max-core", "max-mojo-libs"))
_KERNELS = ROOT / "tools" / "corpus" / "kernels"
_SMS = {"sm_90a": "132", "sm_100a": "148"}


class Program(NamedTuple):
    """A launch: what the corpus calls it, its architecture, the program's source, and what is defined in it."""

    name: str
    arch: str
    source: str
    defines: tuple[str, ...] = ()


PROGRAMS = (
    Program("gemm_1sm", "sm_100a", "gemm_sm100.mojo"),
    Program("gemm_2sm", "sm_100a", "gemm_sm100.mojo", ("CTA_GROUP=2", "MMA_N=256")),
    Program("gemm_cluster", "sm_100a", "gemm_sm100.mojo", ("CLUSTER_M=2", "CLUSTER_N=2")),
    Program("gemm_k_group", "sm_100a", "gemm_sm100.mojo", ("K_GROUP=2",)),
    Program("gemm_2sm_cluster", "sm_100a", "gemm_sm100.mojo", ("CTA_GROUP=2", "CLUSTER_M=4", "CLUSTER_N=2")),
    Program("blockwise_1sm", "sm_100a", "blockwise_sm100.mojo"),
    Program("blockwise_2sm", "sm_100a", "blockwise_sm100.mojo", ("CTA_GROUP=2",)),
    Program("attention", "sm_100a", "attention.mojo"),
    Program("attention_causal", "sm_100a", "attention.mojo", ("CAUSAL=1", "DEPTH=64")),
    Program("decode", "sm_100a", "attention.mojo", ("QUERIES=1",)),
    Program("gemm", "sm_90a", "gemm_sm90.mojo"),
    Program("gemm_multicast", "sm_90a", "gemm_sm90.mojo", ("CLUSTER_M=2",)),
    Program("gemm_partitioned", "sm_90a", "gemm_sm90.mojo", ("CLUSTER_N=2", "PARTITIONED=1")),
    Program("gemm_persistent", "sm_90a", "gemm_sm90.mojo", ("PERSISTENT=1", "M=2048", "N=2560")),
    Program("gemm_k_group", "sm_90a", "gemm_sm90.mojo", ("K_GROUP=2",)),
    Program("attention", "sm_90a", "attention.mojo"),
    Program("attention_causal", "sm_90a", "attention.mojo", ("CAUSAL=1",)),
)


def modular(folder: Path) -> Iterator[str]:
    """Every program's kernels that have barriers."""
    ENVIRONMENT.made()
    libraries = fake.driver(ENVIRONMENT.folder)
    for program in PROGRAMS:
        try:
            for each in _kernels(program, libraries):
                each.save(folder)
                yield each.stem
        except (subprocess.SubprocessError, OSError) as error:
            yield f"{program.name}-{program.arch}: {str(error)[:300]}"


def _kernels(program: Program, libraries: Path) -> Iterator[CorpusKernel]:
    folder = ENVIRONMENT.folder / "programs" / f"{program.name}-{program.arch}"
    built, source = folder / "program", _KERNELS / program.source
    folder.mkdir(parents=True, exist_ok=True)
    if not built.is_file() or built.stat().st_mtime < source.stat().st_mtime:
        defines = [word for each in program.defines for word in ("-D", each)]
        command: list[str | Path] = ["nice", ENVIRONMENT.folder / "bin" / "mojo", "build", *defines]
        command += ["--target-accelerator", program.arch, source, "-o", built]
        ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=3000)
        if ran.returncode:
            wrong = [line[:200] for line in ran.stderr.splitlines() if "error" in line]
            raise subprocess.SubprocessError("; ".join(wrong[:3]))
    notes = folder / "notes"
    notes.unlink(missing_ok=True)
    given = {**os.environ, "LD_LIBRARY_PATH": str(libraries), "PIPESIM_NOTES": str(notes), "PIPESIM_PTX": str(folder)}
    given |= {"PIPESIM_SMS": _SMS[program.arch], "PIPESIM_CC": program.arch.strip("sm_a")}
    subprocess.run([built], env=given, check=False, capture_output=True, timeout=600)
    found: dict[str, CorpusKernel] = {}
    for line in notes.read_text(encoding="utf-8").splitlines():
        note = json.loads(line)
        text = (folder / note["file"]).read_text(encoding="utf-8")
        if "mbarrier" in text:
            name = program.name + (f"_{len(found) + 1}" if found and note["entry"] not in found else "")
            found.setdefault(note["entry"], CorpusKernel(program.arch, name, text, launch_of(note)))
    yield from found.values()
