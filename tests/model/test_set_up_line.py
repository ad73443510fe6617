"""The set-up steps that the flattener adds have a line of the author's."""

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ops import Op


def test_what_the_flattener_adds_to_the_set_up_stands_at_the_init_of_the_author() -> None:
    """Not at a line of pipesim's: it is the author who is told about it."""
    p = Protocol("p")
    bars = p.mbarriers("b", 1)

    @p.init
    def init() -> None:
        bars[0].init(1)

    @p.role("a")
    def a(w: Warp) -> None:
        w.work(1)

    program = p.flatten()
    first = init.__code__.co_firstlineno
    lines = [program.line(0, pc) for pc in range(len(program.code[0]))]
    assert [Op(op[0]) for op in program.code[0]] == [Op.INIT, Op.FENCE, Op.BAR_SYNC, Op.WORK]
    assert lines[:3] == [f"{__file__}:{first + 2}", f"{__file__}:{first}", f"{__file__}:{first}"]
