"""The planted mistakes are those that were asked for, and what is offered for them is not worse than it was.

*right* names all parts of what was meant; *same* has been said beforehand, or decided below, to do the same; *beside*
names neither a wrong object nor all of the right one; *misdirects* names another role or barrier, or serialises what
was not; *unjudged* has to be decided. Public kernels are read from ``~/.cache/pipesim-corpus``; those that are not
there are left out, as are those that need NVRTC where it is not installed.
"""

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from hwkernels.device.compile import compile_ptx
from hwkernels.device.sources import headers
from hwkernels.twins import find_twin
from pipesim.errors import MissingExtraError
from pipesim.ptx.launch.file import launch_json
from pipesim.targets import find
from tests.support.mistakes.planted import KERNEL_MISTAKES, PROTOCOL_MISTAKES, Planted
from tests.support.paths import ROOT
from tests.support.twin_launches import launch_of
from tools.corpus.environment import CACHE

FAMILIES = {"persistent": "CUDA", "scale_": "Gluon", "grouped_": "Triton", "mojo": "Mojo", "flash_fwd": "CuTe"}
#: Sentences that say something else than what was meant, decided by hand: mistake, pattern, word, reason.
JUDGED = (
    ("persistent_scheduler: first phase", "^compute waits for throttle_full", "misdirects", "this wait is right"),
    ("epilogue_residual: a store too many", "commit_group in every", "misdirects", "the groups are right as they are"),
    ("cooperative: the last stage", "^consumer arrives on empty after its last", "right", "empty is what is meant"),
    ("gemm_sm100_blockwise: no commit", "count of 4 instead of 5", "same", "the epilogue arrives after the product"),
    ("cutlass_sm100: a role does not", "count of 64 instead of 96", "same", "no role needs the arrive of mma"),
    ("gemm_tma_ws: the last stage", "^initialise .* the program never does", "same", "it has no name without an init"),
    (
        "gemm_tma_fp8: the product before",
        "stage by stage|carries stage",
        "same",
        "the last is that of the loop's state",
    ),
    ("relay: gives the other", "^store uses named barriers 2 and 3 in the other", "right", "at its bar_arrive"),
    ("gemm_sm100_blockwise: scales", "executes the fence", "misdirects", "the read of the scales comes too late"),
    ("cutlass_sm100: the MMA warp", "barrier of its own", "misdirects", "the two roles have to meet"),
    ("exchange: one CTA has an arrive", "^no role arrives on empty", "beside", "right barrier, but no role is named"),
    ("mojo gemm sm_100: mask", "^a mask has only the lowest", "beside", "right, but neither role nor copy is named"),
)


def file_of(planted: Planted) -> Path:
    """The file that has the mistake."""
    name = planted.where.rpartition(".py:")[0] + ".py" if ".py:" in planted.where else planted.where
    return CACHE / "kernels" / name.removeprefix("corpus/") if name.startswith("corpus/") else ROOT / name


def changed(planted: Planted) -> tuple[str, str]:
    """The file's text with the mistake, and as it is."""
    text = was = file_of(planted).read_text(encoding="utf-8")
    for old, new in planted.edits.items():
        assert old in text, f"{planted.name} has no {old!r}"
        text = text.replace(old, new)
    return text, was


def written(planted: Planted, folder: Path) -> str:
    """The target for ``pipesim check``, in this folder."""
    path, (text, _) = file_of(planted), changed(planted)
    new = folder / path.name
    new.write_text(text, encoding="utf-8")
    if path.suffix == ".py":
        return f"{new}:{planted.where.rpartition(':')[2]}"
    launch = path.with_suffix(".json")
    if launch.is_file():
        shutil.copy(launch, folder)
    if path.suffix == ".cu":
        defines: dict[str, int] = {}
        if not launch.is_file():
            twin, params = find_twin(path.stem), dict(find(path.stem).defaults)
            (folder / launch.name).write_text(launch_json(launch_of(twin, params)), encoding="utf-8")
            defines = {**twin.defines(params), "PIPESIM_TRACE": 0}
            for header in headers():
                shutil.copy(header, folder)
        new.with_suffix(".ptx").write_text(compile_ptx(new, defines), encoding="utf-8")
    return str(new.with_suffix(".ptx"))


