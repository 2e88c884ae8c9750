# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
"""Runs the guests to their end and finds the exit code."""

import tempfile
import time
from collections.abc import Sequence
from math import inf
from pathlib import Path

from .guest import Guest, GuestFailure
from .messages import Exit, say
from .options import Options

TICK_S = 0.1
# With two guests: the time that the other guest has after one command failed.
GRACE_S = 10


def run_guests(options: Options, commands: Sequence[Sequence[str]]) -> int:
    """`commands` are QEMU's, by guest. Returns the exit code."""
    retries = 1
    while True:
        guests: list[Guest] = []
        with tempfile.TemporaryDirectory(prefix="softroce.", dir="/tmp", ignore_cleanup_errors=True) as scratch:
            try:
                return _run_once(guests, Path(scratch), options, commands)
            except GuestFailure as failure:
                # Under emulation a kernel is rarely lost at boot. Starting again is safe if no command has begun.
                if not failure.at_boot or retries == 0 or any(guest.has_begun for guest in guests):
                    for guest in failure.guests:
                        guest.show_logs()
                    raise
                say(f"guest {failure.guests[0].number} was lost at boot; trying once more")
                retries -= 1


def _run_once(guests: list[Guest], scratch: Path, options: Options, commands: Sequence[Sequence[str]]) -> int:
    try:
        (scratch / "shared").mkdir()
        for number, command in enumerate(commands, 1):
            guests.append(Guest(number, scratch / str(number), options, command))
            # The QEMU of the first guest makes the socket that is the wire.
            limit = time.monotonic() + (30 if number < len(commands) else 0)
            while guests[0].is_alive and not (scratch / "wire").is_socket() and time.monotonic() < limit:
                time.sleep(TICK_S)
        return _watch(guests, options.timeout)
    finally:
        for guest in guests:
            guest.end()


def _watch(guests: Sequence[Guest], timeout: int | None) -> int:
    """Returns the exit code when the commands ended, or one of them failed and the other one's grace is over."""
    begin = time.monotonic()
    grace_end = inf
    while True:
        now = time.monotonic()
        codes = [guest.check(now - begin) for guest in guests]
        if any(codes):
            grace_end = min(grace_end, now + GRACE_S)
        if None not in codes or now >= grace_end:
            break
        if timeout and now - begin >= timeout:
            raise GuestFailure(f"timed out after {timeout} s", Exit.TIMED_OUT, guests)
        time.sleep(TICK_S)
    for guest, code in zip(guests, codes):
        if code is None:
            say(f"guest {guest.number} was still running after the other one failed, and was ended")
        else:
            guest.settle()
    return next((code for code in codes if code), 0)
