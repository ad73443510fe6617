"""``PartRecorder``: the operations of a role with ``lanes_apart=True``, some lanes of a warp at a time."""

from __future__ import annotations

from functools import cached_property

from pipesim.errors import ProtocolError
from pipesim.lang.author_line import author_line
from pipesim.lang.recorder import Narrowed, Recorder
from pipesim.model.groups import READS_REGISTER, WRITES_REGISTER
from pipesim.model.ops import OPERANDS, Op, Operation


class PartRecorder(Recorder):
    """The operations of some lanes of a warp, ``follows``, whose role runs as if for all of them.

    What only other lanes execute is not recorded, so that the role's own state is the same for every part.
    """

    def append(self, operation: Operation, source: int = -1) -> None:
        """Append the operation if a lane of this agent executes it. ProtocolError if it uses a register that only
        other lanes have.
        """
        if self.lanes & self.follows:
            self._require_registers(operation)
            super().append(operation, source)

    def extend(self, block: list[Operation]) -> None:
        """Append the operations if a lane of this agent executes them."""
        if self.lanes & self.follows:
            super().extend(block)

    def narrowed(self, lanes: int) -> Narrowed:
        """Only these of the executing lanes execute inside: the first alone, or all. ProtocolError for other sets of
        lanes, which have no agents of their own.
        """
        if self.lanes & lanes not in (0, 1, self.all_lanes):
            raise ProtocolError(
                f"{self.who}: {(self.lanes & lanes).bit_count()} lanes execute, in a role whose lanes are apart",
                place=author_line(),
                cause="only the elected lane is an agent apart from the others of its warp",
                correction="use `with w.elect_one():`, all lanes, or a role without lanes_apart=True",
            )
        return super().narrowed(lanes)

    def require_whole(self, instruction: str) -> None:
        """ProtocolError: the lanes of this role run independently."""
        raise ProtocolError(
            f"{self.who}: {instruction} in a role whose lanes are apart",
            place=author_line(),
            cause="the lanes of a warp execute it together, but those of this role run independently",
            correction="move it to a role without lanes_apart=True",
        )

    def _require_registers(self, operation: Operation) -> None:
        op = operation[0]
        written = self._written
        for name, value in zip(OPERANDS[Op(op)], operation[1:], strict=True):
            reads = name == "state_register" or (name == "register" and op in READS_REGISTER)
            if reads and value >= 0 and value not in written:
                raise ProtocolError(
                    f"{self.who}: a result is used by lanes that do not have it",
                    place=author_line(),
                    cause="it was made where only other lanes of the warp execute, and is in their registers",
                    correction="test or arrive where the lanes that use the result execute, too",
                )
        if op in WRITES_REGISTER:
            written.update(v for n, v in zip(OPERANDS[Op(op)], operation[1:], strict=True) if n == "register")

    @cached_property
    def _written(self) -> set[int]:
        """The registers that operations of this agent have written."""
        return set()
