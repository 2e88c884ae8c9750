# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# The common parts of softroce's own tests. Each runs softroce with `run` and then checks the result.

root=$(dirname "$(dirname "$(dirname "$(realpath "$0")")")")
softroce=$root/scripts/softroce
failures=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Skips the test unless KERNEL can be booted here.
need_kernel() { # KERNEL
  "$softroce" --kernel "$1" --prepare 2>"$work/prepare" || {
    echo "SKIP: $(tail -n 1 "$work/prepare")"
    exit 77
  }
  kernel=$1
}

# Runs softroce; stores its exit code in $code and its output in $work/out and $work/err.
run() { # ARG…
  last=$*
  "$softroce" ${kernel:+--kernel "$kernel"} "$@" >"$work/out" 2>"$work/err"
  code=$?
}

fail() { # MESSAGE
  failures=$((failures + 1))
  printf 'FAILED: softroce %s\n  %s\n' "$last" "$1"
  sed 's/^/  stdout: /' "$work/out"
  sed 's/^/  stderr: /' "$work/err"
}

expect_code() { [ "$code" = "$1" ] || fail "exit code $code, not $1"; }

# Expects a whole line of stdout or stderr (a basic regular expression).
expect_line() { # out|err PATTERN
  grep -qx -e "$2" "$work/$1" || fail "no line '$2' in std$1"
}

expect() { # MESSAGE COMMAND…
  local message=$1
  shift
  "$@" || fail "$message"
}

finish() {
  [ "$failures" = 0 ] || exit 1
  echo 'all checks passed'
  exit 0
}
