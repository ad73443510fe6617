"""The barriers of a tile pipeline as upstream's ``BarrierArray`` types them: two for each stage, no more."""

from __future__ import annotations

from pipesim.errors import ProtocolError
from pipesim.lang.builder import author_line
from pipesim.lang.shared_mem_barrier import BarrierStorage
from pipesim.pipelines.modular.producer_consumer import ProducerConsumerPipeline


def require_barriers(storage: BarrierStorage, num_stages: int) -> None:
    """Raise ProtocolError if ``storage`` is not the barriers of a pipeline of ``num_stages`` stages."""
    if num_stages < 1 or len(storage) != 2 * num_stages:
        raise ProtocolError(
            f"{num_stages} stages need {2 * max(num_stages, 1)} mbarriers; {storage.name} has {len(storage)}",
            place=author_line(),
            correction="make them with BarrierArray(protocol, name, num_stages) of the pipeline",
        )


def init_barriers(storage: BarrierStorage, producer_arv_count: int, consumer_arv_count: int) -> None:
    """Initialise the barriers of a pipeline that fills ``storage``: one of each side for each stage. One thread."""
    stages = max(len(storage) // 2, 1)
    require_barriers(storage, stages)
    ProducerConsumerPipeline(storage, stages).init_mbars(producer_arv_count, consumer_arv_count)
