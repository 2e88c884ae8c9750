# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
"""The table, on a terminal and as docs/performance.md with its plot."""

import subprocess
import textwrap
from pathlib import Path

from network import Failed
from results import Figures, Results, Spread, figures_of, is_met
from rows import ROWS, Row

SPDX = """<!-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause -->
<!-- SPDX-FileCopyrightText: The dapple authors -->
"""

PROSE = """# Performance

`bench/run --all` measures dapple beside the programs that do the same in Debian, in turn, round by round. `bench/run --all --report`
writes this page from its results. Missed targets are marked.

Each cell has the lowest, the median and the highest of the rounds. The ratio is dapple's figure divided by the other's: of the best rounds
where the programs print averages, and of the medians elsewhere. It is rounded to two decimal places, and then compared with the target.
The last column is the machine's own limit. For a latency this is half a round trip of one cache line between the two CPUs. For a bandwidth
on one host it is the speed of the kernel's copy between two processes. Over UDP it is the speed of one memcpy.

Two CPUs of a virtual machine share a cache at times. Each round measures the round trip of a cache line before and after each program. Only
rounds that stayed in one mode are compared, with rounds of the same mode: *near* (below 0.07 us) or *far*. The mode with more rounds is
shown.

A machine without KVM emulates the guest's processor, so the rows in a guest say little about a real machine.
[bench/README.md](../bench/README.md#the-software-device) has more figures of the software device.
"""


def number(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def spread(values: Spread) -> str:
    return f"{number(values.least)} / {number(values.median)} / {number(values.most)}"


def target(row: Row) -> str:
    words = f"{'at most' if row.lower_is_better else 'at least'} {row.target}"
    return words if row.wish is None else f"{words}; next {row.wish}"


def verdict(row: Row, figures: Figures) -> str:
    ratio = "–" if figures.ratio is None else f"{figures.ratio:.2f}"
    return ratio if is_met(row, figures) else f"**{ratio}, missed**"


def line(row: Row, figures: Figures | None, limit: float | None, rounds_made: int) -> str:
    title = f"{row.title} ({row.unit})"
    if figures is None:
        why = f"{rounds_made}, none in one mode" if rounds_made else "not measured"
        return f"| {title} | | {row.rival} | | {target(row)} | {why} | |"
    theirs = f"{row.rival}: {spread(figures.theirs)}"
    if row.beside and figures.beside:
        theirs += f"; {row.beside[0]}: {spread(figures.beside)}"
    rounds = f"{figures.rounds} {figures.mode}" + (f", {figures.left_out} left out" if figures.left_out else "")
    return (f"| {title} | {spread(figures.ours)} | {theirs} | {verdict(row, figures)} | {target(row)} | {rounds} | "
            f"{'' if limit is None else number(limit)} |")


def tables(results: Results, rows: list[Row]) -> str:
    parts = []
    for group in dict.fromkeys(row.group for row in rows):
        parts += [f"## {group}", "", "| | dapple | the other | ratio | target | rounds | limit |", "|---|--:|---|--:|---|---|--:|"]
        for row in rows:
            if row.group == group:
                made = results.rounds(row)
                figures = figures_of(row, made)
                parts.append(line(row, figures, results.limit(row, figures.mode) if figures else None, len(made)))
        parts += ["", *reasons(results, [row for row in rows if row.group == group])]
    return "\n".join(parts)


def reasons(results: Results, rows: list[Row]) -> list[str]:
    """Why targets are missed, each reason once."""
    missed: dict[str, list[str]] = {}
    for row in rows:
        figures = figures_of(row, results.rounds(row))
        if row.why and figures and not is_met(row, figures):
            missed.setdefault(row.why, []).append(row.name)
    lines = [textwrap.fill(f"- {', '.join(names)}: {why}", 140, subsequent_indent="  ", break_on_hyphens=False)
             for why, names in missed.items()]
    return ["Missed, and why:", "", *lines, ""] if lines else []


def summary(results: Results, rows: list[Row]) -> tuple[str, int]:
    """A line, and the number of missed targets."""
    measured = [(row, figures) for row in rows if (figures := figures_of(row, results.rounds(row)))]
    missed = [row.name for row, figures in measured if not is_met(row, figures)]
    text = f"{len(measured) - len(missed)} of {len(measured)} targets are met"
    if len(measured) < len(rows):
        text += f"; {len(rows) - len(measured)} rows have no figures"
    return text + ("; missed: " + ", ".join(missed) if missed else ""), len(missed)


def description(results: Results) -> str:
    about = results.content["identity"]
    kind = " A quick run: its figures mean little." if about.get("quick") else ""
    text = f"{results.content['begun']}, commit {about['commit']}: {about['machine']}, {about['kernel']}. {about['peers']}.{kind}"
    return textwrap.fill(text, 140, break_on_hyphens=False) + "\n"


def gain(row: Row, ratio: float) -> float:
    """How many times better than the target."""
    return row.target / ratio if row.lower_is_better else ratio / row.target


def plot(results: Results, rows: list[Row], file: Path, work: Path) -> None:
    data = work / "gains"
    lines = []
    for row in rows:
        figures = figures_of(row, results.rounds(row))
        if figures and figures.ratio is not None:
            lines.append(f'"{row.title}" {gain(row, figures.ratio):.4f}')
    data.write_text("\n".join(lines) + "\n")
    script = Path(__file__).with_name("plot.gp")
    done = subprocess.run(["gnuplot", "-e", f"data='{data}'; out='{file}'; rows={len(lines)}", str(script)], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise Failed(f"gnuplot: {done.stderr.strip()}")
    first, rest = file.read_text().split("\n", 1)
    file.write_text(f"{first}\n{SPDX}{rest}")


def write(results: Results, folder: Path, work: Path) -> None:
    """performance.md and performance.svg in that folder. The figures of bench/soft/pod stand in pod.md."""
    plot(results, ROWS, folder / "performance.svg", work)
    text, _ = summary(results, ROWS)
    page = [SPDX + PROSE, description(results), textwrap.fill(text, 140, break_on_hyphens=False) + ".\n",
            "![How many times better than its target each row is](performance.svg)\n", tables(results, ROWS),
            Path(__file__).with_name("pod.md").read_text().split("-->\n")[-1]]
    (folder / "performance.md").write_text("\n".join(page))
