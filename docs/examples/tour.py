# %% [markdown]
# A tour in cells: open it as a notebook (VS Code, Jupytext), or run it with `python docs/examples/tour.py`.
# In a notebook the last line of a cell shows itself, with its pictures; here it is printed.

# %% A ring: one warp loads tiles, one works on them
import pipesim
from pipesim import Protocol, Warp
from pipesim.pipelines import ProducerConsumerPipeline


def ring(stages: int = 4, tiles: int = 16, consumers: int = 1) -> Protocol:
    """A ring of tiles; the empty barriers count ``consumers`` arrivals, and one warp makes them."""
    p = Protocol("ring")
    tile = p.smem("tile", slots=stages, nbytes=16384)
    bars = p.mbarriers("pipe", ProducerConsumerPipeline.smem_bytes(stages) // 8)

    @p.init
    def init() -> None:
        ProducerConsumerPipeline(bars, stages).init_mbars(producer_arrive_count=1, consumer_arrive_count=consumers)

    @p.role("load")
    def load(w: Warp) -> None:
        pipe = ProducerConsumerPipeline(bars, stages)
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                with pipe.produce() as stage:
                    stage.mbar().expect_bytes(16384)
                    w.tma_load(tile[stage.index()], stage.mbar(), item=i)

    @p.role("work")
    def work(w: Warp) -> None:
        pipe = ProducerConsumerPipeline(bars, stages)
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                with pipe.consume() as stage:
                    w.read(tile[stage.index()], item=i)
                    w.work(cycles=512)

    return p


# %% Is it right, in every schedule?
checked = pipesim.check(ring)
print(checked)

# %% A wrong count: what fails, in the smallest ring that shows it
wrong = pipesim.check(ring, consumers=2)
finding = wrong.findings[0]
print(finding.claim, "-", finding.line.rpartition("/")[2])
print(finding.counterexample)

# %% How many stages are worth their shared memory?
for stages in (1, 2, 3, 4):
    run = pipesim.simulate(ring, "h100", stages=stages)
    print(f"{stages}: {run.cycles:,} cycles")

# %% What did the hardware do? Traces of the ready-made protocols come with pipesim
verified = pipesim.verify("producer_consumer", hardware="recorded")
print(repr(verified))
