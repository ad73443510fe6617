"""For mkdocs, which loads this file: the pages outside docs, the generated ones, and links as the site has them.

Generated for the site, and not committed: the reference of the Python API, the schemas, the help of
every command below docs/commands.md, and the diagram and docstring of every protocol below its page.

In the repository a link leads to a file. On the site it leads to a page, if the file is one, or to the file, if the
site has it; of any other file, as of a source, the text remains.
"""

from __future__ import annotations

import inspect
import posixpath
import re
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

#: Files outside docs, and the pages that they are.
ELSEWHERE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "tools/README.md": "tools.md",
    "traces/README.md": "traces.md",
}
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
_CODE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that lie elsewhere, and the generated ones."""
    from mkdocs.structure.files import File

    root = Path(config.config_file_path).parent
    sys.path.insert(0, str(root))  # mkdocs runs from its own script: `tools` is found in the checkout
    pages = {page: (root / source).read_text(encoding="utf-8") for source, page in ELSEWHERE.items()}
    for name, text in (pages | generated(root)).items():
        files.append(File.generated(config, name, content=text))
    return files


def generated(root: Path) -> dict[str, str]:
    """The text of each generated file, by its place in the site."""
    from pipesim.formats.schemas import NAMES, schema, schema_text, versioned_name
    from tools import api_doc

    committed = {path.name for path in (root / "docs" / "schemas").iterdir()}
    schemas = {f"{versioned_name(made)}.json": schema_text(made) for made in map(schema, NAMES)}
    more = {f"schemas/{name}": text for name, text in schemas.items() if name not in committed}
    return {"api-reference.md": api_doc.page(), **more}


def appendix(page: str) -> str:
    """What the site has below the text of a page: what commands print, and docstrings."""
    from pipesim.cli.main import COMMANDS
    from pipesim.protocols.catalog import BUILT_IN
    from pipesim.targets import built_in
    from tools.docs_output import output_of

    if page == "commands.md":
        names = sorted(command.name for command in COMMANDS)
        return "".join(f"\n## {name}\n\n```text\n{output_of(f'pipesim help {name}', 0)}```\n" for name in names)
    folder, _, name = page.removesuffix(".md").partition("/")
    if folder != "protocols" or name not in BUILT_IN:
        return ""
    said = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", inspect.getdoc(built_in(name)) or "").replace("``", "`")
    shown = output_of(f"pipesim show {name}", 0)
    return f"\n## As its source describes it\n\n{said}\n\n## What `pipesim show` draws\n\n```text\n{shown}```\n"


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links as the site has them."""
    root = Path(config.config_file_path).parent
    there = frozenset(file.src_uri for file in files)
    markdown += appendix(page.file.src_uri)
    return relinked(
        markdown, page.file.src_uri, there, lambda name: (root / name).exists(), lambda name: title_of(root / name)
    )


def title_of(path: Path) -> str:
    """The heading of a page, "" where it has none."""
    first = path.read_text(encoding="utf-8").partition("\n")[0]
    return first.removeprefix("# ") if first.startswith("# ") else ""


def relinked(
    markdown: str,
    page: str,
    there: Collection[str],
    exists: Callable[[str], bool],
    titled: Callable[[str], str] = lambda _: "",
) -> str:
    """A page's text for the site, which has the files ``there``; code is left as it is.

    A link whose text is the name of its file gets the page's title (``titled``).
    A link to a file that the repository has not, either, stays: mkdocs finds it.
    """
    source = next((name for name, uri in ELSEWHERE.items() if uri == page), f"docs/{page}")

    def link(found: re.Match[str]) -> str:
        picture, text, target = found.groups()
        if "://" in target or target.startswith(("#", "mailto:")):
            return found[0]
        path, hash_, anchor = target.partition("#")
        file = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        uri = ELSEWHERE.get(file, file.removeprefix("docs/") if file.startswith("docs/") else "")
        uri = f"{uri}/README.md" if f"{uri}/README.md" in there else uri
        if uri not in there:
            return str(text) if exists(file) else found[0]
        if text.endswith(".md") and text == posixpath.basename(path):
            text = titled(file) or text
        return f"{picture}[{text}]({posixpath.relpath(uri, posixpath.dirname(page) or '.')}{hash_}{anchor})"

    parts = _CODE.split(markdown)
    return "".join(part if n % 2 else _LINK.sub(link, part) for n, part in enumerate(parts))
