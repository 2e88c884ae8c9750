# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034  # the parts share their variables
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# Tests dapple-softroce on a system without our other packages: root fetches the kernel for all users, or an ordinary
# user fetches it, and afterwards no one needs a privilege or the network.

# as_nobody COMMAND...: runs the command without any privilege, home folder or network.
as_nobody() {
  inside unshare --net setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs \
    env HOME=/nonexistent "$@"
}

# in_namespaces COMMAND...: the same, as root of its own user namespace, as in a container that its user has started.
in_namespaces() { as_nobody unshare --user --map-root-user --mount --pid --fork --mount-proc "$@"; }

# sees_device COMMAND...: runs softroce in this way; a command in it must see the device.
sees_device() { "$@" dapple-softroce --timeout 300 ibv_devices | grep -E '^ +rxe0 '; }

exit_code_comes_through() {
  local code=0
  as_nobody dapple-softroce --timeout 300 sh -c 'exit 7' || code=$?
  [ "$code" = 7 ]
}

# says_how_to_get_a_kernel: without a kernel, dapple-softroce must end with 126 and one line.
says_how_to_get_a_kernel() {
  local code=0
  as_nobody dapple-softroce true >"$work/said" 2>&1 || code=$?
  cat "$work/said" && echo "it ended with $code"
  [ "$code" = 126 ] &&
    grep -qE "^dapple-softroce: cannot write to /nonexistent/.* root can run 'dapple-softroce --prepare --system' for all users\$" "$work/said"
}

pings() {
  # shellcheck disable=SC2016  # for the guest's shell
  as_nobody dapple-softroce --timeout 300 sh -c "$(cat "$root/scripts/lib/rping.bash")"'
    work=$(mktemp -d)
    rping -s -a "$SOFTROCE_ADDRESS" -C 3 >"$work/server" 2>&1 & server=$!
    while :; do
      rping -c -v -a "$SOFTROCE_ADDRESS" -C 3 >"$work/client" 2>&1
      if rping_ended $? "$work/client" && grep "ping data" "$work/client"; then break; fi
      kill -0 "$server" || { cat "$work/server" "$work/client" && exit 1; }
      sleep 1
    done
    wait "$server"
    rping_ended $? "$work/server" || { cat "$work/server" && exit 1; }' >"$work/said" 2>&1 &&
    grep 'ping data: rdma-ping-2' "$work/said" || { cat "$work/said" && return 1; }
}

# fetches_as_nobody: uses the user's own cache instead of the system's.
fetches_as_nobody() {
  inside sh -c 'mv /var/cache/dapple /var/cache/away && mkdir -m 777 /srv/cache' &&
    inside setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/nonexistent DAPPLE_CACHE=/srv/cache dapple-softroce --prepare &&
    sees_device as_nobody env DAPPLE_CACHE=/srv/cache && inside mv /var/cache/away /var/cache/dapple
}

test_softroce() {
  fresh
  check "dapple-softroce is installed alone" install dapple-softroce ibverbs-utils rdmacm-utils
  check "nothing else of ours comes with it" is libdapple1 none
  check "its page is there" inside test -e /usr/share/man/man1/dapple-softroce.1.gz
  check "without a kernel it says in one line how to get one" says_how_to_get_a_kernel
  check "root fetches the kernel for all users" inside dapple-softroce --prepare --system
  check "nobody has the device" sees_device as_nobody
  check "nobody gets the command's exit code" exit_code_comes_through
  check "rping runs" pings
  if inside setpriv --reuid 65534 --clear-groups unshare --user true; then
    check "in unprivileged namespaces it has the device" sees_device in_namespaces
  else
    echo "SKIP in unprivileged namespaces: the user nobody may make none here"
  fi
  check "a user fetches a kernel" fetches_as_nobody
  check "it is purged" inside apt-get -y -q purge dapple-softroce
  check "the kernels have gone" test ! -e "$here/var/cache/dapple"
}
