# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
"""Packages of a Debian release, fetched with apt, which checks signatures and hashes, and not installed."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT, run

from .messages import Failure, ensure, say
from .tools import output_of, succeeds

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
UNVERIFIED = "NO_PUBKEY|not signed|EXPKEYSIG|signatures were invalid|couldn.t be verified"


@dataclass(frozen=True)
class Suite:
    """One release, and an apt in `folder` with a state of its own: it has this machine's way to the network (proxies,
    credentials) and none of its hooks. `architecture` may be several, with commas."""

    folder: Path
    name: str
    architecture: str = "amd64"

    def configure(self, kind: str = "deb") -> None:
        for part in ("lists", "archives"):
            (self.folder / part / "partial").mkdir(parents=True, exist_ok=True)
        only = f"arch={self.architecture} " if kind == "deb" else ""
        source = f"{kind} [{only}signed-by={KEYRING}] {debian_site(self.folder)} {self.name} main\n"
        (self.folder / "sources.list").write_text(source)
        own = f"""\
Acquire::Languages "none";
APT::Architecture "{self.architecture}";
APT::Architectures {{ "{self.architecture}"; }};
APT::Sandbox::User "";
APT::Update::Error-Mode "any";
Dir::Etc {{ Main "/dev/null"; Parts "/dev/null"; Preferences "/dev/null"; PreferencesParts "/dev/null"; }};
Dir::Etc {{ SourceList "{self.folder}/sources.list"; SourceParts "/dev/null"; }};
Dir::State {{ Lists "{self.folder}/lists"; Status "/dev/null"; }};
Dir::Cache "{self.folder}";
Dir::Cache::Archives "{self.folder}/archives";
"""
        network = r"^Acquire::(?!IndexTargets|Languages|Changelogs).*\n"
        inherited = re.findall(network, output_of("apt-config", "dump"), re.MULTILINE)
        (self.folder / "apt.conf").write_text("".join(inherited) + own)

    @property
    def _environment(self) -> dict[str, str]:
        return os.environ | {"APT_CONFIG": f"{self.folder}/apt.conf"}

    def _complaints_of(self, *arguments: str, folder: Path) -> str:
        """Runs apt-get in the folder; its output if it fails, else an empty string."""
        command = ("apt-get", "-q", *arguments)
        result = run(command, cwd=folder, env=self._environment, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT)
        return (os.fsdecode(result.stdout) or "no output") if result.returncode else ""

    def open(self, kind: str = "deb") -> None:
        """Reads the index. The functions below come after this one."""
        say(f"reading the index of Debian's {self.name}" + f" for {self.architecture}" * (self.architecture != "amd64"))
        self.configure(kind)
        log = self._complaints_of("update", folder=self.folder)
        why, *_ = [*re.findall(r"^[EW]: (.*)", log, re.MULTILINE), "apt-get update failed"]
        keys = f"the keys of this machine's debian-archive-keyring cannot verify Debian's {self.name}"
        ensure(not re.search(UNVERIFIED, log), f"{keys}; upgrade that package ({why})")
        ensure(not log, f"cannot read Debian's {self.name}: {why}")

    def dependencies(self, package: str) -> str:
        """The package's field Depends."""
        shown = output_of("apt-cache", "show", "--no-all-versions", package, env=self._environment)
        return "\n".join(re.findall(r"^Depends: (.*)", shown, re.MULTILINE))

    def with_dependencies(self, packages: Sequence[str]) -> list[str]:
        """These packages and all that they need on a system without any; empty if that is impossible."""
        command = ("apt-get", "-qq", "--no-install-recommends", "--print-uris", "install", *packages)
        return re.findall(r"^'[^']*' ([^_]*)_", output_of(*command, env=self._environment), re.MULTILINE)

    def download(self, packages: Sequence[str], folder: Path, *command: str) -> list[Path]:
        """Fetches the packages into a new folder, by apt-get's `command`; returns the files."""
        folder.mkdir()
        log = self._complaints_of(*(command or ("download",)), *packages, folder=folder)
        why, *_ = [*re.findall(r"^E: .*", log, re.MULTILINE), "apt-get failed"]
        ensure(not log, f"cannot fetch {' '.join(packages)}: {why}")
        return sorted(folder.iterdir())


def debian_site(folder: Path) -> str:
    """The Debian archive of this machine, from its downloaded indexes, or from its sources if there are none yet."""
    targets = ("apt-get", "indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(SITE)", "Created-By: Packages")
    uris = ("apt-get", "-o", f"Dir::State::Lists={folder}/lists", "--print-uris", "update")
    suites = "bookworm|trixie|forky|sid|(?:old)*stable|testing|unstable"
    if named := os.environ.get("DAPPLE_DEBIAN_MIRROR"):
        return named.rstrip("/")
    if found := re.search(r"^Debian\|Debian\|(.+)", output_of(*targets), re.MULTILINE):
        return found[1].rstrip("/")
    if found := re.search(rf"^'(.*)/dists/(?:{suites})/InRelease'", output_of(*uris), re.MULTILINE):
        return found[1].rstrip("/")
    raise Failure("no Debian archive among this machine's apt sources; name one in DAPPLE_DEBIAN_MIRROR")


def unpack(debs: Sequence[Path], tree: Path) -> None:
    tree.mkdir()
    for deb in debs:
        ensure(succeeds("dpkg-deb", "-x", deb, tree), f"cannot unpack {deb.name}")
