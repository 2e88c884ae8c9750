# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
"""The build, the places and the shared results of a round, which the rows use."""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from network import Failed, Place, one_host, veth_pair
from pair import alone
from programs import Device, sync_speeds

ROOT = Path(__file__).resolve().parents[2]
IA = "ofa-v2-lo"
MTU = 1500
Result = TypeVar("Result")


def unpacked(script: str, *arguments: str) -> Path:
    """The folder of an original library."""
    done = subprocess.run([ROOT / "scripts/lib" / script, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"scripts/lib/{script}: {done.stderr.strip()}")
    return Path(done.stdout.strip()) / "usr/lib/x86_64-linux-gnu"


@dataclass
class Stand:
    build: Path
    work: Path  # a folder for files of this run
    quick: bool
    device: Device = field(init=False)
    host: Place = field(init=False)
    wire: Place = field(init=False)
    once: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.device = Device(str(self.build / "bin/dapple-run"))
        self.host = one_host()
        try:
            self.wire = veth_pair(MTU)
        except BaseException:
            self.host.end()
            raise

    def end(self) -> None:
        self.host.end()
        self.wire.end()

    def begin_round(self) -> None:
        self.once.clear()

    def some(self, number: int) -> int:
        """That many, or a twentieth of it in a quick run."""
        return max(number // 20, 1) if self.quick else number

    def first(self, key: str, measure: Callable[[], Result]) -> Result:
        """Measures once in a round, at the first row that needs it."""
        if key not in self.once:
            self.once[key] = measure()
        return self.once[key]  # type: ignore[return-value]

    def limits(self, with_copies: bool = False) -> dict[str, float]:
        words = [str(self.build / "bin/bench-limits"), *(["--copies"] if with_copies else [])]
        return {name: float(value) for name, value in (line.split() for line in alone(self.host, words).splitlines())}

    def on_device(self, program: str, arguments: list[str], libraries: Path) -> str:
        """A program of ours under dapple-run, with libdat2 and the provider, or librpma, from that folder."""
        conf = self.work / "dat.conf"
        conf.write_text(f'{IA} u2.0 nonthreadsafe default {libraries}/libdaplofa.so.2 dapl.2.0 "lo 0" ""\n')
        environment = {"DAT_OVERRIDE": str(conf), "LD_LIBRARY_PATH": str(libraries)}
        return alone(self.host, [self.device.launcher, str(self.build / "bin" / program), *arguments], environment)

    def times(self, program: str, where: str, libraries: Path) -> dict[str, float]:
        """bench-times-PROGRAM: row -> ns."""
        def measure() -> dict[str, float]:
            out = self.on_device(f"bench-times-{program}", [where, str(self.some(2000))], libraries)
            return {name: float(value) for name, _, value in (line.split() for line in out.splitlines())}
        return self.first(f"times {program} {libraries}", measure)

    def verbs_ns(self, row: str) -> float:
        return self.times("verbs", "127.0.0.1", self.build / "lib")[row]

    def dat_ns(self, row: str, original: bool) -> float:
        return self.times("dat", IA, unpacked("original-udapl") if original else self.build / "lib")[row]

    def rpma_ns(self, row: str, original: bool) -> float:
        return self.times("rpma", "127.0.0.1", unpacked("original-rpma", "bookworm") if original else self.build / "lib")[row]

    def connections(self, original: bool) -> float:
        libraries = unpacked("original-udapl") if original else self.build / "lib"
        return float(self.on_device("bench-times-connections", [IA, "0.3" if self.quick else "2"], libraries))

    def sync(self, row: str) -> tuple[float, float, float]:
        """GB/s of ours, of libpmem, and of the instructions alone."""
        return self.first("sync", lambda: sync_speeds(self.build, 1 if self.quick else 9))[row]
