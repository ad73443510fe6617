"""Our own kernels rewritten: what their warps would store along the paths of the program is read back."""

from functools import cache

import numpy as np
import pytest

from hwkernels.records.encodings import FULL_SITE
from hwkernels.rewriter import Encoding, Level, RewriteOptions, RewrittenPtx, decode_records, instrument
from pipesim.errors import PtxError, TraceFormatError
from pipesim.model.ending import Ending
from pipesim.ptx.launch.values import Launch
from pipesim.targets import find
from pipesim.trace.schema import Device, EventKind
from tests.support.lanes import slow_but
from tests.support.recorded_path import written
from tests.support.twin_launches import recorded_kernel

DEVICE = Device("paths", sm_khz=1_980_000)
NAMES = (
    "producer_consumer", "persistent_scheduler", "cluster_multicast", "gemm_sm90", "attention_sm90",
    "epilogue_residual",
)  # fmt: skip
SAMPLED = slow_but(("producer_consumer",), NAMES)
ALL = RewriteOptions()


@cache
def source(name: str) -> tuple[str, Launch]:
    return recorded_kernel(name, find(name).defaults)


@cache
def twin(name: str, options: RewriteOptions = ALL) -> RewrittenPtx:
    ptx, launch = source(name)
    return instrument(ptx, f"{name}.ptx", launch, options)


@pytest.mark.sampled(0, 1)
@pytest.mark.parametrize("name", SAMPLED)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
def test_every_step_of_every_warp_is_read_back(name: str, seed: int) -> None:
    """Tries fail and are repeated as often as the seed says, which changes no event but the answers of tries."""
    kernel = twin(name)
    trace = decode_records(kernel, bytes(written(kernel, seed)), DEVICE)
    assert kernel.full
    assert trace.meta.status is Ending.FINISHED
    kinds = [trace.meta.sites[site].kind for site in trace.events.site]
    assert kinds.count(EventKind.WAIT_ENTER) == kinds.count(EventKind.WAIT_RETURN) > 0
    for agent in set(zip(trace.events.cta.tolist(), trace.events.agent.tolist(), strict=True)):
        mine = (trace.events.cta == agent[0]) & (trace.events.agent == agent[1])
        assert (np.diff(trace.events.cycle[mine]) >= 0).all()


@pytest.mark.sampled(1, 1)
@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", SAMPLED)
def test_a_record_of_another_site_is_refused(name: str, every: int) -> None:
    """In every stream once, or every fourth: the record in its middle says that it is of the next site."""
    kernel = twin(name)
    whole = written(kernel)
    first = int.from_bytes(whole[8:16], "little")
    for number in range(0, len(kernel.layout.streams), every):
        buffer = bytearray(whole)
        begin = first + number * kernel.layout.stride
        tags = np.frombuffer(buffer, dtype="<u4", offset=begin, count=kernel.layout.size // 4)[1::2]
        middle = int(np.argmax(tags == 0xFFFFFFFF)) // 2
        tags[middle] ^= 1 << FULL_SITE[0]
        with pytest.raises(TraceFormatError, match="is of"):
            decode_records(kernel, bytes(buffer), DEVICE)


@pytest.mark.slow
def test_waits_alone_and_chosen_roles() -> None:
    waits = twin("gemm_sm90", RewriteOptions(level=Level.WAITS))
    trace = decode_records(waits, bytes(written(waits)), DEVICE)
    kinds = {site.kind for site in trace.meta.sites}
    assert EventKind.WAIT_ENTER in kinds
    assert EventKind.ARRIVE not in kinds
    load = twin("gemm_sm90", RewriteOptions(roles=frozenset({"load"})))
    trace = decode_records(load, bytes(written(load)), DEVICE)
    assert {site.role for site in trace.meta.sites} == {"load"}
    assert len(load.layout.streams) == 1


@pytest.mark.slow
def test_what_depends_on_data_is_not_recorded_by_position() -> None:
    with pytest.raises(PtxError, match="cannot be recorded by position") as error:
        twin("gemm_sm90", RewriteOptions(Encoding.POSITIONAL))
    assert "full encoding" in error.value.correction


@pytest.mark.sampled(1, 2)
@pytest.mark.parametrize("name", SAMPLED)
def test_nothing_of_the_kernel_is_changed(name: str) -> None:
    """Without the recorder's lines the text is the original one, but for blanks."""
    ptx, _ = source(name)
    rest = [line for line in twin(name).ptx.splitlines() if "pipesim_" not in line and line.strip()]
    assert _words(rest) == _words([line for line in ptx.splitlines() if line.strip()])


def _words(lines: list[str]) -> list[str]:
    """The words of a text, without those lines of the recorder that name none of its registers."""
    return " ".join(line for line in lines if not line.strip().startswith("bar.warp.sync")).split()


def test_the_symbol_is_the_only_variable() -> None:
    kernel = twin("producer_consumer")
    assert kernel.ptx.count(".visible .global .align 8 .u64 pipesim_buffer;") == 1
    assert kernel.initial()[:16] == bytes(16)
    assert len(kernel.initial()) == kernel.nbytes
