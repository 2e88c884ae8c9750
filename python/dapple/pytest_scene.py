# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
"""@pytest.mark.dapple_scene("--as connectx7 --faults drop=0.01"): the test runs in a process of its own under dapple-run
with these words. Its pytest writes the reports to a file without a name, and the first pytest takes them from there.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import select
import shlex
import signal
import subprocess
import sys
from collections.abc import Generator, Sequence
from typing import Any, BinaryIO

import pytest

import dapple

# For the process of a scene: the descriptors of the file of the reports, and of a pipe that the first pytest keeps open.
SCENE = "DAPPLE_PYTEST_SCENE"
# The key of the last line in that file.
EXIT_CODE = "pytest_exit_code"
# Whether this is such a process.
is_scene = False


def options_of_python() -> list[str]:
    """The options -X and -W of this process. The others are seldom used, and Python does not keep their words."""
    words = []
    for name, value in sys._xoptions.items():
        words += ["-X", name if value is True else f"{name}={value}"]
    for each in sys.warnoptions:
        words += ["-W", each]
    return words


def this_pytest() -> list[str]:
    """The words that start a pytest like this one: it finds the same modules."""
    script = sys.argv[0]
    python = [sys.executable, *options_of_python()]
    # "pytest" does not find modules in the working folder. Debian's is pytest-3.
    if re.fullmatch(r"(pytest|py\.test)(-?[0-9.]+)?", os.path.basename(script)) and os.path.isfile(script):
        return [*python, script]
    # "python -m pytest" does.
    if script.endswith("/pytest/__main__.py"):
        return [*python, "-m", "pytest"]
    # A program that calls pytest.main() has a path of its own.
    return [*python, "-c", f"import sys; sys.path[:] = {sys.path!r}; import pytest; sys.exit(pytest.main(sys.argv[1:]))"]


def this_pytest_with(arguments: Sequence[str]) -> list[str]:
    """The words that start this pytest with these arguments, its own. Another program may stand before it: coverage run -m pytest."""
    words: list[str] = getattr(sys, "orig_argv", [])  # from Python 3.10 on
    # A script on standard input has been read, and cannot be read again.
    if words and sys.argv[0] not in ("", "-") and list(arguments) == sys.argv[1:]:
        return [sys.executable, *words[1:]]
    return [*this_pytest(), *arguments]


def words_of(item: pytest.Item) -> list[str]:
    """What the marks of the test, its class and its module say, from the outermost to the test's own."""
    words: list[str] = []
    for mark in reversed(list(item.iter_markers("dapple_scene"))):
        if len(mark.args) != 1 or mark.kwargs or not isinstance(mark.args[0], str):
            raise ValueError("dapple_scene takes one string, the words for dapple-run")
        words += shlex.split(mark.args[0])
    return words


def selects_tests(config: Any, arguments: list[str], place: int) -> bool:
    """Whether pytest takes the argument at this place for tests: the same word may be the value of an option."""
    if arguments[place] not in config.option.file_or_dir:
        return False
    mark = "dapple-scene"
    try:
        parsed, others = config._parser.parse_known_and_unknown_args([*arguments[:place], mark, *arguments[place + 1 :]])
    except pytest.UsageError:
        return False
    return mark in [*parsed.file_or_dir, *others]


def arguments_of(config: Any, test: str) -> list[str]:
    """This pytest's arguments, with the test in place of the first that selects tests. Options of a conftest.py depend on that place."""
    arguments = [str(word) for word in config.invocation_params.args]
    words: list[str] = [] if config.option.file_or_dir else [test]
    for place, word in enumerate(arguments):
        if not selects_tests(config, arguments, place):
            words.append(word)
        elif test not in words:
            words.append(test)
    # A worker of pytest-xdist starts no others.
    if config.pluginmanager.hasplugin("xdist"):
        words += ["-n", "0"]
    return words


def runs_elsewhere(item: pytest.Item) -> bool:
    """Whether the test has a scene, and this is not the process of it."""
    return not is_scene and item.get_closest_marker("dapple_scene") is not None


