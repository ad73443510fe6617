"""``pipesim mcp``: every tool asked by the SDK's own client, and what is refused before a command runs."""

import json
import sys
from typing import Any

import anyio
import pytest

from pipesim import __version__
from pipesim.cli.agents.tools import MOST_BYTES, TOOLS, answer
from tests.support.documents import faults
from tests.support.fixture_types import Call
from tests.support.paths import ROOT

WRONG = "docs/examples/row_max.ptx"
DUMP = "tests/coredump/dumps/cp_async_ring.h200.elf.xz"
REPLAY = "0*8.1.2.0*10.1.~0:4096.1.1o.1*2.2.2o.2*2.0*3.~0:1024.1.1o.1*2.~0:4096.1.1o.1*2.2.2o.2*2.~0:1024.1.1o.1*2"
#: A call, the exit code of its answer, and a text in it.
CALLS: dict[str, tuple[str, dict[str, Any], int, str]] = {
    "refuted": ("check", {"file": WRONG}, 1, "compute arrives every time (row_max.cu:60)"),
    "proved": ("check", {"file": WRONG, "set": ["n=2048"], "quick": True, "strict": ["init"]}, 0, '"proved"'),
    "explain": ("explain", {"name": "tensor_fence"}, 0, "tcgen05.fence::before_thread_sync"),
    "replay": ("replay", {"file": WRONG, "schedule": REPLAY}, 1, "row_max fails in this schedule"),
    "against": ("against", {"new": WRONG, "old": WRONG, "seconds": 60}, 0, "0 new findings, 0 gone, 1 unchanged"),
    "redundant": ("redundant", {"file": WRONG, "set": ["n=2048"]}, 0, "every one of the 5 removals tried breaks"),
    "autopsy": ("autopsy", {"core": DUMP, "check": True}, 1, "arrivals"),
    "python": ("check", {"file": "docs/examples/ring.py"}, 2, "--untrusted runs none"),
    "misspelt": ("explain", {"name": "deadlok"}, 2, "did you mean deadlock?"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "names", [("proved", "explain", "python", "misspelt"), pytest.param((*CALLS,), marks=pytest.mark.long)], ids=len
)
def test_every_tool_answers_the_client_of_the_sdk(names: tuple[str, ...]) -> None:
    mcp = pytest.importorskip("mcp")
    answers: dict[str, Any] = {}

    async def ask() -> None:
        server = mcp.StdioServerParameters(command=sys.executable, args=["-m", "pipesim", "mcp"], cwd=ROOT)
        async with mcp.Client(server) as client, anyio.create_task_group() as calls:
            assert [each.name for each in (await client.list_tools()).tools] == [each.name for each in TOOLS]

            async def call(name: str) -> None:
                answers[name] = await client.call_tool(*CALLS[name][:2])

            for name in names:
                calls.start_soon(call, name)

    anyio.run(ask)
    assert {tool for tool, *_ in CALLS.values()} == {each.name for each in TOOLS}
    for name in names:
        _, _, code, said = CALLS[name]
        text = answers[name].content[0].text
        document = json.loads(text)
        assert (name, document["exit_code"], said in text) == (name, code, True), text
        assert document["pipesim"] == __version__
        assert faults(document["schema"], document) == []
        assert answers[name].is_error == (code == 2)
        assert len(text) <= MOST_BYTES


@pytest.mark.parametrize(
    ("tool", "given", "said"),
    [
        ("chek", {}, "there are check, explain,"),
        ("check", {}, "check needs the argument 'file'"),
        ("check", {"fle": "a.ptx"}, "check has no argument 'fle'"),
        ("check", {"file": "a.ptx", "set": "n=1"}, "'set' of check is 'n=1'"),
        ("check", {"file": "a.ptx", "quick": "yes"}, "'quick' of check is 'yes'"),
        ("check", {"file": "a.ptx", "seconds": -1}, "'seconds' of check is -1"),
        ("check", {"file": "a.ptx", "strict": ["commit"]}, "'strict' of check names another assumption"),
        ("check", {"file": "x" * 5_000, "quick": 1}, "'quick' of check is 1"),
    ],
)
def test_wrong_arguments_are_an_error_with_a_correction(tool: str, given: dict[str, Any], said: str) -> None:
    text, failed = anyio.run(lambda: answer(tool, given, python=False))
    document = json.loads(text)
    assert (failed, document["schema"], document["error"]["fact"][: len(said)]) == (
        True,
        "error.v1",
        said,
    ) or said in text
    assert document["error"]["correction"]
    assert len(text) <= MOST_BYTES


def test_no_argument_is_taken_for_an_option() -> None:
    check = TOOLS[0]
    line = check.line({"file": "--fix", "set": ["--write"], "strict": ["all"], "launch": "-p"})
    assert line == ["check", "--format=brief", "--launch=-p", "--set=--write", "--strict", "--", "--fix"]


def test_without_the_sdk_the_error_says_how_to_install_it(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    said = call("mcp")
    assert (said.code, said.out) == (2, "")
    assert said.err == "pipesim: pipesim mcp needs the package mcp\n  try: pip install 'pipesim[mcp]'\n"
    assert [name for name, _ in call("mcp", "--json").json["tools"]] == [each.name for each in TOOLS]