def offered(planted: Planted, folder: Path) -> tuple[str, str] | None:
    """The verdict and the best word of what is offered, as a user is told; None without the kernel or NVRTC here."""
    try:
        words = [written(planted, folder), "--json", "--time-limit", "120"]
    except (FileNotFoundError, MissingExtraError):
        return None
    words += [word for key, value in planted.sizes.items() for word in ("-p", f"{key}={value}")]
    command = [sys.executable, "-m", "pipesim", "check", *words]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    report = json.loads(done.stdout)["report"]
    said = {word_of(planted, sentence, line) for sentence, line in sentences(report)}
    order = ("right", "same", "misdirects", "unjudged", "beside")
    return report["verdict"], next((word for word in order if word in said), "none")


def sentences(report: dict[str, object]) -> Iterator[tuple[str, str]]:
    """Each correction with its line; of a finding without one what its rule says in general."""
    for refuted in report["refutations"]:  # type: ignore[attr-defined]
        found = [(each["said"], each["line"]) for each in refuted.get("corrections", ())]
        general = refuted["finding"].get("correction", "")
        yield from found or ([(general, "")] if general else [])


def word_of(planted: Planted, sentence: str, line: str) -> str:
    """The word of a correction, of which ``line`` is the author's line."""

    def names(parts: tuple[str, ...]) -> bool:
        return all(re.search(part, f"{sentence} [{line.rpartition('/')[2]}]") for part in parts)

    if names(planted.parts):
        return "right"
    if any(names(parts) for parts in planted.also):
        return "same"
    judged = (word for name, said, word, _ in JUDGED if planted.name.startswith(name) and re.search(said, sentence))
    return next(judged, "unjudged")


def test_thirty_each_in_ten_kernels_of_four_families_and_in_protocols() -> None:
    assert len(KERNEL_MISTAKES) == len(PROTOCOL_MISTAKES) == 30
    assert set(Counter(each.where for each in KERNEL_MISTAKES).values()) == {3}
    assert {kind for name, kind in FAMILIES.items() if any(each.name.startswith(name) for each in KERNEL_MISTAKES)} == {
        *FAMILIES.values()
    }
    for each in (*KERNEL_MISTAKES, *PROTOCOL_MISTAKES):
        if not each.where.startswith("corpus/"):
            new, was = changed(each)
            assert new != was


def test_a_sentence_is_right_if_it_names_all_that_was_meant() -> None:
    planted = next(each for each in PROTOCOL_MISTAKES if each.name == "epilogue_residual: warps, not threads")
    assert word_of(planted, "initialise output.empty with a count of 128 instead of 4", "") == "right"
    assert word_of(planted, "epilogue: put the arrive on output.empty inside elect_one()", "") == "same"
    assert word_of(planted, "initialise output.full with a count of 128 instead of 4", "") == "unjudged"
    assert {word for *_, word, _ in JUDGED} <= {"right", "same", "beside", "misdirects"}


@pytest.mark.long
@pytest.mark.parametrize(("mistakes", "least"), [(KERNEL_MISTAKES, 16), (PROTOCOL_MISTAKES, 22)])
def test_what_is_offered_is_not_worse(mistakes: tuple[Planted, ...], least: int, tmp_path: Path) -> None:
    found = []
    for n, planted in enumerate(mistakes):
        (folder := tmp_path / str(n)).mkdir()
        found.append(offered(planted, folder))
    there = [each for each in found if each is not None]
    assert all(verdict == "refuted" for verdict, _ in there)
    words = Counter(word for _, word in there)
    assert words["right"] + words["same"] >= least - (len(found) - len(there))
    assert words["misdirects"] <= 3
