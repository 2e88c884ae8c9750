# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
"""The description of the machine, of the commit and of the programs of others."""

import os
import platform
import re
import subprocess
from pathlib import Path

PEERS = ("libfabric-bin", "ucx-utils", "perftest", "libpmem1", "libibverbs1")


def version_of(package: str) -> str:
    done = subprocess.run(["dpkg-query", "-W", "-f=${Version}", package], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "absent"


def processor() -> str:
    found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found[1] if found else platform.machine()


def memory_gib() -> int:
    found = re.search(r"^MemTotal:\s*(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return round(int(found[1]) / (1 << 20)) if found else 0


def is_virtual() -> bool:
    return " hypervisor" in Path("/proc/cpuinfo").read_text()


def commit(root: Path) -> str:
    done = subprocess.run(["git", "-C", str(root), "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def describe(root: Path) -> dict[str, str]:
    kind = "virtual machine" if is_virtual() else "machine"
    return {
        "commit": commit(root),
        "machine": f"{kind}, {len(os.sched_getaffinity(0))} CPUs, {processor()}, {memory_gib()} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "peers": ", ".join(f"{package} {version_of(package)}" for package in PEERS),
    }
