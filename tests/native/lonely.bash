# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# A network namespace with only lo, and an unprivileged user in it. Sourced.

# may_run PROGRAM: ends the test unless the user that will run PROGRAM can execute it.
may_run() {
  lonely test -x "$1" 2>/dev/null && return
  echo "SKIP: no network namespace for an unprivileged user who can run $1"
  exit 77
}

# lonely COMMAND...: runs the command as nobody if this user is root, otherwise as this user, without capabilities. If
# `beside` is set, there is another network device with that address. If `mounted` is set, it is a command that changes
# the mounts first. `user` is the number of another user instead of nobody.
lonely() {
  local drop=(setpriv --bounding-set=-all --inh-caps=-all --no-new-privs) map=(-r)
  if [ "$(id -u)" = 0 ]; then
    drop=(setpriv --reuid="${user:-65534}" --regid="${user:-65534}" --clear-groups --inh-caps=-all --no-new-privs)
    map=()
  fi
  # shellcheck disable=SC2016  # for that shell to expand
  unshare "${map[@]}" -n ${mounted:+-m} -- sh -c 'ip link set lo up || exit
    if [ -n "$1" ]; then
      ip link add va type veth peer name vb && ip addr add "$1" dev va && ip link set va up && ip link set vb up || exit
    fi
    eval "$2" || exit
    shift 2
    exec "$@"' sh "${beside-}" "${mounted-}" "${drop[@]}" "$@"
}
