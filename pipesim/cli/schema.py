"""``pipesim schema``: the JSON Schema of a document that pipesim prints, or of a file that it writes and reads."""

import argparse

from pipesim.cli.arguments import Command, complete
from pipesim.cli.output import show_answer, write_text


def _arguments(parser: argparse.ArgumentParser) -> None:
    text = "what a document has as its schema (default: list all)"
    complete(parser.add_argument("name", nargs="?", metavar="NAME", help=text), _names)


def _names(**_: object) -> list[str]:
    from pipesim.formats.schemas import NAMES

    return list(NAMES)


def _carry_out(options: argparse.Namespace) -> int:
    from pipesim.formats.documents import document
    from pipesim.formats.schemas import NAMES, schema, schema_text, versioned_name

    if options.name is not None:
        text = schema_text(schema(options.name))
        write_text(text)  # also with --json: a schema is JSON
        return 0
    listed = [(versioned_name(made), made["title"]) for made in map(schema, NAMES)]
    wide = max(len(name) for name, _ in listed)
    lines = [f"{name:{wide}}  {title}" for name, title in listed]
    return show_answer(options, document("schema-list", schemas=listed), lambda _: lines)


COMMAND = Command(
    "schema",
    "the JSON Schema of a document",
    "Print the JSON Schema (draft 2020-12) of what a command prints with --json, or of a file that pipesim writes and "
    "reads. A document names its own under `schema`. Without a name, list all schemas.",
    _arguments,
    _carry_out,
    (
        ("pipesim schema", "the name of every schema, and what it describes"),
        ("pipesim schema check", "the schema of what pipesim check NAME --json prints"),
    ),
)