class Scene:
    """A test in a process of its own: what its pytest has reported, and what it has printed."""

    def __init__(self, item: pytest.Item) -> None:
        self.item = item
        self.reports: dict[str, Any] = {}
        self.end = ""
        try:
            ends, open_end = os.pipe()
            with open(ends, "rb"), open(open_end, "wb"), open(os.memfd_create("dapple-reports"), "r+b") as reports:
                self.run(reports, ends)
        except (OSError, ValueError) as error:
            self.end = str(error)

    def run(self, reports: BinaryIO, ends: int) -> None:
        config: Any = self.item.config
        item: Any = self.item
        # pytest 6.2 has fspath. A node's name may begin at another folder than the root: -c FOLDER/FILE makes this the root.
        test = f"{getattr(item, 'path', None) or item.fspath}::{item.nodeid.partition('::')[2]}"
        words = words_of(item)
        again = [*this_pytest(), *arguments_of(config, test), f"--rootdir={config.rootpath}"]
        # pytest empties this folder when it starts, and the first one is still using its own.
        if config.option.basetemp:
            again.append(f"--basetemp={config._tmp_path_factory.mktemp('scene')}")
        passed = (reports.fileno(), ends)
        run = subprocess.run(
            [dapple.program("dapple-run"), *words, "--", *again], env={**os.environ, SCENE: "{} {}".format(*passed)}, pass_fds=passed,
            cwd=config.invocation_params.dir, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", check=False,
        )
        self.end = f"the test's process has ended with {run.returncode}:\n{run.stdout}"
        reports.seek(0)
        exit_code = None
        for line in reports:
            data = json.loads(line)
            if EXIT_CODE in data:
                exit_code = data[EXIT_CODE]
                continue
            report = self.read(data)
            report.nodeid, report.location = self.item.nodeid, self.item.location
            # JSON knows no tuples. This one is the place and the reason of a skipped test.
            if isinstance(report.longrepr, list):
                report.longrepr = tuple(report.longrepr)
            self.reports[report.when] = report
        # dapple-run has found a failure that pytest does not know, such as a planned fault that did not come, or Python crashed.
        if run.returncode != exit_code and all(report.passed for report in self.reports.values()):
            self.reports.pop("teardown", None)

    def read(self, data: dict[str, Any]) -> Any:
        return self.item.config.hook.pytest_report_from_serializable(config=self.item.config, data=data)

    def report_of(self, when: str) -> Any:
        """The report of a step. The first one that the process did not get to is a failure."""
        if when in self.reports:
            return self.reports[when]
        end, self.end = self.end, ""
        data = {
            "$report_type": "TestReport", "nodeid": self.item.nodeid, "location": self.item.location, "keywords": {}, "when": when,
            "outcome": "failed" if end else "passed", "longrepr": end or None, "sections": [], "duration": 0, "user_properties": [],
        }
        return self.read(data)


# A test's name -> its scene. Empty in the process of a scene.
scenes: dict[str, Scene] = {}


def nothing() -> None:
    pass


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    if not runs_elsewhere(item):
        return
    scenes[item.nodeid] = Scene(item)
    # The steps of the test are those of the other process: here they do nothing, and have its reports.
    replaced: Any = item
    replaced.setup = replaced.runtest = replaced.teardown = nothing


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    outcome = yield
    # The end of a fixture of the session in this process may fail behind a scene.
    if item.nodeid in scenes and call.excinfo is None:
        outcome.force_result(scenes[item.nodeid].report_of(call.when))


def end_with_writer_of(pipe: int) -> None:
    """Lets the kernel end this process when no process can write to the pipe any more."""
    fcntl.fcntl(pipe, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(pipe, fcntl.F_SETSIG, signal.SIGTERM)
    fcntl.fcntl(pipe, fcntl.F_SETFL, os.O_ASYNC)
    # No signal comes if that was before.
    if select.select([pipe], [], [], 0)[0]:
        os.kill(os.getpid(), signal.SIGTERM)


class Writer:
    """In the process of a scene: writes each report at once, because the process may crash in the next step, and the exit code."""

    def __init__(self, config: pytest.Config, descriptors: str) -> None:
        self.config = config
        self.reports, pipe = map(int, descriptors.split())
        # Programs that the test starts are not the scene, even if they are pytest.
        for each in (self.reports, pipe):
            os.set_inheritable(each, False)
        # A signal that ends the first pytest does not reach this process.
        end_with_writer_of(pipe)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.write(self.config.hook.pytest_report_to_serializable(config=self.config, report=report))

    # Other plug-ins may change the code.
    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, Any, None]:
        yield
        self.write({EXIT_CODE: int(session.exitstatus)})

    def write(self, data: Any) -> None:
        os.write(self.reports, (json.dumps(data) + "\n").encode())


def pytest_configure(config: pytest.Config) -> None:
    global is_scene
    descriptors = os.environ.pop(SCENE, None)
    if descriptors is not None:
        is_scene = True
        config.pluginmanager.register(Writer(config, descriptors), "dapple_scene_writer")
