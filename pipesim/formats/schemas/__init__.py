"""JSON Schemas by their names: of every document that a command prints, and of the files that pipesim writes and reads.

Those of answers (``--json``) and of a trace's metadata are made from the dataclasses that the documents are made from,
so that they cannot become outdated; those of the other files are written out in ``files.py``.
"""

import json

from pipesim.errors import ParameterError
from pipesim.formats.schemas.files import FILES
from pipesim.formats.schemas.shapes import ANSWER_MEMBERS, Schema, answer

NAMES = (*ANSWER_MEMBERS, *FILES)


def schema(name: str) -> Schema:
    """The schema of a name, which may have its version as documents say it (``check.v1``).

    ParameterError for another name.
    """
    plain = name.partition(".v")[0]
    if plain in NAMES:
        made = answer(plain) if plain in ANSWER_MEMBERS else FILES[plain]()
        if name in (plain, versioned_name(made)):
            return made
        raise ParameterError(
            f"there is no schema {name}", correction=f"the one of this pipesim: {versioned_name(made)}"
        )
    raise ParameterError(f"there is no schema {name}", correction="`pipesim schema` lists them")


def versioned_name(made: Schema) -> str:
    """``check.v1``: the name and the version of the ``$id``."""
    name, version = made["$id"].split(":")[-2:]
    return f"{name}.v{version}"


def schema_text(made: Schema) -> str:
    """A schema as its file has it."""
    return json.dumps(made, indent=1) + "\n"
