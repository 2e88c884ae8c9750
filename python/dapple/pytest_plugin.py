# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
"""pytest --dapple: every test, and every program that a test starts, has dapple's software devices.

Libraries can be loaded only when a process starts, so pytest starts once more, under dapple-run.

    pytest --dapple                        the devices
    pytest --dapple-check                  a test fails if the check reports an error in it
    pytest --dapple-run='--as connectx7'   words for dapple-run
    @pytest.mark.dapple_fault("ibv_reg_mr", errno.ENOMEM)
                                           the next call of the verb in the test fails
    @pytest.mark.dapple_scene("--as connectx7 --faults drop=0.01")
                                           the test runs in a process of its own, with these words for dapple-run

pytest 6.2 and Python 3.9 run it: what later ones have brought stands only in annotations.
"""

from __future__ import annotations

import os
import shlex

import pytest

import dapple
from dapple import pytest_check, pytest_fault, pytest_scene

# Set in the second pytest, so that it does not start a third.
STARTED = "DAPPLE_PYTEST"
# The options of dapple-run that take the next word.
WITH_VALUE = ("--as", "--faults", "--gids", "--hang", "--in", "--json", "--junit", "--sarif", "--seed", "--timeout", "--trace")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("dapple")
    group.addoption("--dapple", action="store_true", help="run the tests with dapple's software RDMA devices")
    group.addoption("--dapple-check", action="store_true", help="--dapple, and let mistakes in the use of a device fail the test")
    group.addoption("--dapple-run", metavar="WORDS", default="", help="--dapple, with these words for dapple-run, such as --as connectx7")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "dapple_fault(verb, error): with --dapple, the next call of the verb in the test fails with this errno"
    )
    config.addinivalue_line(
        "markers", "dapple_scene(words): with --dapple, the test runs in a process of its own, with these words for dapple-run"
    )
    config.pluginmanager.register(pytest_check, "dapple_check")
    config.pluginmanager.register(pytest_fault, "dapple_fault")
    if STARTED in os.environ:
        config.pluginmanager.register(pytest_scene, "dapple_scene")


def words_for_dapple_run(option: str) -> list[str]:
    """The words of --dapple-run. Another program, or the version, would end well without a test."""
    try:
        words = shlex.split(option)
    except ValueError as error:
        raise pytest.UsageError(f"--dapple-run: {option}: {error}") from None
    rest = iter(words)
    for word in rest:
        if word in ("-h", "--help", "--version", "--") or not word.startswith("-"):
            raise pytest.UsageError(f"--dapple-run: with {word}, dapple-run runs no test")
        if word in WITH_VALUE and next(rest, None) is None:
            raise pytest.UsageError(f"--dapple-run: {word} needs a value")
    return words


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    options = early_config.known_args_namespace
    if not (options.dapple or options.dapple_check or options.dapple_run) or STARTED in os.environ:
        return
    # All workers of pytest-xdist would write to one file of records.
    if options.dapple_check and (getattr(options, "numprocesses", None) or getattr(options, "tx", None)):
        raise pytest.UsageError("--dapple-check cannot tell which of several workers makes a mistake: leave out -n")
    words = words_for_dapple_run(options.dapple_run)
    if options.dapple_check:
        words.append("--check")
    # pytest already catches the output, in files that the next program would inherit.
    capture = early_config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.suspend_global_capture(in_=True)
    os.environ[STARTED] = "1"
    arguments = [str(word) for word in early_config.invocation_params.args]
    dapple.execute("dapple-run", [*words, "--", *pytest_scene.this_pytest_with(arguments)])


# Before the fixtures, which may open devices.
@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if STARTED not in os.environ and item.get_closest_marker("dapple_scene") is not None:
        pytest.skip("a scene needs pytest --dapple")
