from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.pipelines import ProducerConsumerPipeline

SOURCE = Path(__file__).read_text(encoding="utf-8").splitlines()


def where(mark: str) -> str:
    """``file:line`` of the line of this file that ends with the comment ``mark``."""
    return f"{__file__}:{next(i for i, text in enumerate(SOURCE, 1) if text.endswith(f'# {mark}'))}"


@dataclass(frozen=True)
class Ring:
    """A ring of copies with one consumer warp, and what can be wrong with it."""

    stages: int = 2
    tiles: int = 4
    empty_count: int = 1
    expected: int = 64
    arrives: int = 10**6  #: the consumer arrives for this many tiles
    reads: int = 10**6  #: and leaves after this many


def ring(case: Ring) -> Protocol:
    p = Protocol("ring")
    tile = p.smem("tile", case.stages, 64)
    storage = p.mbarriers("pipe", 2 * case.stages)
    p.init(lambda: ProducerConsumerPipeline(storage, case.stages).init_mbars(1, case.empty_count))

    @p.role("load")
    def load(w: Warp) -> None:
        pipe = ProducerConsumerPipeline(storage, case.stages)
        with w.elect_one():
            for i in range(case.tiles):
                with pipe.produce() as stage:  # load waits
                    stage.mbar().expect_bytes(case.expected)  # load expects
                    w.tma_load(tile[stage.index()], stage.mbar(), i)  # load copies

    @p.role("mma")
    def mma(w: Warp) -> None:
        pipe = ProducerConsumerPipeline(storage, case.stages)
        with w.elect_one():
            for i in range(min(case.tiles, case.reads)):
                with pipe.consume_explicit() as stage:  # mma waits
                    w.read(tile[stage.index()], i)
                    if i < case.arrives:
                        stage.arrive()  # mma arrives

    return p


@pytest.fixture(name="ring")
def ring_fixture() -> Callable[..., Protocol]:
    return lambda **fields: ring(Ring(**fields))


@pytest.fixture(name="where")
def where_fixture() -> Callable[[str], str]:
    return where
