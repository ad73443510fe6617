"""Headless Chromium: a page with a script at its end, and what that script has to say. No network, no profile kept."""

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FOUND = (found for name in _NAMES if (found := shutil.which(name)) is not None)
PROGRAM = None if os.environ.get("PIPESIM_NO_BROWSER") else next(_FOUND, None)  #: .ci/run does without
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-extensions",
    "--no-first-run",
    "--window-size=1200,900",
)


def said(page: bytes, script: str, folder: Path, *flags: str) -> Any:
    """What the statements of ``script`` return after the page's own scripts, as JSON. An error of either is raised."""
    assert PROGRAM is not None
    probe = (
        "<pre id=probe></pre><script>{ let found; try { found = { said: (() => {" + script + "})() }; } "
        "catch (error) { found = { error: String(error.stack) }; } "
        "document.getElementById('probe').textContent = JSON.stringify(found); }</script>"
    )
    folder.mkdir(exist_ok=True)
    path = folder / "page.html"
    path.write_bytes(page.replace(b"</body>", probe.encode() + b"</body>"))
    command = [PROGRAM, *_FLAGS, *flags, f"--user-data-dir={folder / 'profile'}", "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    text = re.search(r'<pre id="probe">(.*?)</pre>', done.stdout, re.DOTALL)
    assert text is not None, done.stdout[-500:]
    found = json.loads(html.unescape(text[1]))
    assert "error" not in found, found
    return found["said"]
