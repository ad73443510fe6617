"""Sentences that a user can see keep to docs/glossary.md, whose table of words not to be used is the only list."""

import ast
import inspect
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pytest

import pipesim
import pipesim.pipelines
from tests.support.exported import exported

ROOT = Path(__file__).resolve().parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"

#: Packages all of whose strings, docstrings and comments are read: users and contributors see them.
PACKAGES = ("pipesim", "hwkernels", "tools")


@dataclass(frozen=True)
class Rule:
    """A word or phrase, its words, what finds it, and the contexts in which it is allowed."""

    phrase: str
    words: frozenset[str]
    pattern: re.Pattern[str]
    allowed: tuple[re.Pattern[str], ...]


def rules(page: str) -> tuple[Rule, ...]:
    """The rows of the table under "Words not to be used"."""
    table = page.split("## Words not to be used", 1)[1]
    found = []
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        phrases = re.findall("`([^`]+)`", cells[0])
        allowed = tuple(_pattern(context) for context in re.findall("`([^`]+)`", cells[2])) if len(cells) > 2 else ()
        if line.startswith("| `"):
            found += [Rule(phrase, words_of(phrase), _pattern(phrase), allowed) for phrase in phrases]
    return tuple(found)


def words_of(text: str) -> frozenset[str]:
    return frozenset(re.findall("[a-z]+", text.lower()))


def _pattern(phrase: str) -> re.Pattern[str]:
    """Whole words in any case, across line breaks; ``…`` is up to four words."""
    words = [r"(?:\S+\s+){0,4}?" if word == "…" else re.escape(word) + r"\s+" for word in phrase.split()]
    text = "".join(words).removesuffix(r"\s+")
    before = r"(?<![\w-])" if phrase[0].isalpha() else ""
    after = r"(?![\w-])" if phrase[-1].isalpha() else ""
    return re.compile(f"{before}{text}{after}", re.IGNORECASE)


RULES = rules(GLOSSARY.read_text(encoding="utf-8"))
_JOINT = re.compile(r"""\\\n|["']\s+[rf]?["']""")  #: of two lines of a string


def broken(text: str) -> list[str]:
    """The phrases of the list that a text contains outside their allowed contexts."""
    found = []
    words = words_of(text)
    for rule in RULES:
        if not rule.words <= words:
            continue
        free = [hit.span() for context in rule.allowed for hit in context.finditer(text)]
        hits = [hit.span() for hit in rule.pattern.finditer(text)]
        if any(not any(low <= start and end <= high for low, high in free) for start, end in hits):
            found.append(rule.phrase)
    return found


def suspect(source: str) -> bool:
    """Whether a phrase is anywhere in a module, its strings and comments joined: most modules need no further look."""
    text = " ".join(_JOINT.sub("", source).replace("\\n", " ").split())
    text = re.sub("(?<= )#:? ", "", text)
    lower = text.lower()
    return any(
        broken(text[max(0, hit.start() - 80) : hit.end() + 80])
        for rule in RULES
        if all(part in lower for part in rule.phrase.lower().split(" … "))
        for hit in rule.pattern.finditer(text)
    )


@lru_cache(maxsize=1)
def nodes(source: str) -> list[ast.AST]:
    """Those of a module."""
    return list(ast.walk(ast.parse(source)))


def strings(source: str) -> Iterator[tuple[int, str]]:
    """Every string of a module with a space in it, docstrings left out: line and text, ``{}`` for what is filled in."""
    silent: set[int] = set()  # a node comes before those in it
    for node in nodes(source):
        if isinstance(node, ast.Expr):
            silent.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            silent.update(map(id, node.values))
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
            text = node.value
        else:
            continue
        if " " in text.strip():
            yield node.lineno, text


def explanations(source: str) -> Iterator[tuple[int, str]]:
    """The docstrings of a module, without code, and its comments, each run of lines as one: line and text."""
    for node in nodes(source):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield getattr(node, "lineno", 1), _without_code(ast.get_docstring(node) or "")
    run: list[str] = []
    last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if run and token.start[0] != last + 1:
                yield last, _without_code(" ".join(run))
                run = []
            run.append(token.string.lstrip("#: "))
            last = token.start[0]
    yield last, _without_code(" ".join(run))


