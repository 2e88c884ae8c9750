# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
"""Network namespaces for two programs: one namespace for both, or two with a veth pair between them."""

import os
import re
import subprocess
import time
from dataclasses import dataclass

VETH_ADDRESSES = ("10.79.0.1", "10.79.0.2")
NETNS_PATIENCE_S = 5
# A signal to this program ends the command, too.
ENDS_WITH_US = ("setpriv", "--pdeathsig", "KILL")


class Failed(Exception):
    """The message is one line for people."""


@dataclass(frozen=True)
class Namespace:
    """A network namespace, named by a process that keeps it."""

    keeper: subprocess.Popen[bytes]

    def command(self, words: list[str]) -> list[str]:
        return [*ENDS_WITH_US, "nsenter", f"--net=/proc/{self.keeper.pid}/ns/net", "--", *words]

    def run(self, *words: str) -> None:
        subprocess.run(self.command(list(words)), check=True)

    def listens(self, port: int) -> bool:
        table = subprocess.run(self.command(["cat", "/proc/net/tcp", "/proc/net/tcp6"]), capture_output=True, text=True, check=True)
        return re.search(rf": [0-9A-F]+:{port:04X} \S+ 0A ", table.stdout) is not None

    def end(self) -> None:
        self.keeper.kill()
        self.keeper.wait()


@dataclass(frozen=True)
class Place:
    """Where a pair of programs runs: the server in the first namespace, the client in the second."""

    sides: tuple[Namespace, Namespace]
    addresses: tuple[str, str]

    def end(self) -> None:
        for side in set(self.sides):
            side.end()


def make_namespace() -> Namespace:
    keeper = subprocess.Popen([*ENDS_WITH_US, "unshare", "--net", "sleep", "infinity"])
    own = os.readlink("/proc/self/ns/net")
    end = time.monotonic() + NETNS_PATIENCE_S
    while time.monotonic() < end:
        try:
            if os.readlink(f"/proc/{keeper.pid}/ns/net") != own:
                return Namespace(keeper)
        except FileNotFoundError:
            break
        time.sleep(0.01)
    keeper.kill()
    raise Failed("unshare made no network namespace")


def one_host() -> Place:
    """A namespace with only lo."""
    side = make_namespace()
    side.run("ip", "link", "set", "lo", "up")
    return Place((side, side), ("127.0.0.1", "127.0.0.1"))


def veth_pair(mtu: int) -> Place:
    sides = (make_namespace(), make_namespace())
    sides[0].run("ip", "link", "add", "v0", "mtu", str(mtu), "type", "veth", "peer", "name", "v1", "mtu", str(mtu),
                 "netns", str(sides[1].keeper.pid))
    for number, side in enumerate(sides):
        side.run("ip", "addr", "add", f"{VETH_ADDRESSES[number]}/24", "dev", f"v{number}")
        side.run("ip", "link", "set", "lo", "up")
        side.run("ip", "link", "set", f"v{number}", "up")
    for number, side in enumerate(sides):
        await_carrier(side, f"v{number}")
    return Place(sides, VETH_ADDRESSES)


def await_carrier(side: Namespace, netdev: str) -> None:
    """The kernel tells of a new link's carrier up to a second late, and a port is down until then."""
    for _ in range(500):
        shown = subprocess.run(side.command(["ip", "link", "show", netdev]), capture_output=True, text=True, check=True)
        if "state UP" in shown.stdout:
            return
        time.sleep(0.01)
    raise Failed(f"{netdev} does not come up")
