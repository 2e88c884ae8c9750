# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
"""The folders in which kernels are kept, and the locks of the programs that fill them."""

import fcntl
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .messages import Failure, program, say


@dataclass(frozen=True)
class Cache:
    folder: Path

    @classmethod
    def of_user(cls, environment: Mapping[str, str]) -> "Cache":
        home = environment.get("HOME") or "/root"
        caches = environment.get("XDG_CACHE_HOME") or f"{home}/.cache"
        return cls(Path(environment.get("DAPPLE_CACHE") or f"{caches}/dapple").absolute() / "softroce")

    def make_once(self, name: str, result: Path, make: Callable[[], None]) -> None:
        """Calls `make`, which makes the file `result`, unless that exists. One process at a time does this for a name."""
        if result.exists():
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = (self.folder / f"{name}.lock").open("w")
        except OSError:
            why = f"cannot write to {self.folder}; DAPPLE_CACHE names another folder, and root can run"
            raise Failure(f"{why} '{program()} --prepare --system' for all users") from None
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say(f"waiting for another softroce that prepares {name}")
                fcntl.flock(lock, fcntl.LOCK_EX)
            if not result.exists():
                make()


# For all users of this machine. `--prepare --system` fills it.
SYSTEM_CACHE = Cache(Path("/var/cache/dapple/softroce"))


@contextmanager
def new_folder(parent: Path, name: str) -> Iterator[Path]:
    """A folder to make something in, beside its later place. Removes those of interrupted runs."""
    for old in parent.glob(f"{name}.*"):
        shutil.rmtree(old, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{name}.", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
