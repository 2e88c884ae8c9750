# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# Containers without an engine. Sourced by a script that is root in its user namespace, with these variables: build, a
# folder that the containers see; work, a folder that others can enter, whose file hosts, if it exists, is their
# /etc/hosts; kind, "root" if the script runs as the system's root.
# shellcheck disable=SC2154

# new_network NAME: makes the network namespace of a container, with lo; a process whose id is in the variable NAME
# holds it.
new_network() {
  local holder
  setpriv --pdeathsig KILL unshare --net sleep 600 &
  holder=$!
  while [ "$(readlink /proc/$holder/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
  nsenter --target "$holder" --net -- ip link set lo up
  printf -v "$1" %s "$holder"
}

# on_bridge HOLDER ADDRESS/BITS...: gives the network an eth0 on this namespace's bridge.
on_bridge() {
  local holder=$1 address nodad
  shift
  ip link show bridge0 >/dev/null 2>&1 || { ip link add bridge0 type bridge && ip link set bridge0 up; } || return 1
  ip link add "port$holder" type veth peer name eth0 netns "$holder" && ip link set "port$holder" master bridge0 up || return 1
  nsenter --target "$holder" --net -- ip link set eth0 up
  for address in "$@"; do
    # Otherwise the address is tentative for a second.
    nodad=(); case $address in *:*) nodad=(nodad) ;; esac
    nsenter --target "$holder" --net -- ip addr add "$address" dev eth0 "${nodad[@]}" || return 1
  done
}

# The complete environment of the programs.
environment=(PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/ LC_ALL=C.UTF-8)

# container HOLDER COMMAND [ARG...]: runs a container in that network, with mounts and processes of its own. The root is
# read-only and has the system's programs and $build, but nothing writable: no /tmp, no /dev/shm, no /dev/infiniband, no
# /sys. The command is process 1. It runs as nobody (or as CONTAINER_USER, a number, if the script runs as the system's
# root).
container() {
  local holder=$1
  shift
  # shellcheck disable=SC2016  # for that shell to expand
  setpriv --pdeathsig KILL nsenter --target "$holder" --net -- \
    unshare --mount --pid --ipc --uts --fork --kill-child -- bash -c '
    work=$1 build=$2 user=$3 kind=$4
    shift 4
    show() { mkdir -p "root$1" && mount --rbind "$1" "root$1" && { mount -o remount,bind,ro "root$1" || true; } 2>/dev/null; }
    mount --make-rprivate / && cd "$work" && mkdir -p root && mount -t tmpfs -o mode=755 tmpfs root && mkdir root/old root/proc root/dev &&
      ln -s usr/bin usr/sbin usr/lib usr/lib64 root/ && show /usr && show /etc && show "$build" && mount -t proc proc root/proc || exit 125
    for node in null zero full random urandom; do
      : >root/dev/$node && mount --bind /dev/$node root/dev/$node || exit 125
    done
    [ ! -e "$work/hosts" ] || mount --bind "$work/hosts" root/etc/hosts || exit 125
    mount -o remount,bind,ro root && cd root && pivot_root . old && cd / && umount -l /old || exit 125
    ulimit -l 64 -n 1024
    if [ "$kind" = root ]; then
      drop=(setpriv --reuid "$user" --regid "$user" --clear-groups)
    else
      drop=(unshare --user --map-user 65534 --map-group 65534 setpriv)
    fi
    # The kernel forgets the signal of --kill-child when a process changes its user.
    exec "${drop[@]}" --pdeathsig KILL --inh-caps=-all --bounding-set=-all --no-new-privs "$build/bin/confine" env -i "$@"
  ' container "$work" "$build" "${CONTAINER_USER:-65534}" "$kind" "${environment[@]}" "$@"
}
