"""Limits of what is recorded; and what the library does where it cannot observe."""

import shutil
import subprocess

import pytest

from pipesim.errors import CompileError, MissingExtraError
from pipesim.launches.inject import injection_environment, injection_library
from pipesim.launches.observe.limits import Limits

pytestmark = pytest.mark.slow  # a C compiler makes what observes


COPY, GEMM = "copy__8_4", "gemm__8"
FULL = "the limit on bytes was reached: further launches are counted only"


@pytest.mark.parametrize(
    ("limits", "kept", "counts", "notes"),
    [
        (Limits(), [COPY] * 4 + [GEMM], {COPY: (4, 4, 0), GEMM: (1, 1, 0)}, []),
        (Limits(once=True), [COPY, GEMM], {COPY: (4, 4, 3), GEMM: (1, 1, 0)}, []),
        (Limits(launches=2), [COPY, COPY], {COPY: (4, 4, 2), GEMM: (1, 1, 1)}, []),
        (Limits(nbytes=20_000), [COPY, COPY], {COPY: (4, 4, 2), GEMM: (1, 1, 1)}, [FULL]),  # 4,096 bytes of memory each
        (Limits(nbytes=10), [], {COPY: (4, 0, 0), GEMM: (1, 0, 0)}, [FULL]),
        (Limits(("ge*", "x")), [GEMM], {GEMM: (1, 1, 0)}, []),
        (Limits(("[!c]*",)), [GEMM], {GEMM: (1, 1, 0)}, []),
        (Limits(("GE*",)), [], {}, []),
    ],
)
def test_limits(observed, ptx, limits, kept, counts, notes):
    several = [word for number in range(4) for word in ("number", number, "launch", COPY)]
    ran = observed("data", ptx, *several, "launch", GEMM, limits=limits)
    assert [each.kernel for each in ran.records.launches] == kept
    assert {each.kernel: (each.launches, each.distinct, each.left_out) for each in ran.records.counts} == counts
    assert (ran.records.notes, any(ran.spool.glob("*.ptx"))) == (notes, bool(kept))
    assert len(ran.records.processes) == (limits.nbytes > 10)


@pytest.mark.parametrize(
    ("environment", "note"),
    [
        ({"FAKE_CUPTI_TAKEN": "1"}, "another profiler observes it"),
        ({"PIPESIM_LAUNCHES_CUPTI": "/none\nalso none"}, "CUPTI is not installed"),
        ({"FAKE_CUPTI_REFUSES": "libcupti"}, "CUPTI's error 38"),
    ],
)
def test_a_process_that_cannot_be_observed_says_why(observed, ptx, environment, note):
    ran = observed("data", ptx, "launch", "copy__8_4", environment=environment)
    assert (ran.printed, ran.records.launches) == ("1\n", [])
    assert ran.records.notes == [f"a process was not observed: {note}"]


def test_a_program_that_closes_all_files_has_nothing_written_to_its_own(observed, fake, ptx):
    ran = observed("data", ptx, "launch", "copy__8_4", "files", 1, "number", 1, "launch", "copy__8_4")
    assert (ran.code, ran.printed, len(ran.records.launches)) == (0, "2\n", 1)
    assert (fake.folder / "mine").read_bytes() == b""


def test_the_next_cupti_is_taken_where_the_driver_is_too_old_for_one(observed, fake, ptx, tmp_path):
    newer = tmp_path / "newer" / "libcupti.so.13"
    newer.parent.mkdir()
    shutil.copy(fake.folder / "libcupti.so.13", newer)
    variables = {"FAKE_CUPTI_REFUSES": "/newer/", "PIPESIM_LAUNCHES_CUPTI": f"{newer}\n{fake.folder}/libcupti.so.13"}
    assert observed("data", ptx, "launch", "copy__8_4", environment=variables).launch.kernel == "copy__8_4"


@pytest.mark.parametrize("spool", ["", "/none/at/all", "/dev/null"])
def test_without_a_spool_the_program_runs(observed, ptx, spool):
    ran = observed("data", ptx, "launch", "copy__8_4", environment={"PIPESIM_LAUNCHES_SPOOL": spool})
    assert (ran.code, ran.printed, ran.records.processes) == (0, "1\n", [])


def test_a_process_that_observes_itself_is_left_alone(fake, cache, ptx, tmp_path):
    given = injection_environment(tmp_path, Limits(), fake.environment() | {"XDG_CACHE_HOME": str(cache)})
    script = 'export PIPESIM_LAUNCHES_OBSERVED=$$; exec "$@"'
    command = ["sh", "-c", script, "sh", str(fake.folder / "program"), "data", str(ptx), "launch", "copy__8_4"]
    subprocess.run(command, env=fake.environment() | given, check=True, capture_output=True)
    assert list(tmp_path.iterdir()) == []
    other = [*command[:2], script.replace("$$", "1"), *command[3:]]
    subprocess.run(other, env=fake.environment() | given, check=True, capture_output=True)
    assert len(list(tmp_path.iterdir())) == 2


def test_the_library_has_no_warnings_and_is_built_once(fake, tmp_path):
    environment = {"XDG_CACHE_HOME": str(tmp_path), "CC": "cc -Wall -Wextra -Wshadow -Wvla -Werror"}
    first = injection_library(environment)
    before = first.stat()
    assert injection_library(environment) == first
    assert (first.stat().st_mtime_ns, first.stat().st_ino) == (before.st_mtime_ns, before.st_ino)
    assert first.parent == tmp_path / "pipesim" / "inject"


@pytest.mark.parametrize(
    ("environment", "error"),
    [
        ({"CC": "no-such-compiler"}, pytest.raises(MissingExtraError, match="no C compiler")),
        ({"CC": "cc --no-such-option"}, pytest.raises(CompileError, match="no-such-option")),
        ({"PIPESIM_CUPTI": "/none"}, pytest.raises(MissingExtraError, match="CUPTI is not installed")),
    ],
)
def test_what_is_missing_is_said(fake, tmp_path, environment, error):
    with error:
        injection_environment(tmp_path, Limits(), {"XDG_CACHE_HOME": str(tmp_path)} | environment)
