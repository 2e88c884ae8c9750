# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
"""Debian's kernels: each is fetched and unpacked into a folder of the cache, VERSION/{vmlinux,release,tree}."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from .apt import Suite, unpack
from .cache import SYSTEM_CACHE, Cache, new_folder
from .messages import ensure, say
from .tools import require_tools, succeeds
from .vmlinux import extract_vmlinux

SUITES = {"6.1": "bookworm", "6.12": "trixie", "7.2": "forky"}


@dataclass(frozen=True)
class Kernel:
    version: str
    folder: Path

    @property
    def release_file(self) -> Path:
        """Holds the full version. It exists if everything else does."""
        return self.folder / "release"

    @property
    def release(self) -> str:
        return self.release_file.read_text().strip()

    @property
    def siw_module(self) -> Path:
        return self.folder / "tree/lib/modules" / self.release / "updates/siw.ko"


def prepare_kernel(cache: Cache, version: str, device: str) -> Kernel:
    """The user's own kernel, or the system's if that has everything for the device. Fetches it if neither exists."""
    kernel, system = (Kernel(version, place.folder / version) for place in (cache, SYSTEM_CACHE))
    if not kernel.release_file.exists() and system.release_file.exists():
        if device != "siw" or system.siw_module.exists():
            return system
    cache.make_once(version, kernel.release_file, lambda: _fetch(cache, kernel))
    return kernel


def kernel_packages(suite: Suite, version: str, kinds: str = "[a-z]+") -> list[str]:
    """The packages of these kinds behind the suite's linux-image-ARCHITECTURE that have a version in their name: one, or
    several on newer suites (image, modules, …)."""
    found = [f"linux-image-{suite.architecture}"]
    for package in found:  # The loop appends to it.
        names = re.findall(rf"linux-[a-z]+-[0-9][^ ,]*-{suite.architecture}", suite.dependencies(package))
        found += [name for name in dict.fromkeys(names) if name not in found]
    packages = [package for package in found[1:] if re.match(rf"linux-(?:{kinds})-", package)]
    ensure(packages, f"Debian's {suite.name} has no {found[0]}")
    ensure(f"-{version}." in packages[0], f"Debian's {suite.name} has moved on from kernel {version} to {packages[0]}")
    return packages


def _fetch(cache: Cache, kernel: Kernel) -> None:
    require_tools("build")
    with new_folder(cache.folder, f"new-{kernel.version}") as new:
        suite = Suite(new / "apt", SUITES[kernel.version])
        suite.open()
        packages = kernel_packages(suite, kernel.version)
        say(f"fetching {' '.join(packages)}")
        debs = suite.download(packages, new / "debs")
        say("unpacking it")
        tree = new / "tree"
        unpack(debs, tree)
        # Newer kernels have their modules in /usr/lib, and the image among them. modprobe searches one of the two places,
        # depending on its version.
        if (tree / "usr/lib/modules").is_dir():
            (tree / "lib").mkdir(exist_ok=True)
            (tree / "usr/lib/modules").rename(tree / "lib/modules")
        shutil.rmtree(tree / "usr", ignore_errors=True)
        (tree / "usr").mkdir()
        (tree / "usr/lib").symlink_to("../lib")
        images = [*tree.glob("boot/vmlinuz-*"), *tree.glob("lib/modules/*/vmlinuz")]
        modules = [*tree.glob("lib/modules/*")]
        ensure(len(images) == len(modules) == 1, f"no kernel in {' '.join(packages)}")
        extract_vmlinux(images[0], new / "vmlinux")
        images[0].unlink()
        # No guest needs modules such as sound and drivers of real hardware.
        drivers = modules[0] / "kernel/drivers"
        useless = [path for path in drivers.glob("*") if path.name not in ("infiniband", "net", "virtio", "char")]
        useless += [drivers / "net" / kind for kind in ("ethernet", "wireless", "wwan", "can", "usb")]
        useless += [modules[0] / "kernel/sound", drivers / "infiniband/hw"]
        for path in (*useless, suite.folder, new / "debs", tree / "boot", kernel.folder):
            shutil.rmtree(path, ignore_errors=True)
        ensure(succeeds("depmod", "-b", tree, modules[0].name), f"depmod failed for {modules[0].name}")
        (new / "release").write_text(f"{modules[0].name}\n")
        new.chmod(0o755)
        new.rename(kernel.folder)
