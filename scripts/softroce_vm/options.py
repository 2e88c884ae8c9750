# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
"""The command line."""

import argparse
import os
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from .kernel import SUITES
from .messages import Exit, Failure, ensure

_allow = partial(ensure, code=Exit.USAGE)
FLAGS = ("--native", "--prepare", "--system", "--packages", "--help", "--version")


class Options(argparse.Namespace):
    kernels: list[str]  # by guest
    commands: list[list[str]]  # by guest; none with --prepare, --packages, --help and --version
    device: str
    accel: str
    guests: int
    cpus: int | None
    memory: int
    timeout: int | None
    share: list[Path]
    env: list[tuple[str, str]]
    native: bool
    prepare: bool
    system: bool
    packages: bool
    help: bool
    version: bool
    words: list[str]  # after the options
    folder: Path  # the working folder
    environment: dict[str, str]  # the caller's


def parse_options(arguments: Sequence[str], environment: Mapping[str, str]) -> Options:
    options = Options(environment=dict(environment))
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    add = parser.add_argument
    add("--kernel", dest="kernels", type=_kernels, default=["6.1"])
    add("--device", type=partial(_one_of, "--device", "rxe, siw or none"), default="rxe")
    add("--accel", type=partial(_one_of, "--accel", "auto, kvm or tcg"), default="auto")
    add("--guests", type=lambda text: int(_one_of("--guests", "1 or 2", text)), default=1)
    add("--cpus", type=partial(_whole_number, "--cpus", 1, 64))
    add("--memory", type=partial(_whole_number, "--memory", 256, 1048576), default=1024)
    add("--timeout", type=partial(_whole_number, "--timeout", 1, 1000000))
    add("--share", type=_share, action="append", default=[])
    add("--env", type=lambda text: _setting(text, environment), action="append", default=[])
    for flag in FLAGS:
        add(flag, action="store_true")
    add("-h", dest="help", action="store_true")
    add("words", nargs=argparse.REMAINDER)
    try:
        options.folder = Path.cwd()
        unknown = parser.parse_known_args(arguments, options)[1]
    except FileNotFoundError:
        raise Failure("the working folder does not exist any more") from None
    except argparse.ArgumentError as error:
        needs = "takes no" if error.argument_name in (*FLAGS, "-h") else "needs a"
        raise Failure(f"{error.argument_name} {needs} value", Exit.USAGE) from None
    _check_options(options, unknown)
    return options


def _check_options(options: Options, unknown: list[str]) -> None:
    """The options together. Sets `commands`."""
    if options.words[:1] == ["--"]:
        del options.words[0]
    elif options.words and options.words[0].startswith("-"):
        unknown.append(options.words[0])
    _allow(not unknown, f"unknown option {' '.join(unknown[:1])}; see --help")
    _allow(len(set(options.kernels)) <= options.guests, "one guest has one kernel; two take --guests 2")
    options.kernels = [options.kernels[0], options.kernels[-1]][: options.guests]
    _allow(options.prepare or not options.system, "--system goes with --prepare")
    _allow(not options.prepare or not options.words, "--prepare takes no command")
    _allow(not options.native or options.guests == 1, "--native has no second guest")
    _allow(not options.native or not options.prepare, "--native has nothing to prepare")
    needs_none = options.prepare or options.packages or options.help or options.version
    options.commands = [] if needs_none else _commands(options.words, options.guests)
    for command, *_ in options.commands:
        # Of the commands in /tmp and /run a guest sees only some.
        path = Path(os.path.realpath(command))
        visible = [folder for folder in (kept_tree(options.folder), *options.share) if folder]
        if "/" in command and path.exists() and kept_tree(path):
            why = f"{command} lies in a folder that is empty in the guest; add --share {path.parent}"
            _allow(any(map(path.is_relative_to, visible)), why)


def kept_tree(folder: Path) -> Path | None:
    """/tmp and /run are new in a guest, but the folder in them that contains the working folder stays visible."""
    return Path(*folder.parts[:3]) if re.match("/(tmp|run)/", str(folder)) else None


def _one_of(option: str, choices: str, text: str) -> str:
    _allow(text in re.split(", | or ", choices), f"{option} takes {choices}, not '{text}'")
    return text


def _whole_number(option: str, low: int, high: int, text: str) -> int:
    is_right = re.fullmatch("[0-9]{1,7}", text) and low <= int(text) <= high
    _allow(is_right, f"{option} takes a whole number from {low} to {high}, not '{text}'")
    return int(text)


def _kernels(text: str) -> list[str]:
    versions = text.split(",")
    _allow(SUITES.keys() >= set(versions), f"--kernel takes 6.1, 6.12 or 7.2, or two of them and a comma, not '{text}'")
    _allow(len(versions) <= 2, f"--kernel takes one version or two, not '{text}'")
    return versions


def _share(text: str) -> Path:
    folder = Path(os.path.realpath(text))
    _allow(folder.exists(), f"--share takes an existing folder, not '{text}'")
    _allow(folder.is_dir(), f"--share takes a folder, but '{text}' is not one")
    of_kernel = re.match("/($|(proc|sys|dev)(/|$)|run(/softroce|$))", str(folder))
    _allow(not of_kernel, f"--share cannot share {folder}")
    _allow("\n" not in str(folder), "--share cannot share a folder with a newline in its name")
    return folder


def _setting(text: str, environment: Mapping[str, str]) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    _allow(re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name), f"--env takes NAME or NAME=VALUE, not '{text}'")
    _allow(equals or name in environment, f"--env {name}: no such variable is exported")
    return name, value if equals else environment[name]


def _commands(words: list[str], guests: int) -> list[list[str]]:
    middle = words.index("---") if guests == 2 and "---" in words else len(words)
    commands = [words[:middle], words[middle + 1 :]][:guests]
    _allow(guests == 1 or middle < len(words), "--guests 2 takes two commands, with --- between them")
    _allow(guests == 1 or commands[1], "there is no command after ---")
    _allow(commands[0], "no command was given; see --help")
    return commands
