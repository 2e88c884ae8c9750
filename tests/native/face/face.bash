# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# What the tests of this folder share. Sourced, with the build folder in `build`.
# shellcheck disable=SC2034,SC2154
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
run=$build/bin/dapple-run
info=$build/bin/dapple-info
export XDG_RUNTIME_DIR=$work/run DAPPLED_LINGER=0.2
mkdir -m 700 "$XDG_RUNTIME_DIR"
: >"$work/out"

# shellcheck source=tests/native/verdicts.bash
. "$(dirname "$(realpath "$0")")/../verdicts.bash"

# soon COMMAND...: the command succeeds within a minute.
soon() {
  for _ in {1..600}; do
    "$@" 2>/dev/null && return
    sleep 0.1
  done
  return 1
}

is_empty() { # FOLDER
  [ -z "$(ls -A "$1")" ]
}

# exchange: packets between two programs on the first device.
exchange() {
  "$run" ibv_rc_pingpong -d dapple0 -g 0 -n 100 >/dev/null 2>&1 &
  local server=$!
  soon "$run" ibv_rc_pingpong -d dapple0 -g 0 -n 100 127.0.0.1 >"$work/out" 2>&1 && wait "$server"
}
