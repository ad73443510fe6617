"""No package that a proof does not need: `pytest -p tests.support.no_packages tests/model tests/lang tests/prove`.

Files of tests that import such a package themselves, or what simulates and draws, are skipped.
"""

from collections.abc import Generator

import pytest

from tests.support.less import PACKAGES, take_modules

Collecting = Generator[None, pytest.CollectReport, pytest.CollectReport]


def pytest_load_initial_conftests() -> None:
    """Before any module of pipesim or of the tests is imported, in the worker processes as well."""
    take_modules(*PACKAGES)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Collecting:
    """A file that needs one of the packages is skipped; any other that cannot be imported is an error."""
    report = yield
    for package in PACKAGES:
        if report.failed and f"No module named '{package}" in str(report.longrepr):
            report.outcome, report.longrepr = "skipped", (str(collector.path), 0, f"needs {package}")
    return report
