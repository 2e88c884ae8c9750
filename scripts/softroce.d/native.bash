# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154  # the parts share their variables; bash -u checks them
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# --native: runs the command on this machine, with this machine's RDMA device.

run_native() {
  local path name='' limit=()
  for path in /sys/class/infiniband/*; do
    [ -e "$path" ] || continue
    name=${path##*/}
    break
  done
  [ -n "$name" ] || die "$kExitCannotStart" 'this machine has no RDMA device; leave out --native to use a virtual machine'
  compgen -G '/dev/infiniband/uverbs*' >/dev/null ||
    die "$kExitCannotStart" "this machine has $name, but no /dev/infiniband/uverbs* (module ib_uverbs)"
  [ "$timeout" = 0 ] || limit=(timeout -k 5 "$timeout")
  eval "$caller_environment"
  [ "${#settings[@]}" = 0 ] || export "${settings[@]}"
  export SOFTROCE_DEVICE=$name
  exec "${limit[@]}" "${command1[@]}"
  exit 127
}
