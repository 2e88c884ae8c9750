# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154  # the parts share their variables; bash -u checks them
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# Chooses KVM or emulation. A /dev/kvm that opens proves nothing: inside some virtual machines kernels do not boot with
# it. So one short boot decides, and its result is kept until this machine reboots or the kernel changes.

kvm_boots() {
  local dir result
  dir=$(mktemp -d /tmp/softroce.XXXXXX) || return
  # QEMU may abort: without a core dump, and without a message from this shell.
  (
    ulimit -c 0
    timeout -k 1 15 "${qemu[@]}" -accel kvm -cpu max -m 512 -kernel "$image_vmlinux" -initrd "$image_initramfs" \
      -append "$kernel_arguments softroce.probe" -serial "file:$dir/console" </dev/null
    true
  ) >/dev/null 2>&1
  grep -q 'softroce: probe passed' "$dir/console" 2>/dev/null
  result=$?
  rm -rf "$dir"
  return "$result"
}

# Sets accel to kvm or tcg for WANTED auto, kvm or tcg. The result is stored beside the kernel, or in the user's own
# folder if that is not writable.
choose_accel() { # PLACE WANTED
  local boot='' place own answer
  accel=$2
  [ "$accel" = auto ] || return 0
  accel=tcg
  if [ ! -r /dev/kvm ] || [ ! -w /dev/kvm ]; then return 0; fi
  own=$(cache_dir)/${1##*/}
  if [ -r /proc/sys/kernel/random/boot_id ]; then boot=$(</proc/sys/kernel/random/boot_id); fi
  answer=kvm-$image_release-$boot
  for place in "$1" "$own"; do
    if [ -n "$boot" ] && [ -s "$place/$answer" ]; then
      accel=$(<"$place/$answer")
      return
    fi
  done
  say 'trying whether KVM works here'
  if kvm_boots; then accel=kvm; fi
  [ -n "$boot" ] || return 0
  for place in "$1" "$own"; do
    {
      mkdir -p "$place" && rm -f "$place"/kvm-*
      echo "$accel" >"$place/$answer.new.$$" && mv "$place/$answer.new.$$" "$place/$answer" && return
    } 2>/dev/null
  done
  return 0
}
