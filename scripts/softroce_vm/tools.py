# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
"""The programs that softroce runs, and the packages that have them."""

import os
import shutil
import subprocess
from pathlib import Path

from .messages import Exit, Failure, say


def _packages() -> list[list[str]]:
    """The lines of the file packages: group, package, moment, tools."""
    lines = Path(__file__).with_name("packages").read_text().splitlines()
    return [line.split() for line in lines if line[:1] not in ("", "#")]


def needed_packages() -> list[str]:
    return sorted(package for group, package, *_ in _packages() if group == "vm")


def require_tools(wanted: str) -> None:
    """Prints a line for each missing tool of that moment, and then ends the program."""
    missing = False
    for _, package, moment, *tools in _packages():
        for tool in tools if moment == wanted else ():
            if not (os.access(tool, os.R_OK) if tool.startswith("/") else shutil.which(tool)):
                say(f"{tool} is missing; to install it: apt-get install {package}")
                missing = True
    if missing:
        raise SystemExit(Exit.CANNOT_START)


def static_busybox() -> Path:
    """The guest's first stage has no libraries, so busybox must be static."""
    for path in ("/usr/bin/busybox", "/bin/busybox", shutil.which("busybox")):
        if path and os.access(path, os.X_OK) and b"/ld-" not in Path(path).read_bytes()[:4096]:
            return Path(path)
    raise Failure("a static busybox is missing; to install it: apt-get install busybox-static")


def output_of(*command: str | Path, env: dict[str, str] | None = None) -> str:
    """The output of the command, even if that fails."""
    run = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return os.fsdecode(run.stdout)


def succeeds(*command: str | Path) -> bool:
    return subprocess.run(command, stdin=subprocess.DEVNULL).returncode == 0


def shell(script: str, *arguments: str | Path) -> bool:
    """Runs a pipeline of commands; true if all of them succeed."""
    return succeeds("bash", "-e", "-o", "pipefail", "-c", script, "softroce", *arguments)
