"""Small programs whose models are kept as text: between them, a part of each kind that a model has."""

from pipesim.model.ops import Engine, Op, Operation, Space
from pipesim.model.program import Program
from pipesim.model.tables import ALL_LANES, Access, Agent, Barrier, Tile
from tests.support.paths import GOLDEN

MODELS = GOLDEN / "promela"
WGMMA = int(Engine.WGMMA)


def example_program(name: str, codes: list[list[Operation]], *, barriers: int = 2, ctas: int = 1) -> Program:
    """Agent a runs ``codes[a]``, in CTA a of a cluster; barriers are dealt out to the CTAs, tile[0] is CTA 0's."""
    code = tuple(tuple(tuple(map(int, op)) for op in agent) for agent in codes)
    return Program(
        name=name,
        params={"tiles": 2},
        agents=tuple(Agent(a % ctas, a, ALL_LANES, f"role {a}", 0) for a in range(len(codes))),
        barriers=tuple(Barrier(b % ctas, "b", b // ctas) for b in range(barriers)),
        accesses=(Access(Space.SHARED, 0, 0, 64), Access(Space.SHARED, 0, 32, 32)),
        tiles=(Tile("tile", Space.SHARED, 0, 0, 64, 1),),
        code=code,
        lines=tuple(tuple(n % 20 for n in range(len(agent))) for agent in code),
        sources=tuple(f"ring.py:{n}" for n in range(20)),
        named_barriers=((0, 0),),
        registers=1,
        ctas=ctas,
        smem_bytes=256,
    )


def ring() -> Program:
    """Copies into one stage, read by another agent; a try before each wait of the producer."""
    full, empty = 0, 1
    meet = (Op.BAR_SYNC, 0, 64, 32)
    producer: list[Operation] = [(Op.INIT, full, 1), (Op.INIT, empty, 1), meet]
    consumer: list[Operation] = [meet]
    for i in range(2):
        producer += [(Op.TRY_WAIT, empty, i ^ 1, 0, 0), (Op.WAIT_UNLESS, empty, i ^ 1, 0, 0)]
        producer += [(Op.ARRIVE, full, 1, 64, -1, 0), (Op.TMA_LOAD, full, 0, 64, i, 0)]
        consumer += [(Op.WAIT, full, i, 0), (Op.READ, 0, i), (Op.ARRIVE, empty, 1, 0, -1, 0)]
    return example_program("ring", [producer, consumer])


def cluster() -> Program:
    """An arrive at the other CTA, a try and a jump: the peer may have exited."""
    meet: list[Operation] = [(Op.CLUSTER_ARRIVE, 0), (Op.CLUSTER_WAIT, 0)]
    first: list[Operation] = [(Op.INIT, 0, 1), *meet, (Op.ARRIVE, 1, 1, 0, -1, 0)]
    second: list[Operation] = [(Op.INIT, 1, 1), *meet, (Op.TEST_WAIT, 1, 0, 0, 0), (Op.JUMP_IF, 0, 0, 1), (Op.WORK, 5)]
    second.append((Op.FENCE, 1, 0))
    return example_program("cluster", [first, second], ctas=2)


def matrix() -> Program:
    """Work in order with a commit and groups, state tokens, and a barrier that ends."""
    code: list[Operation] = [
        (Op.INIT, 0, 2), (Op.WRITE, 0, 7), (Op.TRANSFER_READ, WGMMA, 0, 64, 7), (Op.COMMIT, WGMMA, -1),
        (Op.TRANSFER_WRITE, WGMMA, 0, 64, 8), (Op.TRANSFER_WRITE, WGMMA, 0, 64, 9), (Op.COMMIT, WGMMA, 0),
        (Op.ARRIVE_DROP, 0, 1, 0, 0, 0), (Op.WAIT_STATE, 0, 0, 0), (Op.WAIT_GROUP, WGMMA, 0), (Op.READ, 1, 9),
        (Op.INVAL, 0),
    ]  # fmt: skip
    return example_program("matrix", [code], barriers=1)


EXAMPLES = {"ring": ring, "cluster": cluster, "matrix": matrix}
