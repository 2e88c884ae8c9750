# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154  # shared with the scripts that source it
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# Runs other projects' programs in two network namespaces with a veth pair between them: a server in the one, at
# 10.77.0.2, and its client in this one, at 10.77.0.1. They run as nobody if this user is root, otherwise as this user.
# Sourced with $run set to dapple-run.

# in_two_networks [OPTION...] SCRIPT ARGUMENT...: runs SCRIPT in namespaces of its own, which unshare makes with these
# options too, and which cannot reach Debian's archive. Ends the test if something is missing.
in_two_networks() {
  local program map=()
  for program in ip nsenter setpriv; do
    PATH=$PATH:/usr/sbin command -v "$program" >/dev/null || { echo "SKIP: no $program"; exit 77; }
  done
  [ "$(id -u)" = 0 ] || map=(-r)
  unshare "${map[@]}" -n true 2>/dev/null || { echo "SKIP: no network namespace can be made"; exit 77; }
  exec unshare "${map[@]}" -n "$@"
}

# fetch SCRIPT NAMES: fetches programs by that script of scripts/lib, or ends the test.
fetch() {
  programs=$("$(dirname "$(realpath "${BASH_SOURCE[0]}")")/../../../scripts/lib/$1") || {
    echo "SKIP: $2 cannot be fetched"
    exit 77
  }
  export programs
}
fetch_transports() { fetch transports 'UCX, libfabric and pyverbs'; }

# Sets work, a folder that every user may write to. Ends the test if this system cannot make such networks.
make_two_networks() {
  PATH=$PATH:/usr/sbin
  export DAPPLED_LINGER=0.1
  work=$(mktemp -d) || exit 1
  chmod 777 "$work"
  unshare -n sleep 600 &
  other=$!
  # shellcheck disable=SC2046  # one word for each process
  trap 'kill $other $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT
  while [ "$(readlink /proc/$other/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
  there=(nsenter -t "$other" -n --)
  ip link set lo up && "${there[@]}" ip link set lo up
  [ -e /proc/sys/net/ipv6 ] || { echo "SKIP: this kernel has no IPv6"; exit 77; }
  ip link add va type veth peer name vb netns $other || { echo "SKIP: no veth"; exit 77; }
  # A link-local address would appear later, which is an event that makes UCX warn.
  ip link set va addrgenmode none && "${there[@]}" ip link set vb addrgenmode none
  ip addr add 10.77.0.1/24 dev va && ip addr add fd77::1/64 dev va nodad && ip link set va up
  "${there[@]}" ip addr add 10.77.0.2/24 dev vb && "${there[@]}" ip addr add fd77::2/64 dev vb nodad && "${there[@]}" ip link set vb up
  # The kernel reports a link up to a second later, and UCX leaves out devices without one.
  for _ in $(seq 100); do
    ip link show va | grep -q 'state UP' && "${there[@]}" ip link show vb | grep -q 'state UP' && break
    sleep 0.05
  done
  user=()
  if grep -q '^ *0 *0 *4294967295$' /proc/self/uid_map && [ "$(id -u)" = 0 ]; then
    user=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --no-new-privs)
    "${user[@]}" test -x "$run" || user=()
  fi
}

# unpack: sets root to the fetched programs, and lets them find their libraries. The user nobody may not read a user's
# cache.
unpack() {
  root=$work/root
  cp -a "$programs" "$root" || exit 1
  export LD_LIBRARY_PATH=$root/usr/lib/x86_64-linux-gnu PATH=$root/usr/bin:$PATH
}

# shellcheck source=tests/native/verdicts.bash
. "$(dirname "$(realpath "$0")")/../verdicts.bash"

# pair SERVER CLIENT: runs both command lines, and repeats the client until the server listens. Sets client_code and
# server_code. A server with `goes_on` is ended afterwards. Each program has `limit` seconds.
goes_on=
limit=60
pair() {
  local server_pid
  # shellcheck disable=SC2086  # a command line
  "${there[@]}" timeout -k 5 "$limit" "${user[@]}" "$run" $1 >"$work/server" 2>&1 &
  server_pid=$!
  for _ in $(seq 40); do
    sleep 0.25
    # shellcheck disable=SC2086
    timeout -k 5 "$limit" "${user[@]}" "$run" $2 >"$work/client" 2>&1
    client_code=$?
    [ $client_code != 0 ] || break
    grep -qiE 'refused|no route|unreachable|reject' "$work/client" || break
    kill -0 $server_pid 2>/dev/null || break
  done
  if [ -n "$goes_on" ] || [ "$client_code" != 0 ]; then kill $server_pid 2>/dev/null; fi
  wait $server_pid 2>/dev/null
  server_code=$?
  [ -z "$goes_on" ] || server_code=0
}

# try SERVER CLIENT: both must end with 0, and neither may print an error.
try() {
  pair "$@"
  judge "$2"
}

# judge CLIENT: the verdict on the last pair.
judge() {
  [ "$client_code" = 0 ] && [ "$server_code" = 0 ] && ! grep -qE 'WARN|ERROR|[Ff]ailed|dapple:' "$work/client" "$work/server"
  verdict $? "$1 (client $client_code, server $server_code)"
}
