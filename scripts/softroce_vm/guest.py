# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
"""One guest: its QEMU, the relays of its output, and its answers in the control folder."""

import os
import re
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from subprocess import DEVNULL, Popen, TimeoutExpired

from .control import write_control
from .messages import Exit, Failure, say
from .options import Options

# A guest that has not started its command after this time is lost: emulation on a busy machine needs a few seconds.
BOOT_LIMIT_S = 180
CONSOLE_LINES = 30


class GuestFailure(Failure):
    """The run ends because of these guests, whose logs tell more."""

    def __init__(self, message: str, code: int, guests: Sequence["Guest"], at_boot: bool = False) -> None:
        super().__init__(message, code)
        self.guests = guests
        self.at_boot = at_boot


class Relay(threading.Thread):
    """Copies what is written to `input` to our stdout or stderr. Each line begins with the prefix, if there is one. The
    relay ends when all writers have, or when nobody reads our stream any more. The process may end before it."""

    def __init__(self, target: int, prefix: bytes) -> None:
        super().__init__(daemon=True)
        self._source, self.input = os.pipe()
        self._target = target
        self._prefix = prefix
        self.is_unheard = False

    def run(self) -> None:
        try:
            if self._prefix:
                with open(self._source, "rb") as lines:
                    # One write for each line: the other guest's must not begin amid it.
                    for line in lines:
                        self._write(self._prefix + line.removesuffix(b"\n") + b"\n")
            else:
                while data := os.read(self._source, 1 << 16):
                    self._write(data)
        except OSError:
            self.is_unheard = True

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._target, data) :]


class Guest:
    """`folder` is for its files. `command` is QEMU's without the arguments that each guest has for itself."""

    def __init__(self, number: int, folder: Path, options: Options, command: Sequence[str]) -> None:
        self.number = number
        self._control = folder / "control"
        self._console = folder / "console"
        self._log = folder / "qemu.log"
        write_control(self._control, number, options)
        self._console.touch()
        prefix = b"%d| " % number if options.guests == 2 else b""
        self._relays = [Relay(1, prefix), Relay(2, prefix)]
        own = ["-name", f"softroce{number}", "-serial", f"file:{self._console}", "-device", "virtio-serial-pci"]
        for name, relay in zip(("out", "err"), self._relays):
            own += ["-add-fd", f"fd={relay.input},set={relay.input}"]
            own += ["-chardev", f"file,id={name},path=/dev/fdset/{relay.input},append=on"]
            own += ["-device", f"virtserialport,chardev={name},name={name}"]
        shares = {"root": Path("/"), "control": self._control}
        shares |= {f"share{i}": share for i, share in enumerate(options.share)}
        if options.guests == 2:
            shares["wire"] = folder.parent / "shared"
            wire = f"stream,id=wire,addr.type=unix,addr.path={folder.parent}/wire"
            own += ["-netdev", f"{wire},server={'on' if number == 1 else 'off'}"]
            own += ["-device", f"virtio-net-pci,netdev=wire,mac=52:54:00:09:00:0{number},romfile="]
        for tag, path in shares.items():
            # A comma separates QEMU's options.
            place = str(path).replace(",", ",,") + (",readonly=on" if tag == "root" else "")
            own += ["-virtfs", f"local,mount_tag={tag},security_model=none,multidevs=remap,path={place}"]
        command = ["setpriv", "--pdeathsig", "KILL", *command, *own]
        with self._log.open("wb") as log:
            self._qemu = Popen(command, stdin=DEVNULL, stdout=log, stderr=log, pass_fds=[r.input for r in self._relays])
        for relay in self._relays:
            os.close(relay.input)
            relay.start()

    def _answer(self, name: str) -> str:
        return (self._control / name).read_text(errors="replace").strip()

    @property
    def has_begun(self) -> bool:
        return self._answer("started") != ""

    @property
    def is_alive(self) -> bool:
        return self._qemu.poll() is None

    def check(self, elapsed_s: float) -> int | None:
        """The exit code of its command, if that has ended. Ends the run if the guest cannot go on."""
        is_alive = self.is_alive  # before its answers, because it may answer and end meanwhile
        if code := self._answer("code"):
            return int(code)
        died = f"guest {self.number} died before its command ended"
        if reason := self._answer("failed"):
            raise GuestFailure(f"guest {self.number}: {reason}", Exit.CANNOT_START, [self])
        if not self.has_begun:
            if self._qemu.returncode:
                raise Failure(f"QEMU failed: {' '.join(self._log.read_text(errors='replace').splitlines()[-1:])}")
            if not is_alive or elapsed_s >= BOOT_LIMIT_S:
                raise GuestFailure(died, Exit.GUEST_DIED, [self], at_boot=True)
        elif not is_alive:
            self.settle()
            raise GuestFailure(died, Exit.GUEST_DIED, [self])
        elif any(relay.is_unheard for relay in self._relays):
            raise SystemExit(Exit.NO_READER)
        return None

    def settle(self) -> None:
        """Lets a guest that has finished power off, and its output drain, within five seconds each."""
        try:
            self._qemu.wait(5)
        except TimeoutExpired:
            return
        for relay in self._relays:
            relay.join(5)

    def end(self) -> None:
        """Harmless if it has ended already."""
        self._qemu.kill()
        self._qemu.wait()
        for relay in self._relays:
            relay.join(1)

    def show_logs(self) -> None:
        """Prints QEMU's messages and the end of the console on stderr, without the terminal's control characters. A long
        stack trace may push the reason of a panic out of it; then that comes first."""
        print(self._log.read_text(errors="replace"), end="", file=sys.stderr)
        if lines := self._console.read_text(errors="replace").splitlines():
            say(f"the end of guest {self.number}'s console:")
            reasons = [line for line in lines[:-CONSOLE_LINES] if re.search("Kernel panic|BUG:|Oops", line)]
            for line in reasons[:5] + lines[-CONSOLE_LINES:]:
                print(re.sub(r"[\0-\x08\x0b-\x1f]", "", line), file=sys.stderr, flush=True)