def prose(page: str) -> str:
    """A Markdown page without its code: fenced blocks, unless they show what a command prints, and code spans."""
    shown = re.compile(r"(<!-- output of[^>]*-->\n)```\w*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    kept = shown.sub(r"\2", page)
    return re.sub(r"`[^`\n]*`", "`", re.sub(r"^```.*?^```$", "", kept, flags=re.DOTALL | re.MULTILINE))


def modules() -> list[Path]:
    return [path for name in PACKAGES for path in sorted((ROOT / name).rglob("*.py"))]


def pages() -> list[Path]:
    names = (
        "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "traces/README.md", "tools/README.md",
        "docs/schemas/README.md",
    )  # fmt: skip
    return [*(ROOT / name for name in names), *sorted((ROOT / "docs").glob("*.md"))]


def docstrings(name: str, value: object) -> Iterator[tuple[str, str]]:
    """What ``help`` shows of a public object: its own docstring and those of a class's public members, without code."""
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return
    yield name, _without_code(inspect.getdoc(value) or "")
    if inspect.isclass(value):
        for member in inspect.classify_class_attrs(value):
            ours = member.defining_class.__module__.partition(".")[0] == "pipesim"
            if ours and hasattr(member.object, "__get__") and not member.name.startswith("_"):
                yield f"{name}.{member.name}", _without_code(inspect.getdoc(member.object) or "")


def _without_code(docstring: str) -> str:
    return re.sub("``.*?``", "`", docstring, flags=re.DOTALL)


def sources() -> list[Path]:
    """Files that a user is given as they are, comments included."""
    examples = [path for path in (ROOT / "docs" / "examples").iterdir() if path.suffix in (".py", ".cu", ".h")]
    return [ROOT / "pipesim" / "cli" / "protocols" / "template.py", *sorted(examples)]


@pytest.mark.slow
def test_strings_docstrings_and_comments() -> None:
    wrong = []
    for path in modules():
        name, source = str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
        if not suspect(source):
            continue
        wrong += [
            f"{name}:{line}: {', '.join(found)}: {text!r}"
            for line, text in (*strings(source), *explanations(source))
            if (found := broken(text))
        ]
    assert wrong == []


PUBLIC = [(pipesim, name) for name in pipesim.__all__] + [
    (pipesim.pipelines, name) for name in sorted(exported(pipesim.pipelines))
]


def test_docstrings_of_the_public_names() -> None:
    texts = (each for home, name in PUBLIC for each in docstrings(name, getattr(home, name)))
    assert {place: found for place, text in texts if (found := broken(text))} == {}


@pytest.mark.parametrize("path", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_pages(path: Path) -> None:
    text = prose(path.read_text(encoding="utf-8").split("## Words not to be used", 1)[0])
    assert broken(text) == []


@pytest.mark.parametrize("path", sources(), ids=lambda path: path.name)
def test_files_that_a_user_starts_from(path: Path) -> None:
    assert broken(path.read_text(encoding="utf-8")) == []


@pytest.mark.sampled(8, 24)
@pytest.mark.parametrize(
    "path", sorted((ROOT / "tests" / "golden" / "report").glob("*.txt")), ids=lambda path: path.name
)
def test_golden_reports(path: Path) -> None:
    assert broken(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("rule", RULES[::15], ids=lambda rule: rule.phrase)
def test_a_planted_sentence_is_caught(rule: Rule) -> None:
    """In a module, on a page, in what a command prints, at the start of a sentence and across a line break."""
    phrase = rule.phrase.replace("…", "the recorded kernel")
    module = f'def f(a):\n    """A docstring with {phrase}."""\n    return f"{phrase.capitalize()} {{a}} here"\n'
    ((_, text),) = strings(module)
    assert rule.phrase in broken(text)
    assert suspect(module)
    assert suspect('x = ("it ' + phrase.replace(" ", ' "\n     f"') + '")')
    assert suspect("# it " + phrase.replace(" ", "\n    # "))
    assert rule.phrase in broken(prose(f"A page with {phrase} in it.\n"))
    assert rule.phrase in broken(prose(f"<!-- output of: pipesim x -->\n```\nit {phrase} x\n```\n"))
    assert rule.phrase in broken(f"it {phrase} x".replace(" ", "\n      "))
