# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
"""The image that a guest boots: a kernel, and the initramfs with busybox, the two guest stages and the modules."""

import hashlib
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from .cache import Cache, new_folder
from .kernel import Kernel, prepare_kernel
from .messages import ensure
from .siw import build_siw
from .tools import output_of, require_tools, shell, static_busybox

HERE = Path(__file__).parent
# The modules of each guest; modprobe finds their dependencies and order. A kernel may lack those with a question mark.
BASE_MODULES = "virtio_pci 9pnet_virtio 9p overlay virtio_console dummy veth virtio_net"
# rxe of 6.1 asks the crypto layer for "crc32" when a link is added, so no dependency names crc32_generic; newer kernels
# lack that module. siw asks it for "crc32c" in the same way.
RDMA_MODULES = {"rxe": "?crc32_generic rdma_rxe rdma_ucm ib_umad", "siw": "?crc32c_generic siw rdma_ucm ib_umad"}
UNPACKERS = {".ko": "cat", ".ko.xz": "xz -dc", ".ko.zst": "zstd -qdc"}


@dataclass(frozen=True)
class Image:
    kernel: Kernel
    initramfs: Path


def prepare_image(cache: Cache, version: str, device: str) -> Image:
    """Gets it from the cache, or makes it. A guest without a device uses that of rxe, and loads none of rxe's modules."""
    device = "rxe" if device == "none" else device
    kernel = prepare_kernel(cache, version, device)
    if device == "siw":
        cache.make_once(version, kernel.siw_module, lambda: build_siw(kernel))
    image = Image(kernel, _path(cache, kernel, device))
    cache.make_once(version, image.initramfs, lambda: _build(image, device))
    with suppress(OSError):
        image.initramfs.touch()
    return image


def _path(cache: Cache, kernel: Kernel, device: str) -> Path:
    """If the kernel is the system's and the initramfs' sources have changed since, it is in the user's own folder."""
    sources = [static_busybox(), HERE / "initramfs.py", HERE / "guest-init", HERE / "guest-stage2"]
    sources += [kernel.siw_module] if device == "siw" else []
    key = hashlib.sha256(b"".join(hashlib.sha256(path.read_bytes()).digest() for path in sources)).hexdigest()[:16]
    path = kernel.folder / ("initramfs-" + ("siw-" if device == "siw" else "") + key)
    return path if path.exists() else cache.folder / kernel.version / path.name


def _build(image: Image, device: str) -> None:
    require_tools("build")
    folder = image.initramfs.parent
    folder.mkdir(exist_ok=True)
    with new_folder(folder, "new-initramfs") as new:
        root = new / "root"
        for place in ("bin", "proc", "sys", "dev", "modules", "host", "upper", "root"):
            (root / place).mkdir(parents=True)
        _add_modules(image.kernel, BASE_MODULES, root / "modules", "base")
        _add_modules(image.kernel, RDMA_MODULES[device], root / "modules", "rdma")
        shutil.copy(static_busybox(), root / "bin/busybox")
        (root / "init").write_text("#!/bin/busybox sh\n" + (HERE / "guest-init").read_text())
        (root / "init").chmod(0o755)
        shutil.copyfile(HERE / "guest-stage2", root / "stage2")
        pack = 'cd "$1" && find . | bin/busybox cpio -o -H newc -R 0:0 2>/dev/null | gzip -1 >"$2"'
        ensure(shell(pack, root, new / "image"), "cannot build the initramfs")
        (new / "image").rename(image.initramfs)
    # Removes those of older versions of softroce; each start touches the one that it uses.
    for path in folder.glob("initramfs-*"):
        if time.time() - path.stat().st_mtime > 15 * 86400:
            path.unlink(missing_ok=True)


def _add_modules(kernel: Kernel, modules: str, folder: Path, name: str) -> None:
    """Puts the modules and their dependencies into the folder, unpacked, and lists those that were not there yet in the
    file `name`, in the order in which they are to be loaded."""
    order = []
    for module in modules.split():
        command = ("modprobe", "-C", "/dev/null", "-d", kernel.folder / "tree", "-S", kernel.release, "--show-depends")
        plan = output_of(*command, module.lstrip("?"))
        ensure(plan or module.startswith("?"), f"kernel {kernel.release} has no module {module}")
        for verb, file, *_ in map(str.split, plan.splitlines()):
            stem, dot, packing = Path(file).name.partition(".ko")
            target = folder / f"{stem}.ko"
            if verb != "insmod" or target.exists():
                continue
            ensure(dot + packing in UNPACKERS, f"module {file} is compressed in an unknown way")
            ensure(shell(f'{UNPACKERS[dot + packing]} "$1" >"$2"', file, target), f"cannot unpack {file}")
            order.append(f"{target.name}\n")
    (folder / name).write_text("".join(order))
