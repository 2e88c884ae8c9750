#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
"""migrate.py SOURCE DESTINATION URI CAPABILITY...: migrates a virtual machine between two QEMUs, which listen for QMP on
these sockets, and ends both. Prints "completed" if that is how it ends."""
import json
import socket
import sys
import time
from typing import Any


class Monitor:
    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        for _ in range(100):
            if self.socket.connect_ex(path) == 0:
                break
            time.sleep(0.1)
        else:
            sys.exit(f"{path}: no QEMU listens")
        self.lines = self.socket.makefile("r", encoding="utf-8")
        self.lines.readline()
        self.do("qmp_capabilities")

    def do(self, command: str, **arguments: Any) -> Any:
        self.socket.sendall(json.dumps({"execute": command, "arguments": arguments}).encode())
        for line in self.lines:
            answer = json.loads(line)
            if "error" in answer:
                sys.exit(f"{command}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]
        sys.exit(f"{command}: QEMU has ended")


def main() -> None:
    source_path, destination_path, uri, *capabilities = sys.argv[1:]
    source, destination = Monitor(source_path), Monitor(destination_path)
    for end in (source, destination):
        end.do("migrate-set-capabilities", capabilities=[{"capability": name, "state": True} for name in capabilities])
    destination.do("migrate-incoming", uri=uri)
    source.do("migrate-set-parameters", **{"max-bandwidth": 1 << 34})
    source.do("migrate", uri=uri)
    while (status := source.do("query-migrate"))["status"] in ("setup", "active", "device", "pre-switchover"):
        time.sleep(0.05)
    if status["status"] != "completed":
        sys.exit(f"{status['status']}: {status.get('error-desc', 'no reason given')}")
    print("completed")
    while destination.do("query-status")["status"] == "inmigrate":
        time.sleep(0.05)
    for end in (source, destination):
        end.do("quit")


main()
