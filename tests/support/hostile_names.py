"""Names that mean harm where they are written into another language, and a program that has one in every position."""

from dataclasses import fields, replace

from pipesim.model.program import Program
from tests.support.promela_examples import ring

MARK = "pwned"  #: the file that would be made if a name were run

#: Each ends what it is written into, begins something else, or both.
HOSTILE = {
    "promela": f'*/ active proctype evil() {{ c_code {{ system("touch {MARK}"); }} }} c_code {{ system("x"); }} /*',
    "half a comment": "*",
    "a slash": "/",
    "nested": "*/*/*/ /* /*",
    "preprocessor": '*/\n#include "/etc/passwd"\n/*',
    "continued line": "x\\\n",
    "trigraph": "*??/\n/ ??/",
    "backslash": "\\",
    "C header": f'load, 1)\nPIPESIM_ROLE(evil, 1)\n#define x system("touch {MARK}") //',
    "shell": f"$(touch {MARK}) `touch {MARK}`; touch {MARK} | touch {MARK} & '",
    "shell quote": f"'; touch {MARK}; '",
    "option": "--force",
    "markup": '"><script>alert(1)</script><!-- ]]> --></title></text>&lt;&#0;',
    "attribute": "\" onload=\"alert(1)' x='",
    "github": "\n::error file=x::y\n::stop-commands::z",
    "github, wrapped": "word " * 30 + "::error::y",
    "github, earlier": "##[error]y",
    "azure": "##vso[task.setvariable variable=x]y",
    "teamcity": "##teamcity[buildStatus status='SUCCESS']",
    "escape sequences": "\x1b[31m\x1b]0;title\x07\x1b[2J\x9b1m\x08\x7f\r",
    "reordered": "\u202eevil\u2066\u200b\ufeff",
    "lines": "a\u2028b\u2029c\x85d\x0be\x0cf",
    "null": "a\0b",
    "surrogate": "\udcff\ud800",
    "markdown": "a | b](javascript:alert(1)) [c] `d` <e> *f*",
    "path": "../../../../etc/passwd",
    "percent": "100% %0A::error::x",
    "long": "x" * 5_000,
    "empty": "",
    "blank": " \t ",
    "other alphabets": "größe 数 😀",
}


def hostile(name: str, program: Program | None = None) -> Program:
    """A program, the small ring if none, with ``name`` in every position that has one.

    The check of a program is left out: what reads one refuses such names, and an exporter must not depend on that.
    """
    program = program or ring()
    return unchecked(
        program,
        name=name,
        params=dict.fromkeys((name, *program.params), 2),
        agents=tuple(replace(agent, role=f"{name}{n}") for n, agent in enumerate(program.agents)),
        barriers=tuple(replace(barrier, name=name) for barrier in program.barriers),
        tiles=tuple(replace(tile, name=name) for tile in program.tiles),
        loops=(name,) * len(program.loops),
        sources=tuple(f"{name}:{n}" for n in range(len(program.sources))),
        notes=(name,),
        pipelines=(name,),
    )


def unchecked(program: Program, **changes: object) -> Program:
    """The program with these fields, whatever they are."""
    made = object.__new__(Program)
    for field in fields(Program):
        object.__setattr__(made, field.name, changes.get(field.name, getattr(program, field.name)))
    return made
