"""Build the site with the page *Try it*, and try that in Chromium: ``python -m tools.try_it SITE [--picture]``.

The page runs pipesim in the browser, on Pyodide from its npm package. That is fetched, compared with its checksum, and
packed beside the site's pages, with pipesim, rich and ten examples; nothing of it is committed.
"""

import argparse
import base64
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.support.devtools import Tab
from tests.support.plain_cuda import PLAIN

ROOT = Path(__file__).resolve().parents[1]
PYODIDE = "pyodide@314.0.7"
CHECKSUM = "0YvXxEhfEdpLfb/XkM2BFAeMROq0iMUX2bzzH9pOttyMcWkwq+HbE5uyuGD82LN7y2q+SNvi/6V5JEsOlD2R1A=="  #: sha512
TAKEN = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
MOST_BYTES, FIRST_S, NEXT_S = 20_000_000, 8.0, 2.0
#: What is for a terminal, a GPU or a dump, and no check of a kernel imports.
LEFT_OUT = tuple(f"pipesim/{name}/" for name in ("cli", "coredump", "doctor", "hang", "launches", "pytest_plugin"))
FILES = {
    "row_max: a warp that skips a tile skips its arrive": "docs/examples/row_max",
    "row_max with rows of whole tiles, right": "docs/examples/row_max",
    "a grid barrier": "tests/hang/records/words/grid_barrier",
    "CTAs that wait for a word that is not written": "tests/hang/records/words/grid_laps_hangs",
}
WRONG, RIGHT = ("softmax", "transpose", "reduce", "histogram"), ("softmax", "matmul")  #: kernels without mbarriers
#: For Node: a Python of the page's version compiles every module.
COMPILE = """import { loadPyodide } from %s;
const python = await loadPyodide();
python.FS.mkdir("/made"); python.mountNodeFS("/made", %s);
python.runPython(`
import pathlib, py_compile
for path in pathlib.Path("/made").rglob("*.py"):
    py_compile.compile(path, path.with_suffix(".pyc"), str(path)[5:], True)
    path.unlink()`);"""


def modules() -> Iterator[tuple[str, Path]]:
    """The files of pipesim and rich, and the page's own, by their place on Python's path."""
    rich = Path(str(importlib.util.find_spec("rich").origin)).parent  # type: ignore[union-attr]  # it is installed
    for root in (ROOT / "pipesim", rich):
        for path in filter(Path.is_file, root.rglob("*")):
            name = path.relative_to(root.parent).as_posix()
            if "__pycache__" not in name and not name.startswith(LEFT_OUT):
                yield name, path
    yield "answer.py", ROOT / "docs" / "try" / "answer.py"


def examples(folder: Path) -> Iterator[dict[str, object]]:
    """The ten kernels: what each is, its PTX, launch file and source. Those of a test are compiled in the folder."""
    paths = {said: ROOT / f"{name}.ptx" for said, name in FILES.items()}
    for wrong in (True, False):
        for each in (each for each in PLAIN if each.name in (WRONG if wrong else RIGHT)):
            (place := folder / f"{each.name}_{wrong}").mkdir()
            said = f"{each.name}: {each.mistake}" if wrong else f"{each.name}, right"
            paths[said] = each.write(place, wrong=wrong)
    for said, path in paths.items():
        ptx, launch = (path.with_suffix(each).read_text(encoding="utf-8") for each in (".ptx", ".json"))
        launch = launch.replace("1280", "2048") if "whole tiles" in said else launch
        sources = {each.name: each.read_text(encoding="utf-8") for each in path.parent.glob(f"{path.stem}.cu")}
        yield {"said": said, "ptx": ptx, "launch": launch, "sources": sources}


def pack(into: Path, folder: Path) -> None:
    """What the page loads: the interpreter, pipesim with rich as one archive, and the examples."""
    done = subprocess.run(["npm", "pack", PYODIDE], cwd=folder, capture_output=True, text=True, check=True)
    file = folder / done.stdout.split()[-1]
    assert base64.b64encode(hashlib.sha512(file.read_bytes()).digest()).decode() == CHECKSUM, f"another {PYODIDE}"
    with tarfile.open(file) as archive:
        archive.extractall(folder, filter="data")
    package, made = folder / "package", folder / "made"
    for name in TAKEN:
        (into / name).write_bytes((package / name).read_bytes())
    lock = json.loads((package / "pyodide-lock.json").read_text(encoding="utf-8"))
    (into / "pyodide-lock.json").write_text(json.dumps({**lock, "packages": {}}), encoding="utf-8")
    (into / "examples.json").write_text(json.dumps(list(examples(folder))), encoding="utf-8")
    for name, path in modules():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_bytes(path.read_bytes())
    script = COMPILE % (json.dumps(str(package / "pyodide.mjs")), json.dumps(str(made)))
    subprocess.run(["node", "--input-type=module"], input=script, text=True, check=True)
    with zipfile.ZipFile(into / "pipesim.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for path in sorted(filter(Path.is_file, made.rglob("*"))):
            packed.write(path, path.relative_to(made))


def trial(site: Path, *, picture: bool) -> bool:
    """The ten examples in Chromium, each from its choice to its verdict; whether all limits were kept."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    here, good = f"http://127.0.0.1:{server.server_port}/", True
    with Tab(site / "404.html", (1280, 1000)) as tab:
        begun = time.monotonic()
        tab.call("Page.navigate", url=f"{here}try/")
        while not tab.js("!!window.tryIt"):
            time.sleep(0.05)
        for number, most in enumerate([FIRST_S] + [NEXT_S] * 9):
            said, took = tab.js(f"tryIt.choose({number})"), time.monotonic() - begun
            tab.js("tryIt.whole()")
            print(f"{said:10}{took:6.2f} s (below {most:.0f}); the rest after {time.monotonic() - begun:.2f} s")
            good, begun = good and took < most, time.monotonic()
            if picture and not number:
                (ROOT / "docs" / "pictures" / "try-it.png").write_bytes(tab.picture())
        strange = [each for each in tab.js("tryIt.asked()") if not each.startswith((here, f"blob:{here}"))]
    size = sum(path.stat().st_size for path in (site / "try").rglob("*") if path.is_file())
    print(f"{size:,} bytes (at most {MOST_BYTES:,}); requests elsewhere: {strange or 'none'}")
    print(f"{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}")
    return good and not strange and size <= MOST_BYTES


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("site", type=Path, help="the folder that the site is written to")
    parser.add_argument("--picture", action="store_true", help="take the screenshot of docs/try.md, too")
    options = parser.parse_args()
    theme = [] if importlib.util.find_spec("material") else ["--theme", "mkdocs"]
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "-q", "-d", options.site.resolve(), *theme], check=True)
    (options.site / "try" / "run").mkdir()
    with tempfile.TemporaryDirectory() as folder:
        pack(options.site / "try" / "run", Path(folder))
    return 0 if trial(options.site, picture=options.picture) else 1


if __name__ == "__main__":
    sys.exit(main())
