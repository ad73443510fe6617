"""The driver without a GPU, and the library that observes, built once for each process of the tests."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipesim.launches.inject import injection_environment
from pipesim.launches.observe.limits import Limits
from pipesim.launches.records.read import read_spool
from pipesim.launches.records.record import LaunchRecord, SpoolRecords
from tests.support import fake_cuda
from tests.support.fake_cuda import FakeCuda

PTX = "\n.version 8.0\n.target sm_90\n.address_size 64\n.visible .entry copy__8_4() { ret; }\n"


@dataclass(frozen=True)
class Ran:
    """What a program left: its exit code, what it printed, and the records."""

    code: int
    printed: str
    spool: Path
    records: SpoolRecords

    @property
    def launch(self) -> LaunchRecord:
        """The only one."""
        (found,) = self.records.launches
        return found

    def text(self, record: LaunchRecord) -> bytes:
        """The file of code that a record names."""
        return (self.spool / record.code).read_bytes()


@pytest.fixture(scope="session")
def fake(tmp_path_factory) -> FakeCuda:
    made = fake_cuda.built(tmp_path_factory.mktemp("fake"))
    (made.folder / "code").write_text(PTX)
    return made


@pytest.fixture(scope="session")
def cache(tmp_path_factory) -> Path:
    made: Path = tmp_path_factory.mktemp("cache")
    return made


@pytest.fixture
def observed(fake, cache, tmp_path) -> Callable[..., Ran]:
    """Runs the program with the commands given, and reads what was recorded of it."""

    def run(*commands: object, limits: Limits | None = None, environment: Mapping[str, str] | None = None) -> Ran:
        spool = tmp_path / "spool"
        spool.mkdir(exist_ok=True)
        given = injection_environment(spool, limits or Limits(), fake.environment() | {"XDG_CACHE_HOME": str(cache)})
        done = fake.run(*map(str, commands), environment=given | dict(environment or {}))
        assert done.stderr == ""
        return Ran(done.returncode, done.stdout, spool, read_spool(spool))

    return run


@pytest.fixture
def ptx(fake) -> Path:
    """A file of PTX that the program can load."""
    made: Path = fake.folder / "code"
    return made
