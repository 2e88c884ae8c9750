# shellcheck shell=bash
# shellcheck disable=SC2154  # common.bash sets logs and root
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# Follows builds of packages: their present step, and their first error. Sourced after common.bash.

# step_of LOG: prints the present step of a package build in a few words; nothing if it is unknown.
step_of() {
  tail -c 4000 -- "$1" 2>/dev/null | awk '
    match($0, /^\[[0-9]+\/[0-9]+\]/) { step = "compiling, " substr($0, 2, RLENGTH - 2) }
    /^ *[0-9]+\/[0-9]+ Test +#/ { step = "testing, " $1 }
    /^   (debian\/rules |dh_)[a-z_]+/ { step = $1 == "debian/rules" ? $2 : $1 }
    END { sub(/\//, " of ", step); print step }'
}

# tell_steps LOG PID: reports the steps until that process ends: one line on a terminal, or a line twice a minute in a
# log.
tell_steps() {
  local step last='' waits=0
  while kill -0 "$2" 2>/dev/null; do
    sleep 1
    waits=$((waits + 1))
    step=$(step_of "$1")
    [ -n "$step" ] && [ "$step" != "$last" ] || continue
    if [ -t 2 ]; then
      printf '\r\033[K   %s' "$step" >&2
    elif [ "$waits" -ge 30 ]; then
      say "$step" >&2
      waits=0
    else
      continue
    fi
    last=$step
  done
}

# first_error LOG: prints the first error line with the lines after it; without one, the last lines.
first_error() {
  grep -aE -m 1 -A 3 -e '(^|[ :])([Ff]atal )?[Ee]rror: |^E: |CMake Error|: undefined reference|\*\*\*(Failed|Exception|Timeout|Not Run)|: \*\*\* ' -- "$1" ||
    tail -n 5 -- "$1"
}

# followed NAME COMMAND...: runs the command with its output in build/log/NAME.log, and prints on standard error its
# steps and, if it fails, the first error.
followed() {
  # Behind & this variable would be the watcher's own id, and the watcher would outlive a killed script.
  local log=$logs/$1.log shell=$BASHPID watcher code=0
  shift
  : >"$log"
  tell_steps "$log" "$shell" &
  watcher=$!
  "$@" >"$log" 2>&1 </dev/null || code=$?
  { kill "$watcher" && wait "$watcher"; } 2>/dev/null
  [ ! -t 2 ] || printf '\r\033[K' >&2
  [ "$code" != 0 ] || return 0
  printf 'This failed: %s\n' "$*" >&2
  first_error "$log" >&2
  printf '(all of its output: %s)\n' "${log#"$root"/}" >&2
  return 1
}
