# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# A network namespace with lo and nothing else, and an unprivileged user in it. Sourced.

# may_run PROGRAM: ends the test unless the user that it will run as can execute PROGRAM.
may_run() {
  lonely test -x "$1" 2>/dev/null && return
  echo "SKIP: no network namespace for an unprivileged user who can run $1"
  exit 77
}

# lonely COMMAND...: as nobody if this is root, else as who this is, in the eyes of others; without capabilities.
lonely() {
  local drop=(setpriv --bounding-set=-all --inh-caps=-all --no-new-privs)
  if [ "$(id -u)" = 0 ]; then
    drop=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --no-new-privs)
    unshare -n -- sh -c 'ip link set lo up && exec "$@"' sh "${drop[@]}" "$@"
  else
    unshare -rn -- sh -c 'ip link set lo up && exec "$@"' sh "${drop[@]}" "$@"
  fi
}
