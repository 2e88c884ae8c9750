# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
"""The results of a run: its JSON file, from which an interrupted run continues, and the figures of a row."""

import datetime
import json
import statistics
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rows import Row

FORMAT = 1
# Two CPUs that share a cache exchange a line in 0.02 to 0.05 us, others take 0.1 us and more.
NEAR_US = 0.07

# A round of a row: "mode", "ours", "theirs", and perhaps "raw" and "beside".
Round = dict[str, Any]


def mode_of(pingpong_us: list[float]) -> str:
    modes = {"near" if us < NEAR_US else "far" for us in pingpong_us}
    return modes.pop() if len(modes) == 1 else "mixed"


@dataclass
class Results:
    file: Path
    content: dict[str, Any]

    @classmethod
    def begin(cls, file: Path, identity: dict[str, Any], fresh: bool) -> "Results":
        """Goes on with the file if it is of the same identity: machine, commit and kind of run. Uncommitted changes start a new one."""
        if not fresh and not identity["commit"].endswith("-dirty") and file.exists():
            found = cls.read(file)
            if found.content["identity"] == identity:
                return found
        return cls.empty(file, identity)

    @classmethod
    def empty(cls, file: Path, identity: dict[str, Any]) -> "Results":
        today = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
        return cls(file, {"format": FORMAT, "begun": today, "identity": identity, "limits": [], "rows": {}})

    @classmethod
    def read(cls, file: Path) -> "Results":
        content = json.loads(file.read_text())
        if content.get("format") != FORMAT:
            return cls.empty(file, {})
        return cls(file, content)

    def rounds(self, row: Row) -> list[Round]:
        rounds: list[Round] = self.content["rows"].setdefault(row.name, [])
        return rounds

    def add(self, row: Row, result: Round) -> None:
        self.rounds(row).append(result)
        self.save()

    def add_limits(self, limits: dict[str, float]) -> None:
        self.content["limits"].append(limits)
        self.save()

    def save(self) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(self.content, indent=1) + "\n")
        new.rename(self.file)

    def limit(self, row: Row, mode: str) -> float | None:
        """The machine's own best: a cache line's half round trip in that mode, or the speed of a copy."""
        if row.limit == "pingpong_us":
            return min((us for one in self.rounds(row) if one["mode"] == mode for us in one["pingpong_us"]), default=None)
        return max((limits[row.limit] for limits in self.content["limits"] if row.limit in limits), default=None)


@dataclass(frozen=True)
class Spread:
    least: float
    median: float
    most: float

    @classmethod
    def of(cls, values: list[float]) -> "Spread":
        return cls(min(values), statistics.median(values), max(values))


@dataclass(frozen=True)
class Figures:
    """A row's figures, of the rounds of one mode: the one with the most rounds."""

    mode: str
    rounds: int
    left_out: int  # rounds of the other modes
    ours: Spread
    theirs: Spread
    ratio: float | None  # None: one of the two adds nothing that can be measured
    beside: Spread | None


def figures_of(row: Row, rounds: list[Round]) -> Figures | None:
    """None without a round whose mode stayed the same."""
    modes = Counter(one["mode"] for one in rounds if one["mode"] != "mixed")
    if not modes:
        return None
    mode = modes.most_common(1)[0][0]
    same = [one for one in rounds if one["mode"] == mode]
    ours = Spread.of([one["ours"] - one.get("raw", 0) for one in same])
    theirs = Spread.of([one["theirs"] - one.get("raw", 0) for one in same])
    others = [one["beside"] for one in same if "beside" in one]
    beside = Spread.of(others) if row.beside and others else None
    pair = decisive(row, ours), decisive(row, theirs)
    ratio = pair[0] / pair[1] if min(pair) > 0 else None
    return Figures(mode, len(same), len(rounds) - len(same), ours, theirs, ratio, beside)


def decisive(row: Row, spread: Spread) -> float:
    """The number that the ratio is made of."""
    if not row.best:
        return spread.median
    return spread.least if row.lower_is_better else spread.most


def is_met(row: Row, figures: Figures) -> bool:
    """The ratio counts as it is shown: a machine's noise is larger than its third digit."""
    if figures.ratio is not None:
        return row.good(round(figures.ratio, 2))
    return figures.ours.median <= 0
