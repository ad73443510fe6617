"""A cluster that is not there, is something else, or is lost: one error each, soon, and the answers are kept."""

import signal
from collections.abc import Callable
from typing import Any

import pytest

from pipesim.answers.sweep import dask_cluster as module
from pipesim.answers.sweep.configuration import Params, Question, SweepAnswer, SweepPart, carry_out
from pipesim.answers.sweep.dask_cluster import DaskCluster, _Tasks
from pipesim.answers.sweep.sweep import OnDone, Sweep, Where, sweep
from pipesim.answers.verify import Subject
from pipesim.answers.views.sweep import Outcome
from pipesim.errors import ClusterLostError, UsageError
from pipesim.targets import find
from pipesim.timed.profile import load_profile

H200 = load_profile("h200")
ASKED = Question(H200, prove=False)
PARTS = [SweepPart((("stages", n),), Subject("producer_consumer", (("stages", n), ("tiles", 4)))) for n in (1, 2, 3)]


class KilledError(Exception):
    """A task whose worker died again and again."""


class Future:
    """A stand-in: its state, and what becomes of it."""

    def __init__(self, status: str, result: Any) -> None:
        self.status = status
        self._result = result
        self.asked = 0

    def add_done_callback(self, call: Callable[[Any], None]) -> None:
        if self.status != "pending":
            call(self)

    def exception(self, timeout: float) -> BaseException | None:
        return self._result if isinstance(self._result, Exception) else None

    def result(self, timeout: float) -> Any:
        self.asked += 1
        if self.asked == 1 and self.status == "fetched late":
            raise TimeoutError
        return self._result


LOST = "the connection to the Dask scheduler at tcp://here:1 was lost"


class Client:
    """A stand-in for that of a cluster: its futures have these states in turn."""

    def __init__(self, states: list[str], *, workers: int = 1, status: str = "running") -> None:
        self.status = status
        self._states = states
        self._workers = workers
        self.cancelled: list[Any] = []

    def submit(self, do: Any, part: SweepPart, asked: Question, pure: bool) -> Future:
        state = self._states.pop(0)
        found = {"killed": KilledError(), "raised": ValueError("no")}.get(state)
        return Future(state, carry_out(part, asked) if found is None else found)

    @property
    def scheduler(self) -> "Client":
        return self

    def identity(self) -> dict[str, Any]:
        return {"workers": dict.fromkeys(range(self._workers))}

    def sync(self, call: Callable[[], Any], callback_timeout: float) -> Any:
        if self._workers == -2:  # Ctrl-C is pressed meanwhile
            signal.raise_signal(signal.SIGINT)
        if self._workers < 0:  # nothing answers
            raise TimeoutError
        return call()

    def cancel(self, futures: list[Any]) -> None:
        self.cancelled = futures


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_LOOK_S", "_NO_WORKER_S"):
        monkeypatch.setattr(module, name, 0.05)


def collected(client: Client) -> dict[Params, SweepAnswer]:
    found: dict[Params, SweepAnswer] = {}
    _Tasks("tcp://here:1", client, KilledError).carry_out(PARTS, ASKED, found.__setitem__)
    return found


def test_every_answer_comes_also_where_its_worker_was_lost_before_it_was_read() -> None:
    client = Client(["finished", "fetched late", "finished"])
    assert collected(client) == {part.params: carry_out(part, ASKED) for part in PARTS}
    assert client.cancelled == []


def test_what_fails_is_an_answer_of_its_configuration() -> None:
    found = [each.configuration for each in collected(Client(["killed", "raised", "finished"])).values()]
    assert [(each.state, each.why.partition(":")[0]) for each in found[:1]] == [
        (Outcome.FAILED, "its process ended before it had an answer")
    ]
    assert (found[1].state, "ValueError" in found[1].why, found[2].state) == (Outcome.FAILED, True, Outcome.USABLE)


@pytest.mark.parametrize(
    ("client", "said"),
    [
        (Client(["finished", "cancelled", "pending"]), LOST),
        (Client(["finished", "pending", "pending"], status="connecting"), LOST),
        (Client(["finished", "pending", "pending"], workers=-1), LOST),
        (
            Client(["finished", "pending", "pending"], workers=0),
            "every worker of the Dask cluster at tcp://here:1 was lost",
        ),
        (Client(["finished", "pending", "pending"], workers=-2), "interrupted"),
    ],
)
def test_a_cluster_that_is_lost_ends_the_sweep_with_what_is_known(client: Client, said: str) -> None:
    class Lost:
        def compute(self, parts: Any, asked: Question, on_done: OnDone) -> None:
            _Tasks("tcp://here:1", client, KilledError).carry_out(parts, asked, on_done)

    asked = Sweep(find("producer_consumer"), {"stages": (1, 2, 3)}, {"tiles": 4}, H200, prove=False)
    report = sweep(asked, Where(cluster=Lost()))
    assert [each.state for each in report.configurations] == [Outcome.USABLE, Outcome.NOT_REACHED, Outcome.NOT_REACHED]
    assert (report.interrupted, report.configurations[1].why) == (said, said)
    assert len(client.cancelled) == 2


def test_before_the_first_answer_it_is_an_error() -> None:
    with pytest.raises(ClusterLostError, match="every worker") as caught:
        collected(Client(["pending"] * 3, workers=0))
    assert caught.value.exit_code == 3
    assert "--results" in caught.value.correction


@pytest.mark.slow
class TestReal:
    """With the package."""

    @pytest.mark.parametrize(
        "address", ["garbage", "", "tcp://", "foo://x:1", "tcp://127.0.0.1:abc", "tcp://127.0.0.1:1", "inproc://x"]
    )
    def test_no_address_of_a_scheduler(
        self, address: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pytest.importorskip("distributed")
        monkeypatch.setattr(module, "_CONNECT_S", 1)
        with pytest.raises(UsageError, match="there is no Dask scheduler at"):
            DaskCluster(address).compute(PARTS, ASKED, lambda *_: None)
        assert capfd.readouterr() == ("", "")
