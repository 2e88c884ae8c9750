# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
"""The version of dapple."""

import re
from pathlib import Path

from .messages import Failure


def version() -> str:
    """CMake installs the file; in the source tree the version stands in CMakeLists.txt alone."""
    installed = Path(__file__).with_name("version")
    if installed.exists():
        return installed.read_text().strip()
    source = Path(__file__).resolve().parents[2] / "CMakeLists.txt"
    text = source.read_text() if source.exists() else ""
    number = re.search(r"^project\(dapple VERSION ([0-9.]+)", text, re.MULTILINE)
    suffix = re.search(r'^set\(DAPPLE_VERSION_SUFFIX "(.*)"\)$', text, re.MULTILINE)
    if number is None or suffix is None:
        raise Failure(f"{installed} is missing; install dapple again")
    return number[1] + suffix[1]
