# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
"""The kernel's software iWARP device, siw, as a module for the guest. Debian's kernels leave it out, so it is built from
Debian's own source, with the headers of this kernel, by the compiler that built the kernel. All of these are unpacked into
a folder that make sees as its root; nothing is installed."""

import os
import re
import subprocess
import sys
from pathlib import Path

from .apt import Suite
from .cache import new_folder
from .kernel import SUITES, Kernel
from .messages import Failure, ensure, say
from .tools import require_tools, shell, succeeds

# The programs that make and the kernel's scripts run, besides the compiler.
TOOLS = "make dash bash coreutils sed grep gawk findutils".split()


def build_siw(kernel: Kernel) -> None:
    """Makes kernel.siw_module. Runs under the cache's lock."""
    require_tools("build")
    with new_folder(kernel.folder, "new-siw") as new:
        suite = Suite(new / "apt", SUITES[kernel.version])
        suite.open()
        source, headers, toolchain = _packages(suite, kernel)
        say(f"fetching {source}, {headers[0]} and a compiler (some 230 MB, not kept)")
        debs = suite.download([source, *headers, *toolchain], new / "debs")
        say("unpacking them")
        _unpack(debs, new / "root")
        say(f"building siw for {kernel.release}")
        _make(new / "root", kernel.release)
        kernel.siw_module.parent.mkdir(exist_ok=True)
        (new / "root/siw/siw.small").rename(kernel.siw_module)
        if not succeeds("depmod", "-b", kernel.folder / "tree", kernel.release):
            kernel.siw_module.unlink()
            raise Failure(f"depmod failed for {kernel.release}")


def _packages(suite: Suite, kernel: Kernel) -> tuple[str, list[str], list[str]]:
    """The package of the source, those of the kernel's headers, and those of the programs that build."""
    needs = suite.dependencies(f"linux-headers-{kernel.release}")
    compiler = re.findall("gcc-[0-9]+", needs)[:1]
    why = f"Debian has moved on from kernel {kernel.release}, so siw cannot be built for it"
    ensure(compiler, f"{why}; rm -r {kernel.folder} to fetch the present one")
    headers = sorted(set(re.findall(r"linux-(?:headers|kbuild|compiler|base)-[^ ,]+", needs)))
    toolchain = suite.with_dependencies([*compiler, *TOOLS, *(name for name in headers if "kbuild" in name)])
    ensure(toolchain, f"apt cannot find the dependencies of {compiler[0]}")
    return f"linux-source-{kernel.version}", [f"linux-headers-{kernel.release}", *headers], toolchain


def _unpack(debs: list[Path], root: Path) -> None:
    """Unpacks siw's source to root/siw, everything else to root."""
    # Debian 12's programs are still in /bin, but expect that /bin is /usr/bin.
    for folder in ("bin", "sbin", "lib", "lib64"):
        (root / "usr" / folder).mkdir(parents=True)
        (root / folder).symlink_to(f"usr/{folder}")
    (root / "siw").mkdir()
    for deb in debs:
        script = 'dpkg-deb --fsys-tarfile "$1" | tar -xpf - -C "$2" --keep-directory-symlink'
        if deb.name.startswith("linux-source-"):
            script = """dpkg-deb --fsys-tarfile "$1" | tar -xOf - --wildcards './usr/src/linux-source-*.tar.xz' |
                xz -dc -T0 | tar -xf - -C "$2/siw" --strip-components 5 --wildcards '*/drivers/infiniband/sw/siw/*'"""
        ensure(shell(script, deb, root), f"cannot unpack {deb.name}")
    # The installation of a package would make Debian's alternatives.
    ensure(succeeds("ln", "-sf", "gawk", root / "usr/bin/awk"), "cannot make a link to gawk")


def _make(root: Path, release: str) -> None:
    """Runs make with that folder as its root. It has its own mounts of /dev, and of /proc for objtool."""
    ensure(succeeds("unshare", "-rm", "--pid", "--fork", "true"), "siw needs root or unprivileged user namespaces; see unshare(1)")
    enter = 'mount --rbind /dev "$1/dev" && mount --rbind /proc "$1/proc" && exec chroot "$1" /usr/bin/bash -c "$2"'
    script = f"""export PATH=/usr/bin:/bin
        make -s -j{os.cpu_count()} -C /usr/src/linux-headers-{release} M=/siw CONFIG_RDMA_SIW=m modules &&
        objcopy -g -R .BTF -R .BTF.base /siw/siw.ko /siw/siw.small"""
    # A signal to this program kills unshare, and make must not outlive it.
    command = ("unshare", "-rm", "--pid", "--fork", "--kill-child", "sh", "-c", enter, "sh", root, script)
    run = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if run.returncode:
        print(*os.fsdecode(run.stdout).splitlines()[-20:], sep="\n", file=sys.stderr)
        raise Failure(f"cannot build siw for {release}")
