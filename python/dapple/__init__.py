# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
"""dapple's programs and libraries, as files of this package.

    dapple.program("dapple-run")   the path of a program
    dapple.FOLDER                  bin, lib, libexec and share, as in the portable archive
"""

import os
import sys
from functools import partial
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "files"


def program(name: str) -> Path:
    """The path of dapple's program of this name."""
    path = FOLDER / "bin" / name
    if not path.is_file():
        raise FileNotFoundError(f"dapple has no program {name}")
    return path


def execute(name: str, words: list[str]) -> None:
    """Becomes dapple's program. Ends this process with 126 and one line if that fails."""
    path = FOLDER / "bin" / name
    try:
        os.execv(path, [name, *words])
    except OSError as error:
        print(f"{name}: {path} cannot be run: {error.strerror}", file=sys.stderr)
        sys.exit(126)


def main(name: str) -> None:
    """The command of this name. A link to it may have another one."""
    execute(name, sys.argv[1:])


# The commands that scripts/lib/wheel makes, if the archive has the program.
dapple_bw = partial(main, "dapple-bw")
dapple_info = partial(main, "dapple-info")
dapple_lat = partial(main, "dapple-lat")
dapple_run = partial(main, "dapple-run")
dapple_softroce = partial(main, "dapple-softroce")
dapple_test = partial(main, "dapple-test")
