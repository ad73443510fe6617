"""Which pipeline structs the roles of a protocol make: the flat program keeps their names.

A struct that another one contains, as ``EpiLoadPipeline`` contains a ``ProducerConsumerPipeline``, is not named.
"""

from __future__ import annotations

from functools import wraps
from typing import Any, TypeVar

from pipesim.lang.recorder import current_recorder

#: The structs of Modular's kernels that pipesim exists for, in the order of every table.
MODULAR_PIPELINES = (
    "ProducerConsumerPipeline",
    "InputTilePipeline",
    "InputProducer",
    "TMAProducerPipeline",
    "EpiLoadPipeline",
)

_Struct = TypeVar("_Struct", bound=type)


def pipeline_struct(struct: _Struct) -> _Struct:
    """Class decorator: an object made by a role puts the struct's name into ``Program.pipelines``."""
    make = struct.__init__  # type: ignore[misc]  # of this very class: what is wrapped is what stands in it

    @wraps(make)
    def noting(self: object, *args: Any, **kwargs: Any) -> None:
        recorder = current_recorder()
        if recorder is None:
            make(self, *args, **kwargs)
            return
        with recorder.naming(struct.__name__):
            make(self, *args, **kwargs)

    struct.__init__ = noting  # type: ignore[misc]
    return struct
