# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
"""The control folder of a guest: its configuration (config), its mounts (shares) and its command (run.sh). The guest
answers by writing to the files started, failed and code."""

import os
import re
from pathlib import Path
from shlex import join, quote

from .messages import program
from .options import Options, kept_tree

# Variables that have a meaning only on the host, that point to places that are new in the guest, or that belong to the
# bash that runs run.sh.
HOST_ONLY = """TMPDIR TMP TEMP TERM XDG_RUNTIME_DIR DISPLAY WAYLAND_DISPLAY XAUTHORITY SSH_AUTH_SOCK SSH_CONNECTION
    SSH_CLIENT SSH_TTY DBUS_SESSION_BUS_ADDRESS BASH_ENV ENV OLDPWD
    _ SHLVL SHELLOPTS BASHOPTS BASH_VERSINFO UID EUID PPID""".split()
PATHS = "/usr/local/sbin /usr/local/bin /usr/sbin /usr/bin /sbin /bin".split()


def write_control(folder: Path, guest: int, options: Options) -> None:
    config = {"guest": guest, "peer_guest": 3 - guest, "guests": options.guests, "hostname": f"softroce{guest}"}
    config |= {"address": f"10.9.0.{guest}", "address6": f"fd09::{guest}"}
    config |= {"device": options.device, "kept": kept_tree(options.folder) or ""}
    files = {
        "config": [f"{name}={quote(str(value))}" for name, value in config.items()],
        "shares": [f"share{i} {share}" for i, share in enumerate(options.share)],
        "run.sh": _run_script(guest, options),
    }
    # The answers exist from the beginning, because QEMU makes new files for a guest only if /proc is mounted, which a bare
    # chroot may lack.
    files |= {"started": [], "failed": [], "code": []}
    folder.mkdir(parents=True)
    for file, lines in files.items():
        (folder / file).write_bytes(os.fsencode("".join(f"{line}\n" for line in lines)))


def _run_script(guest: int, options: Options) -> list[str]:
    command = options.commands[guest - 1]
    complaint = f"{program()}: {command[0]}: no such command in the guest, where /tmp and /run are fresh"
    # The caller's name of the folder may contain a link that the guest lacks.
    named = options.environment.get("PWD", "")
    is_right = named.startswith("/") and Path(named).resolve() == options.folder
    folder = named if is_right else str(options.folder)
    return [
        *(f"export {name}={quote(value)}" for name, value in _environment(guest, options).items()),
        "ulimit -l unlimited",
        f"cd {quote(folder)} 2>/dev/null || cd {quote(str(options.folder))} || exit 126",
        f"type -P -- {quote(command[0])} >/dev/null || {{ printf '%s\\n' {quote(complaint)} >&2; exit 127; }}",
        f"exec -- {join(command)}",
    ]


def _environment(guest: int, options: Options) -> dict[str, str]:
    # The names of exported functions have other characters.
    passed = {name for name in options.environment if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name)}
    variables = {name: options.environment[name] for name in passed.difference(HOST_ONLY)}
    paths = variables.get("PATH", "").split(":")
    variables["PATH"] = ":".join([*paths, *(path for path in PATHS if path not in paths)]).removeprefix(":")
    variables = {"HOME": "/root"} | variables | {"TERM": "dumb", "SOFTROCE_GUEST": str(guest)}
    variables |= {"SOFTROCE_ADDRESS": f"10.9.0.{guest}", "SOFTROCE_ADDRESS6": f"fd09::{guest}"}
    if options.device != "none":
        variables["SOFTROCE_DEVICE"] = f"{options.device}0"
    if options.guests == 2:
        variables |= {"SOFTROCE_PEER": f"10.9.0.{3 - guest}", "SOFTROCE_PEER6": f"fd09::{3 - guest}"}
        variables["SOFTROCE_SHARED"] = "/run/softroce/shared"
    return variables | dict(options.env)
