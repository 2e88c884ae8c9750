# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
"""The emulator: the part of its command line that all starts share, and the choice between KVM and emulation."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from .cache import Cache
from .initramfs import Image
from .messages import say
from .tools import output_of

# The old PIT is off: on a busy machine a kernel that measures its TSC by the PIT, and not by the HPET, may compute a tenth
# of the real value.
MACHINE = "-machine pc,pit=off -nodefaults -no-user-config -display none -no-reboot -bios /usr/share/qemu/qboot.rom"
# QEMU's emulation of `rep movsb` moves single bytes. A kernel with erms or fsrm copies with it, so rxe would tear aligned
# words that a remote write brings, and other programs would see that. In Debian 12's QEMU the emulation of `cmpxchg16b`
# leaves parts of an address in the flags: a kernel, whose allocator uses it, dies of a double fault if an interrupt comes
# at that moment.
CPU = "max,-erms,-fsrm,-cx16"
KERNEL_ARGUMENTS = """console=ttyS0 quiet panic=-1 mitigations=off nokaslr cryptomgr.notests tsc=reliable no_timer_check
    random.trust_cpu=on net.ifnames=0""".split()


def qemu_command(image: Image, accel: str, memory: int, *kernel_arguments: str) -> list[str]:
    # By the HPET the kernel computes three quarters of the TSC's rate, because emulation is slow to read both: a clock
    # based on that TSC runs ahead.
    clock = ["clocksource=hpet"] if accel == "tcg" else []
    kernel = ["-kernel", f"{image.kernel.folder}/vmlinux", "-initrd", str(image.initramfs)]
    kernel += ["-append", " ".join([*KERNEL_ARGUMENTS, *clock, *kernel_arguments])]
    return ["qemu-system-x86_64", *MACHINE.split(), "-accel", accel, "-cpu", CPU, "-m", str(memory), *kernel]


def choose_accel(cache: Cache, image: Image, wanted: str) -> str:
    """kvm or tcg, for auto, kvm or tcg. A /dev/kvm that opens proves nothing: inside some virtual machines kernels do not
    boot with it. So one short boot decides. The result is kept until this machine reboots or the kernel changes, beside
    the kernel, or in the user's own folder if that is not writable."""
    if wanted != "auto":
        return wanted
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    boot = Path("/proc/sys/kernel/random/boot_id")
    name = f"kvm-{image.kernel.release}-{boot.read_text().strip()}" if boot.exists() else None
    answers = [place / name for place in (image.kernel.folder, cache.folder / image.kernel.version) if name]
    for answer in answers:
        if answer.exists():
            return answer.read_text().strip()
    say("testing whether KVM works here")
    with tempfile.NamedTemporaryFile(prefix="softroce.", dir="/tmp") as console:
        command = qemu_command(image, "kvm", 512, "softroce.probe")
        # A signal to this program kills timeout, and QEMU must not outlive it.
        command = ["timeout", "-k", "1", "15", "setpriv", "--pdeathsig", "KILL", *command]
        output_of(*command, "-serial", f"file:{console.name}")
        accel = "kvm" if b"softroce: probe passed" in Path(console.name).read_bytes() else "tcg"
    for answer in answers:
        with suppress(OSError):
            answer.parent.mkdir(parents=True, exist_ok=True)
            for old in answer.parent.glob("kvm-*"):
                old.unlink(missing_ok=True)
            new = answer.with_name(f"{answer.name}.new.{os.getpid()}")
            new.write_text(f"{accel}\n")
            new.rename(answer)
            break
    return accel
