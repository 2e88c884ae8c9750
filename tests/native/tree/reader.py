#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
"""reader.py WAY FOLDER: prints what is below a folder, as reader.c does, with a way of Python."""

import glob
import os
import pathlib
import sys


def show(path: str, top: str) -> None:
    """One line about one entry."""
    name = os.path.relpath(path, top)
    if os.path.islink(path):
        print("l", name, os.readlink(path))
    elif os.path.isdir(path):
        print("d", name)
    else:
        try:
            with open(path, encoding="ascii") as file:
                print("f", name, file.read().split("\n")[0])
        except OSError as error:
            print("f", name, error.strerror)


def walk(top: str) -> None:
    """By whole paths."""
    for folder, folders, files in os.walk(top):
        for entry in folders + files:
            show(os.path.join(folder, entry), top)


def globbed(folder: str, top: str = "") -> None:
    """By patterns. A recursive pattern would follow links."""
    for path in glob.glob(folder + "/*"):
        show(path, top or folder)
        if os.path.isdir(path) and not os.path.islink(path):
            globbed(path, top or folder)


def by_descriptors(top: str) -> None:
    """By open folders."""
    for folder, folders, files, _ in os.fwalk(top):
        for entry in folders + files:
            show(os.path.join(folder, entry), top)


def paths(top: str) -> None:
    """By pathlib."""
    for path in pathlib.Path(top).rglob("*"):
        show(str(path), top)
    whole = pathlib.Path(top, "subsystem").resolve()
    if str(whole) != "/sys/class/infiniband":
        print("resolve:", whole)


if sys.argv[1] == "walk":
    walk(sys.argv[2])
elif sys.argv[1] == "glob":
    globbed(sys.argv[2])
elif sys.argv[1] == "fwalk":
    by_descriptors(sys.argv[2])
elif sys.argv[1] == "pathlib":
    paths(sys.argv[2])
