"""``pipesim mcp``: a server of the Model Context Protocol, for agents that write kernels."""

import argparse
from typing import TYPE_CHECKING

from pipesim.cli.arguments import Command, add_flag
from pipesim.errors import MissingExtraError
from pipesim.process.watch import current

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

_INSTRUCTIONS = (
    "pipesim proves that a GPU kernel's synchronisation (mbarriers, named barriers, __syncthreads, copies, words of "
    "global memory) cannot hang or race in any schedule, or says where it does, why, and what corrects it. Compile "
    "with -lineinfo, call check on the PTX after every change, and correct the source at the places that it names. "
    "unknown proves nothing; what a proof assumes, and what it leaves open, is in its sentence."
)


def _arguments(parser: argparse.ArgumentParser) -> None:
    text = (
        "also run protocols in Python files, with the rights of this process (default: every call is confined to "
        "the folders of its inputs and the current one, as by --untrusted)"
    )
    add_flag(parser, "--python", text)


def _carry_out(options: argparse.Namespace) -> int:
    import asyncio  # slow to import, as its sockets are

    from pipesim.cli.agents.tools import TOOLS
    from pipesim.cli.output import show_answer
    from pipesim.formats.documents import document

    if options.json:
        tools = [(tool.name, tool.what) for tool in TOOLS]
        return show_answer(options, document("mcp-tools", tools=tools), lambda _: [])
    server = _server(python=options.python)
    current().start(None)  # each call has limits of its own
    current().allow_reserving()
    asyncio.run(_serve(server))
    return 0


def _server(*, python: bool) -> "Server":
    """The server with its tools. MissingExtraError without the SDK."""
    try:
        from mcp import types
        from mcp.server.context import ServerRequestContext
        from mcp.server.lowlevel import Server
    except ImportError as error:
        raise MissingExtraError("pipesim mcp needs the package mcp", correction="pip install 'pipesim[mcp]'") from error
    from pipesim.cli.agents.tools import TOOLS, answer
    from pipesim.version import __version__

    hints = types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)

    async def tools(_: ServerRequestContext, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        listed = (
            types.Tool(name=each.name, description=each.what, input_schema=each.schema(), annotations=hints)
            for each in TOOLS
        )
        return types.ListToolsResult(tools=list(listed))

    async def call(_: ServerRequestContext, asked: types.CallToolRequestParams) -> types.CallToolResult:
        text, failed = await answer(asked.name, asked.arguments or {}, python=python)
        return types.CallToolResult(content=[types.TextContent(text=text)], is_error=failed)

    return Server("pipesim", version=__version__, instructions=_INSTRUCTIONS, on_list_tools=tools, on_call_tool=call)


async def _serve(server: "Server") -> None:
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


COMMAND = Command(
    "mcp",
    "serve the answers of check, explain and autopsy to an agent",
    "Serve check, explain, replay, against, redundant and autopsy to an agent, by the Model Context Protocol on "
    "standard input and output: each answer is JSON of at most 2 kB. Needs the extra `mcp`. `pipesim skill` prints "
    "what an agent should know.",
    _arguments,
    _carry_out,
    (
        ("pipesim mcp", "the command that an agent starts, as in: claude mcp add pipesim -- pipesim mcp"),
        ("pipesim mcp --json", "the tools that it has"),
    ),
)
