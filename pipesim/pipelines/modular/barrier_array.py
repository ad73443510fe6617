"""The barriers of a tile pipeline as upstream's ``BarrierArray`` types them: two for each stage, no more.

A pointer into a larger array says nothing of the size: there the number of stages decides.
"""

from __future__ import annotations

from pipesim.errors import ProtocolError
from pipesim.lang.author_line import author_line
from pipesim.lang.shared_mem_barrier import BarrierStorage
from pipesim.pipelines.common.register_value import MBarType, ring_at


def require_barriers(storage: MBarType, num_stages: int) -> None:
    """Raise ProtocolError if ``storage`` is an array, and not the barriers of a pipeline of ``num_stages`` stages."""
    if isinstance(storage, BarrierStorage) and (num_stages < 1 or len(storage) != 2 * num_stages):
        raise ProtocolError(
            f"{num_stages} stages need {2 * max(num_stages, 1)} mbarriers; {storage.name} has {len(storage)}",
            place=author_line(),
            correction="make them with BarrierArray(protocol, name, num_stages) of the pipeline, "
            f"or give a pointer to the first, {storage.name}[0]",
        )


def init_barriers(
    storage: MBarType, producer_arv_count: int, consumer_arv_count: int, num_stages: int | None = None
) -> None:
    """Initialise the barriers of a pipeline: one of each side for each stage. One thread.

    Without ``num_stages`` the pipeline fills ``storage``, which is an array then; with a pointer it must be given.
    """
    if num_stages is None:
        if not isinstance(storage, BarrierStorage):
            raise ProtocolError(
                f"init_barriers was given {storage.storage.name}[{storage.index}] and no number of stages",
                place=author_line(),
                cause="upstream's has the number in its type; a pointer does not say where the barriers end",
                correction="name the number of stages: num_group_stages=... of an input pipeline, else num_stages=...",
            )
        num_stages = max(len(storage) // 2, 1)
        require_barriers(storage, num_stages)
    full, empty = ring_at(storage, num_stages)
    for filled, freed in zip(full, empty, strict=True):
        filled.init(producer_arv_count)
        freed.init(consumer_arv_count)
