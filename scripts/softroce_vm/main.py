# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
"""The program: from the command line to the exit code."""

import os
import resource
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import NoReturn

from .cache import SYSTEM_CACHE, Cache
from .initramfs import prepare_image
from .messages import Exit, Failure, ensure, program, say
from .options import Options, parse_options
from .qemu import choose_accel, qemu_command
from .run import run_guests
from .tools import needed_packages, require_tools
from .version import version

SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


def main() -> int:
    environment = _initial_environment()
    # These variables are for the command; softroce's own tools must not see them.
    for name in ("LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "BASH_ENV"):
        os.environ.pop(name, None)
    os.environ["LC_ALL"] = "C"
    # An empty entry would be the working folder.
    os.environ["PATH"] = (os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin").removeprefix(":")
    for number in SIGNALS:
        # A signal that the caller ignores, as nohup does, stays ignored.
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _end)
    try:
        return _run(parse_options(sys.argv[1:], environment))
    except Failure as failure:
        say(str(failure))
        return failure.code
    except BrokenPipeError:
        os._exit(Exit.NO_READER)
    except OSError as error:
        say(f"{error.filename or 'the system'}: {error.strerror}")
        return Exit.CANNOT_START


def _initial_environment() -> dict[str, str]:
    """In the locale C, Python changes LC_CTYPE for itself."""
    file = Path("/proc/self/environ")
    settings = os.fsdecode(file.read_bytes()).split("\0") if file.exists() else []
    return {name: value for name, equals, value in (text.partition("=") for text in settings) if equals} or dict(os.environ)


def _end(number: int, _: FrameType | None) -> None:
    """Everything is cleaned up on the way out. Another signal must not disturb that."""
    for other in SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    raise SystemExit(128 + number)


def _run(options: Options) -> int:
    if options.help:
        usage = Path(__file__).with_name("usage").read_bytes().partition(b"\n\n")[2]
        os.write(1, usage.replace(b"PROGRAM", os.fsencode(program())))
    elif options.version:
        print(version(), flush=True)
    elif options.packages:
        print(*needed_packages(), sep="\n", flush=True)
    elif options.native:
        _run_native(options)
    else:
        return _run_virtual(options)
    return 0


def _run_native(options: Options) -> NoReturn:
    """On this machine, with this machine's RDMA device."""
    devices = sorted(path.name for path in Path("/sys/class/infiniband").glob("*"))
    ensure(devices, "this machine has no RDMA device; leave out --native to use a virtual machine")
    has_nodes = any(Path("/dev/infiniband").glob("uverbs*"))
    ensure(has_nodes, f"this machine has {devices[0]}, but no /dev/infiniband/uverbs* (module ib_uverbs)")
    command = (f"timeout -k 5 {options.timeout}".split() if options.timeout else []) + options.commands[0]
    # Python ignores these, and the command would inherit that.
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    try:
        os.execvpe(command[0], command, options.environment | dict(options.env) | {"SOFTROCE_DEVICE": devices[0]})
    except FileNotFoundError:
        raise Failure(f"{command[0]}: no such command", Exit.NO_COMMAND) from None


def _run_virtual(options: Options) -> int:
    machine = os.uname().machine
    ensure(machine == "x86_64", f"this machine is {machine}; softroce boots x86_64 kernels only")
    require_tools("run")
    # QEMU needs /proc to make or change files for a guest. A bare chroot may lack it, and much works without it.
    if not os.path.exists("/proc/self/fd"):
        is_enough = not options.share and options.guests == 1
        ensure(is_enough, "--share and --guests 2 need /proc; to mount it: mount -t proc proc /proc")
        say("without /proc mounted here, the command can write to /tmp, /run and /dev/shm only")
    # QEMU may abort; its core dump would be left in the caller's folder.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    cache = SYSTEM_CACHE if options.system else Cache.of_user(options.environment)
    if options.system:
        os.umask(0o022)
    images = [prepare_image(cache, version, options.device) for version in options.kernels]
    accels = [choose_accel(cache, image, options.accel) for image in images]
    if options.prepare:
        return 0
    # A guest gets two CPUs if it is alone, because both ends may poll, and on one CPU each message would cost a time slice.
    # Under emulation 7.2 was seen to crash with two.
    is_small = options.guests == 2 or (accels[0], options.kernels[0]) == ("tcg", "7.2")
    cpus = ["-smp", str(options.cpus or (1 if is_small else 2))]
    return run_guests(options, [qemu_command(*each, options.memory) + cpus for each in zip(images, accels)])
