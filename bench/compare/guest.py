# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
"""The rows beside the kernel's rdma_rxe: all rounds in one guest, in which bench/soft/rxe-guest takes turns."""

import math
import subprocess
import sys
from pathlib import Path

from network import Failed
from programs import MIB
from results import Results
from rows import Row
from stand import ROOT

PATIENCE_S = 3000


def measure_guest(rows: list[Row], results: Results, rounds: int, build: Path) -> None:
    missing = rounds - min((len(results.rounds(row)) for row in rows), default=rounds)
    if missing <= 0:
        return
    print(f"{missing} rounds in a guest", file=sys.stderr, flush=True)
    # Both ends are on one device, so without this setting dapple would use shared memory and not UDP.
    command = [str(ROOT / "scripts/softroce"), "--kernel", "6.1", "--timeout", str(PATIENCE_S), "--share", str(build),
               "--env", "DAPPLE_SAME_HOST=off", "--", str(ROOT / "bench/soft/rxe-guest"), str(build), str(missing)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"the guest ended with {done.returncode}: {done.stdout}")
    found: dict[tuple[str, str], list[float]] = {}
    for words in (line.split() for line in done.stdout.splitlines()):
        if len(words) == 3 and words[0] in ("kernel", "dapple", "udp"):
            found.setdefault((words[0], words[1]), []).append(float(words[2]))
    for row in rows:
        what = row.name.removeprefix("guest_")
        scale = MIB / 1e9 if what == "bw" else 1.0
        sides = {"ours": "dapple", "theirs": "kernel"}
        if row.beside:
            sides["beside"] = "udp"
        figures = {name: [value * scale for value in found.get((side, what), [])] for name, side in sides.items()}
        for values in zip(*figures.values(), strict=True):
            # A guest without KVM has a clock that now and then makes perftest print "inf".
            if all(math.isfinite(value) for value in values):
                results.add(row, {"mode": "guest", **dict(zip(figures, values, strict=True))})
