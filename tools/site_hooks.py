"""For mkdocs, which loads this file: the pages that lie outside docs, and links as the site has them.

In the repository a link leads to a file. On the site it leads to a page, if the file is one, or to the file, if the
site has it; of any other file, as of a source, the text remains.
"""

from __future__ import annotations

import posixpath
import re
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
    """Add the pages that lie elsewhere."""
    from mkdocs.structure.files import File

    root = Path(config.config_file_path).parent
    for source, page in ELSEWHERE.items():
        files.append(File.generated(config, page, content=(root / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links as the site has them."""
    root = Path(config.config_file_path).parent
    there = frozenset(file.src_uri for file in files)
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

    A link whose text is the name of its file has the page's title (``titled``) in its place.
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
