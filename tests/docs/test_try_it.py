"""The page *Try it*, without a browser: what it asks pipesim for, with the modules that are packed, and from where.

``python -m tools.try_it SITE`` tries it in Chromium.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tools.try_it import LEFT_OUT, examples, modules

ASK = """import json, sys, answer
for kernel in json.load(open("kernels.json"))[::int(sys.argv[1])]:
    verdict = json.loads(answer.verdict(kernel["ptx"], kernel["launch"], json.dumps(kernel["sources"])))["verdict"]
    found = json.loads(answer.details())
    assert all(svg.startswith("<svg") for _, svg in found["pictures"])
    assert (verdict == "refuted") == bool(found["steps"])
    print(verdict, kernel["said"].endswith((", right", "grid barrier")), verdict in found["report"])
print(answer.verdict("", "{}", "{}"))"""


def test_nothing_is_loaded_from_elsewhere_and_every_part_has_a_label() -> None:
    page, script, worker = ((ROOT / "docs" / name).read_text() for name in ("try.md", "try/try.js", "try/worker.js"))
    assert not re.search(r"https?:|//\w", page + script.partition("\n")[2] + worker.partition("\n")[2])
    asked = re.findall(r"fetch\((.+?)\)|loadPyodide\((.*?)\)", script + worker)
    assert sorted(asked) == [("", ""), ('"run/pipesim.zip"', ""), ('new URL("run/examples.json", import.meta.url', "")]
    for tag, name in re.findall(r'<(textarea|select|input|iframe|pre)[^>]* ?id="try-(\w+)"', page):
        assert f'for="try-{name}"' in page or tag in ("iframe", "pre")


@pytest.mark.slow
@pytest.mark.parametrize(("step", "refuted", "proved"), [(4, 2, 1), pytest.param(1, 6, 4, marks=pytest.mark.long)])
def test_the_ten_kernels_with_what_is_packed(step: int, refuted: int, proved: int, tmp_path: Path) -> None:
    for name, path in modules():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, tmp_path / name)
        if path.suffix == ".py" and (made := Path(cache_from_source(path))).exists():  # else each module is compiled
            (to := Path(cache_from_source(tmp_path / name))).parent.mkdir(exist_ok=True)
            shutil.copy2(made, to)
    assert not any((tmp_path / each).exists() for each in LEFT_OUT)
    (tmp_path / "kernels.json").write_text(json.dumps(list(examples(tmp_path))), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    said = subprocess.check_output([sys.executable, "-c", ASK, str(step)], cwd=tmp_path, env=environment, text=True)
    *verdicts, refused = said.splitlines()
    assert verdicts.count("refuted False True") == refuted
    assert verdicts.count("proved True True") == proved
    assert "refused" in refused
