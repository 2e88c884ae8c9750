# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# Judges the steps of a test. Sourced by a script that has a folder for its files, $work, and ends with [ "$failures" = 0 ].
failures=0

# lacks_figures FILE: whether perftest, which wrote the file, could not print its figures. It compares two clocks after the
# transfer, and trusts none of an emulated riscv64.
lacks_figures() { [ "$(uname -m)" = riscv64 ] && grep -q "^ *Can't produce a report" "$1"; }

# verdict CODE NAME: prints how a step ended. Of a failed one it prints what the step's programs have written, too.
verdict() {
  local file
  if [ "$1" = 0 ]; then
    echo "passed $2"
    return
  fi
  echo "FAILED $2"
  failures=$((failures + 1))
  # shellcheck disable=SC2154  # the script sets it
  for file in "$work"/{out*,err,first,client,server}; do
    [ ! -f "$file" ] || tail -n 60 "$file" | sed "s/^/    ${file##*/}: /"
  done
}
