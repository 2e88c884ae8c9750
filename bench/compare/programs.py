# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
"""The programs of others, and perftest on the software device: each function returns one figure of one run."""

import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from network import Failed, Place
from pair import alone, ports, run_pair

MIB = 1 << 20


@dataclass
class Device:
    """The software device: how perftest finds it at a place."""

    launcher: str
    instruments: tuple[str, ...] = ()  # options of dapple-run
    found: dict[tuple[Place, int], tuple[str, str]] = field(default_factory=dict)

    def under(self, *options: str) -> "Device":
        """The same device, with programs under dapple-run's options."""
        return Device(self.launcher, options, self.found)

    def options(self, place: Place, side: int) -> list[str]:
        """Device and GID index of the side's address."""
        if (place, side) not in self.found:
            shown = alone(Place((place.sides[side], place.sides[side]), place.addresses), [self.launcher, "ibv_devinfo", "-v"])
            device = ""
            for line in shown.splitlines():
                if match := re.match(r"hca_id:\s+(\S+)", line):
                    device = match[1]
                elif match := re.search(rf"GID\[\s*(\d+)\]:\s+::ffff:{re.escape(place.addresses[side])}\b", line):
                    self.found[place, side] = (device, match[1])
        if (place, side) not in self.found:
            raise Failed(f"dapple-run ibv_devinfo shows no device with the address {place.addresses[side]}")
        device, gid = self.found[place, side]
        return ["-d", device, "-x", gid]

    def perftest(self, place: Place, words: list[str], size: int, iterations: int) -> list[float]:
        """The numbers of the line with this size."""
        port = next(ports)
        program = words[0]
        words = [self.launcher, *self.instruments, *words, "-F", "-s", str(size), "-n", str(max(iterations, 5)), "-p", str(port)]
        out = run_pair(place, [*words, *self.options(place, 0)], [*words, *self.options(place, 1), place.addresses[0]], port)
        for line in out.splitlines():
            numbers = line.split()
            if numbers and numbers[0] == str(size):
                return [float(number) for number in numbers]
        raise Failed(f"{program} printed no result:\n{out}")

    def latency(self, place: Place, program: str, size: int, iterations: int) -> tuple[float, float]:
        """Half a round trip in us: typical, which is the median, and average."""
        numbers = self.perftest(place, [program], size, iterations)
        return numbers[4], numbers[5]

    def bandwidth(self, place: Place, words: list[str], size: int, iterations: int) -> tuple[float, float]:
        """The averages in GB/s and millions of messages in a second. perftest's MB are MiB."""
        numbers = self.perftest(place, words, size, iterations)
        return numbers[3] * MIB / 1e9, numbers[4]


def fi_pingpong(place: Place, provider: list[str], size: int, iterations: int) -> tuple[float, float]:
    """libfabric: the average half round trip in us, and GB/s with one message on its way."""
    port = next(ports)
    words = ["fi_pingpong", *provider, "-I", str(iterations), "-S", str(size)]
    out = run_pair(place, [*words, "-B", str(port)], [*words, "-P", str(port), place.addresses[0]], port)
    # bytes #sent #ack total time MB/sec usec/xfer Mxfers/sec
    numbers = out.strip().splitlines()[-1].split()
    return float(numbers[6]), float(numbers[5]) / 1e3


def ucx_perftest(place: Place, words: list[str], size: int, iterations: int, transports: str = "") -> list[float]:
    """UCX's numbers: iterations; us: p50, average, overall; MiB/s: average, overall; messages in a second: average, overall."""
    port = next(ports)
    words = ["ucx_perftest", *words, "-s", str(size), "-n", str(iterations), "-p", str(port), "-f"]
    environment = {"UCX_TLS": transports} if transports else {}
    out = run_pair(place, words, [words[0], place.addresses[0], *words[1:]], port, environment)
    numbers = out.strip().splitlines()[-1].split()
    if len(numbers) != 8:
        raise Failed(f"{' '.join(words)} printed no result:\n{out}")
    return [float(number) for number in numbers]


def uct_latency(place: Place, words: list[str], size: int, iterations: int) -> float:
    """p50 in us."""
    return ucx_perftest(place, [*words, "-d", "memory"], size, iterations)[1]


def ucx_bandwidth(place: Place, words: list[str], size: int, iterations: int, transports: str = "") -> tuple[float, float]:
    """GB/s and millions of messages in a second."""
    numbers = ucx_perftest(place, words, size, iterations, transports)
    return numbers[5] * MIB / 1e9, numbers[7] / 1e6


def udp_pingpong(build: Path, place: Place, iterations: int) -> float:
    """Plain UDP sockets: the average half round trip in us."""
    port = next(ports)
    words = [str(build / "bin/bench-udp-pingpong"), str(port), str(iterations)]
    return float(run_pair(place, words, [*words, place.addresses[0]], port))


def sync_speeds(build: Path, rounds: int) -> dict[str, tuple[float, float, float]]:
    """bench-sync: "BYTES STATE FENCE" -> GB/s of ours, of libpmem, and of the instructions alone."""
    # Its exit code tells of its own limits, which are not ours.
    done = subprocess.run([str(build / "bin/bench-sync"), "--rounds", str(rounds)], capture_output=True, text=True, check=False)
    speeds = {}
    for line in done.stdout.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) > 8 and cells[1].isdigit():
            # ns for a line of 64 bytes
            speeds[" ".join(cells[1:4])] = (64 / float(cells[4]), 64 / float(cells[5]), 64 / float(cells[8]))
    if not speeds:
        raise Failed(f"bench-sync: {done.stdout}{done.stderr}")
    return speeds
