"""Documents of ``--json``, judged by the schemas that they name."""

from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from pipesim.formats.schemas import schema


@cache
def validator(name: str) -> Draft202012Validator:
    """What judges a document by the schema of this name."""
    return Draft202012Validator(schema(name))


def faults(name: str, document: Any) -> list[str]:
    """What is wrong with a document by the schema of this name."""
    return [f"{list(error.path)}: {error.message[:200]}" for error in validator(name).iter_errors(document)]


def require_valid(document: Any) -> None:
    """The document names a schema, and is valid by it."""
    if not document.get("$schema"):  # of `pipesim schema NAME`: it is a schema
        assert faults(document["schema"], document) == [], document["schema"]
