# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
"""Takes the ELF kernel out of a bzImage. QEMU starts that directly (PVH), which under emulation saves the seconds in which
the kernel would unpack itself. The set-up header holds the payload's place (Linux x86 boot protocol 2.08)."""

import struct
import subprocess
from pathlib import Path

from .messages import ensure

FORMATS = {b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zstd", b"\x1f\x8b": "gzip", b"\x02\x21\x4c\x18": "lz4"}


def extract_vmlinux(image: Path, result: Path) -> None:
    data = image.read_bytes()
    ensure(len(data) > 0x260 and data[0x202:0x206] == b"HdrS", f"{image}: not a bzImage")
    (protocol,) = struct.unpack_from("<H", data, 0x206)
    ensure(protocol >= 0x208, f"{image}: its boot protocol is older than 2.08")
    begin, length = struct.unpack_from("<II", data, 0x248)
    begin += ((data[0x1F1] or 4) + 1) * 512
    payload = data[begin : begin + length]
    ensure(len(payload) == length, f"{image}: it is truncated")
    tool = next((tool for magic, tool in FORMATS.items() if payload.startswith(magic)), "")
    ensure(tool, f"{image}: its payload is compressed in an unknown way")
    # The kernel's build appends the unpacked size, which gzip already has in its trailer.
    packed = payload if tool == "gzip" else payload[:-4]
    with result.open("w+b") as elf:
        unpacked = subprocess.run((tool, "-qdc"), input=packed, stdout=elf)
        ensure(unpacked.returncode == 0, f"{image}: {tool} could not unpack its payload")
        elf.seek(0)
        ensure(elf.read(4) == b"\x7fELF", f"{image}: its payload is not an ELF kernel")
