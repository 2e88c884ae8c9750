# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
"""A server and its client, each on a CPU of its own."""

import itertools
import os
import subprocess
import time

from network import Failed, Place

PATIENCE_S = 180
LISTEN_S = 30

ports = itertools.count(22000)


def on_cpu(number: int, words: list[str]) -> list[str]:
    """The command on the number-th CPU that this process may use."""
    return ["taskset", "--cpu-list", str(sorted(os.sched_getaffinity(0))[number]), *words]


def alone(place: Place, words: list[str], environment: dict[str, str] | None = None) -> str:
    """The output of a program that needs no peer."""
    done = subprocess.run(place.sides[0].command(words), capture_output=True, text=True, timeout=PATIENCE_S, check=False,
                          env={**os.environ, **(environment or {})})
    if done.returncode != 0:
        raise Failed(f"{' '.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout


def run_pair(place: Place, server: list[str], client: list[str], port: int, environment: dict[str, str] | None = None) -> str:
    """The client's output."""
    full = {**os.environ, **(environment or {})}
    listening = subprocess.Popen(place.sides[0].command(on_cpu(0, server)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 text=True, env=full)
    try:
        end = time.monotonic() + LISTEN_S
        while time.monotonic() < end and not place.sides[0].listens(port) and listening.poll() is None:
            time.sleep(0.01)
        done = subprocess.run(place.sides[1].command(on_cpu(1, client)), capture_output=True, text=True, timeout=PATIENCE_S,
                              check=False, env=full)
        if done.returncode != 0:
            listening.kill()
        rest, _ = listening.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{' '.join(client)}: no end after {PATIENCE_S} s") from error
    finally:
        listening.kill()
    if done.returncode != 0:
        raise Failed(f"{' '.join(client)}: {done.stdout}{done.stderr}\nits server: {rest}")
    return done.stdout
