# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
"""Messages on stderr, and softroce's own exit codes."""

import sys
from enum import IntEnum
from pathlib import Path


class Exit(IntEnum):  # Every other code is the command's.
    USAGE = 2
    TIMED_OUT = 124
    GUEST_DIED = 125
    CANNOT_START = 126
    NO_COMMAND = 127
    NO_READER = 141  # as of a command that writes to a closed pipe: 128 + SIGPIPE


class Failure(Exception):
    """Ends the program with a line on stderr: the reason, and the remedy where there is one."""

    def __init__(self, message: str, code: int = Exit.CANNOT_START) -> None:
        super().__init__(message)
        self.code = code


def ensure(condition: object, message: str, code: int = Exit.CANNOT_START) -> None:
    if not condition:
        raise Failure(message, code)


def program() -> str:
    """The name by which the user called us: softroce, or dapple-softroce of the package."""
    return Path(sys.argv[0]).name


def say(message: str) -> None:
    print(f"{program()}: {message}", file=sys.stderr, flush=True)
