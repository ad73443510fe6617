"""A page in headless Chromium that is driven as a person does, through its DevTools protocol on two pipes.

Unlike :mod:`tests.support.browser`, which asks a page once it is loaded, time passes here: frames are drawn, and
pictures are what a screen would show.
"""

import base64
import json
import os
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.support.browser import PROGRAM

_FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-extensions", "--no-first-run")


class Tab:
    """One page. ``with Tab(path, (1200, 900)) as tab: tab.js("document.title")``."""

    def __init__(self, page: Path, size: tuple[int, int] = (1200, 900), *, dark: bool = False) -> None:
        assert PROGRAM is not None
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        from_us, to_browser = os.pipe()
        from_browser, to_us = os.pipe()
        command = [PROGRAM, *_FLAGS, f"--window-size={size[0]},{size[1]}", f"--user-data-dir={self._folder.name}"]
        script = 'exec 3<&"$1" 4>&"$2"; shift 2; exec "$@"'  # Chromium reads from 3 and writes to 4
        self._process = subprocess.Popen(
            ["bash", "-c", script, "bash", str(from_us), str(to_us), *command, "--remote-debugging-pipe"],
            pass_fds=(from_us, to_us),
            stderr=subprocess.DEVNULL,
        )
        os.close(from_us)
        os.close(to_us)
        self._out, self._in = os.fdopen(to_browser, "wb", buffering=0), os.fdopen(from_browser, "rb")
        self._number, self._session, self._rest = 0, "", b""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call(
            "Emulation.setDeviceMetricsOverride", width=size[0], height=size[1], deviceScaleFactor=1, mobile=False
        )
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=features)
        self.call("Page.enable")
        self.call("Page.navigate", url=page.resolve().as_uri())
        self._until("Page.loadEventFired")

    def __enter__(self) -> "Tab":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._out.close()
        self._in.close()
        self._folder.cleanup()

    def call(self, method: str, **parameters: Any) -> Any:
        """What the browser answers to one method of its protocol."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._out.write(json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            pass
        assert "error" not in answer, answer
        return answer["result"]

    def js(self, expression: str) -> Any:
        """The value of an expression in the page; of a promise, what it comes to."""
        found = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def picture(self, *, whole: bool = False) -> bytes:
        """What the window shows, or the whole page, as a PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"])

    def _until(self, event: str) -> None:
        while self._next().get("method") != event:
            pass

    def _next(self) -> Any:
        while b"\0" not in self._rest:
            part = self._in.read1(1 << 16)
            assert part, "the browser ended"
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)
