# shellcheck shell=bash
# shellcheck disable=SC2154  # the script that sources it sets run and program
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# Looks at the reports of a program of this folder. Sourced with $run, which is dapple-run, and $program.

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# shellcheck source=tests/native/verdicts.bash
. "$(dirname "$(realpath "$0")")/../verdicts.bash"

# says LINES ARGUMENT... -- PATTERN...: the program with these arguments ends with 0 under --explain, with so many lines of
# ours. Each pattern matches a line of the output.
says() {
  local lines=$1 arguments=() code pattern
  shift
  while [ "$1" != -- ]; do arguments+=("$1") && shift; done
  shift
  "$run" --explain "$program" "${arguments[@]}" >"$work/out" 2>&1
  code=$?
  [ "$(grep -c '^dapple: ' "$work/out")" = "$lines" ] && ! grep -q 'kept no' "$work/out" || code=1
  for pattern; do
    grep -qE -- "$pattern" "$work/out" || code=1
  done
  verdict "$code" "${arguments[*]}"
}
