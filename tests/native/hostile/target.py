# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
"""The victim's process, and what a test knows of it."""

import json
import subprocess
import sys
import time
from typing import Any

import by_hand

DEADLINE = 30.0


def check(good: bool, what: str) -> None:
    if not good:
        sys.exit(f"FAILED: {what}")


class Target:
    def __init__(self, run: str, victim: str, address: str) -> None:
        self.sender = by_hand.Sender(address)
        self.process = subprocess.Popen([run, victim, address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.qpn: dict[str, int] = {}
        self.peer_writes_anything = False
        self.datagrams = 0  # good ones that were sent, without the markers
        self.markers = 0
        for line in iter(self.answer, "ready"):
            words = line.split()
            if words[0] == "region":
                self.region, self.rkey, self.size = int(words[1], 16), int(words[2], 16), int(words[3])
            else:
                self.qpn[words[0]] = int(words[1], 16)

    def answer(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if line == "":
            sys.exit(f"FAILED: the victim has ended with {self.process.wait(DEADLINE)}")
        return line.strip()

    def ask(self, command: str) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.answer()

    def again(self, name: str) -> None:
        self.ask(f"again {name}")

    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads(self.ask("stat"))
        check(state["intact"] == 1, "bytes around the region have changed")
        for name in self.qpn:
            check(state[name]["wrong"] == 0, f"{name} has written outside of a receive: {state}")
            check(state[name]["unknown"] == 0 or self.peer_writes_anything, f"{name} has received bytes that nobody has sent: {state}")
        return state

    def settled(self, datagrams: int) -> dict[str, Any]:
        """The state after all packets so far, of which so many are good datagrams. One socket gets them in order, so a
        good one at the end has come when all others have."""
        payload, pad = by_hand.message(8)
        self.sender.send(by_hand.bth(by_hand.UD << 5 | by_hand.SEND_ONLY, self.qpn["ud"], pad=pad) + by_hand.deth() + payload)
        self.markers += 1
        wanted = datagrams + self.markers
        end = time.monotonic() + DEADLINE
        while (state := self.state())["ud"]["good"] < wanted and time.monotonic() < end:
            time.sleep(0.001)
        check(state["ud"]["good"] == wanted, f"{state['ud']['good']} datagrams instead of {wanted}")
        return state

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        code = self.process.wait(DEADLINE)
        check(code == 0, f"the victim has ended with {code}")
