"""``pipesim skill``: what an agent that writes kernels should know of pipesim."""

import argparse
from importlib.resources import files

from pipesim.cli.arguments import Command


def _arguments(_: argparse.ArgumentParser) -> None:
    """It has none."""


def _carry_out(options: argparse.Namespace) -> int:
    from pipesim.cli.output import emit, write_text
    from pipesim.formats.documents import document

    text = files("pipesim").joinpath("SKILL.md").read_text(encoding="utf-8")
    emit(options, document("skill", text=text), lambda _: write_text(text))
    return 0


COMMAND = Command(
    "skill",
    "what an agent that writes kernels should know of pipesim",
    "Print SKILL.md: when an agent should ask, how it reads an answer and corrects a kernel, and what a proof does "
    "not say.",
    _arguments,
    _carry_out,
    (("pipesim skill", "for example into .claude/skills/pipesim/SKILL.md"),),
)
