# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
"""@pytest.mark.dapple_fault("ibv_reg_mr", errno.ENOMEM): the next call of the verb in the test fails. dappledv_fault_next(3) plans it."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Generator
from typing import Any

import pytest

import dapple
from dapple import pytest_scene
from dapple.pytest_check import failure


def marks_of(item: pytest.Item) -> list[pytest.Mark]:
    """The marks of the test, after those of its class and module: the last fault of a verb replaces the others."""
    return [] if pytest_scene.runs_elsewhere(item) else list(item.iter_markers("dapple_fault"))[::-1]


def library() -> ctypes.CDLL:
    """libdapple, beside libibverbs, whose plug-in knows the faults."""
    ctypes.CDLL("libibverbs.so.1", mode=ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(str(dapple.FOLDER / "lib" / "libdapple.so.1"))


def plan(mark: pytest.Mark) -> None:
    """Plans the fault. Skips the test if no software device can have it."""
    if len(mark.args) != 2 or mark.kwargs or not isinstance(mark.args[0], str) or not isinstance(mark.args[1], int):
        pytest.fail('dapple_fault takes a verb and a number, such as dapple_fault("ibv_reg_mr", errno.ENOMEM)', pytrace=False)
    verb, error = mark.args
    try:
        code = library().dappledv_fault_next(verb.encode(), error)
    except OSError as error_of_loader:
        pytest.skip(f"no fault of {verb} can be planned: {error_of_loader}")
    if code == errno.EINVAL:
        pytest.fail(f"dapple_fault({verb!r}, {error}): dappledv_fault_next(3) does not know this verb or number", pytrace=False)
    if code == errno.EBUSY:
        pytest.skip(f"no fault of {verb} can be planned: the process opened a device before pytest had found all tests")
    if code != 0:
        pytest.skip(f"no fault of {verb} can be planned: there is no software device ({os.strerror(code)})")


def pytest_collection_finish(session: pytest.Session) -> None:
    """The devices that tests open from now on look for faults, in whichever order the tests run."""
    if any(marks_of(item) for item in session.items):
        try:
            library().dappledv_fault_clear()
        except OSError:
            pass  # plan() says so


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    for mark in marks_of(item):
        plan(mark)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    if call.when == "call" and call.excinfo is None:
        for mark in marks_of(item):
            if library().dappledv_fault_pending(mark.args[0].encode()):
                call.excinfo = failure(f"the planned fault of {mark.args[0]} never came: no call of this process has got to it")
    yield


# Before the fixtures end, which may call the verb, too.
@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    if marks_of(item):
        try:
            library().dappledv_fault_clear()
        except OSError:
            pass
