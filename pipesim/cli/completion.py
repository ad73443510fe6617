"""``pipesim completion``: let the shell complete commands, options, protocols and their parameters."""

import argparse

from pipesim.cli.arguments import Command

SHELLS = ("bash", "zsh", "fish")
WORD = "pipesim"


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell that reads it")


def _carry_out(options: argparse.Namespace) -> int:
    from argcomplete.shell_integration import shellcode

    from pipesim.cli.output import emit, write_text
    from pipesim.formats.documents import document

    text = shellcode([WORD], shell=options.shell).strip() + "\n"
    emit(options, document("completion", shell=options.shell, text=text), lambda _: write_text(text))
    return 0


COMMAND = Command(
    "completion",
    "let the shell complete a command line",
    "Print what a shell needs to complete commands, options, protocols, their parameters and profiles with the "
    "tabulator. Put the line of your shell's example into its start-up file.",
    _arguments,
    _carry_out,
    (
        ('eval "$(pipesim completion bash)"', "in ~/.bashrc"),
        ('eval "$(pipesim completion zsh)"', "in ~/.zshrc, after compinit"),
        ("pipesim completion fish | source", "in ~/.config/fish/config.fish"),
    ),
)
