# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
"""pytest --dapple-check: a step of a test, its set-up, its body or its end, fails if the check reports an error in it."""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from typing import Any

import pytest

from dapple import pytest_scene

# The words of a record by which dapple-run counts it as an error, and others of the same length.
ERROR, NOTE = b'"level":"error"', b'"level":"note" '
# That of a text which dapple-run prints at its end, because pytest has captured it, and another of the same length.
KEPT, SHOWN = b'{"kept":"dapple: error: ', b'{"seen":"dapple: error: '


class Records:
    """The file to which the check appends a record for each report, and how much of it has been read."""

    def __init__(self) -> None:
        # Empty in a worker of pytest-xdist, whose neighbours write to the same file.
        self.path = "" if "PYTEST_XDIST_WORKER" in os.environ else os.environ.get("DAPPLE_CHECK_RECORDS", "")
        # The process of a scene has the file of the first pytest.
        self.begin = self.end = os.path.getsize(self.path) if os.path.exists(self.path) else 0

    def errors(self) -> list[str]:
        """The errors since the last call."""
        try:
            with open(self.path, "rb") as file:
                self.begin = file.seek(self.end)
                lines = file.readlines()
                self.end = file.tell()
        except OSError:
            return []
        found = []
        for line in lines:
            try:
                record = json.loads(line.decode(errors="replace"))
            except ValueError:
                continue
            if isinstance(record, dict) and record.get("level") == "error":
                found.append(f"{record.get('kind', '')}: {record.get('text', '')}")
        if lines:
            self.replace(KEPT, SHOWN)
        return found

    def forgive(self) -> None:
        """Makes the errors of the last call notes, for dapple-run's exit code and its files."""
        self.replace(ERROR, NOTE)

    def replace(self, old: bytes, new: bytes) -> None:
        """In the lines of the last call. Programs may append meanwhile."""
        with open(self.path, "r+b") as file:
            file.seek(self.begin)
            lines = file.read(self.end - self.begin)
            file.seek(self.begin)
            file.write(lines.replace(old, new))


records = Records()
# The errors in no step of a test.
others: list[str] = []


def failure(reason: str) -> pytest.ExceptionInfo[BaseException]:
    """As if a step of the test had raised it: so xfail expects it, too."""
    try:
        pytest.fail(reason, pytrace=False)
    except BaseException:
        return pytest.ExceptionInfo.from_current()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    errors = records.errors()
    # The process of a scene has reported them.
    if not pytest_scene.runs_elsewhere(item):
        others.extend(errors)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    errors = records.errors()
    if errors and (call.excinfo is None or isinstance(call.excinfo.value, pytest.skip.Exception)):
        call.excinfo = failure("dapple's check reports:\n" + "\n".join(errors))
    outcome = yield
    if errors and hasattr(outcome.get_result(), "wasxfail"):
        records.forgive()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    others.extend(records.errors())
    if others:
        terminalreporter.section("dapple's check also reports")
        for each in others:
            terminalreporter.line(each)
