# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154  # the parts share their variables; bash -u checks them
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# Builds the initramfs: busybox, the two guest stages and the modules in load order.

# The modules of each guest; modprobe finds their dependencies and order.
readonly base_modules='virtio_pci 9pnet_virtio 9p overlay virtio_console dummy veth virtio_net'
# rxe of 6.1 asks the crypto layer for "crc32" when a link is added, so no dependency names crc32_generic; newer kernels
# lack that module.
readonly rdma_modules='?crc32_generic rdma_rxe rdma_ucm ib_umad'
# siw asks it for "crc32c" in the same way.
readonly siw_modules='?crc32c_generic siw rdma_ucm ib_umad'

# Prints the path of the initramfs. A guest without a device uses rxe's, and then loads none of its modules. If the
# kernel is the system's and the initramfs' sources have changed since, it is in the user's own folder.
initramfs_path() { # PLACE DEVICE
  local key kind=initramfs place=$1
  [ "$2" != siw ] || kind=initramfs-siw
  key=$({
    sha256sum <"$(static_busybox)"
    [ "$2" != siw ] || sha256sum <"$(siw_module "$place")"
    cat "$lib/initramfs.bash" "$lib/guest-init" "$lib/guest-stage2"
  } | sha256sum | cut -c 1-16)
  [ -e "$place/$kind-$key" ] || place=$(cache_dir)/${place##*/}
  printf '%s/%s-%s\n' "$place" "$kind" "$key"
}

# Copies the modules of LIST and their dependencies into DIR/modules, decompressed, and appends their names to the load
# list DIR/modules/NAME.
add_modules() { # TREE RELEASE DIR NAME LIST
  local tree=$1 release=$2 dir=$3/modules name=$4 module plan verb file target
  for module in $5; do
    plan=$(modprobe -C /dev/null -d "$tree" -S "$release" --show-depends "${module#\?}" 2>/dev/null) || {
      [ "${module:0:1}" = '?' ] && continue
      die "$kExitCannotStart" "kernel $release has no module $module"
    }
    while read -r verb file _; do
      [ "$verb" = insmod ] || continue
      target=${file##*/}
      target=${target%%.ko*}.ko
      [ ! -e "$dir/$target" ] || continue
      case $file in
      *.ko) cp "$file" "$dir/$target" ;;
      *.ko.xz) xz -dc "$file" >"$dir/$target" ;;
      *.ko.zst) zstd -qdc "$file" >"$dir/$target" ;;
      *) die "$kExitCannotStart" "module $file is compressed in an unknown way" ;;
      esac || die "$kExitCannotStart" "cannot unpack $file"
      printf '%s\n' "$target" >>"$dir/$name"
    done <<<"$plan"
  done
}

# Builds PATH for DEVICE and the kernel at PLACE unless it exists. Runs under the cache's lock.
build_initramfs() { # PLACE PATH DEVICE
  local place=$1 own=${2%/*} new busybox release modules=$rdma_modules
  [ "$3" != siw ] || modules=$siw_modules
  [ ! -e "$2" ] || return 0
  require_tools "$build_tools"
  busybox=$(static_busybox) || exit
  release=$(<"$place/release")
  rm -rf "$own/new-initramfs".*
  mkdir -p "$own" && new=$(mktemp -d "$own/new-initramfs.XXXXXX") || die "$kExitCannotStart" "cannot write to $own"
  mkdir -p "$new/root"/{bin,proc,sys,dev,modules,host,upper,root}
  add_modules "$place/tree" "$release" "$new/root" base "$base_modules"
  add_modules "$place/tree" "$release" "$new/root" rdma "$modules"
  cp "$busybox" "$new/root/bin/busybox"
  { echo '#!/bin/busybox sh' && cat "$lib/guest-init"; } >"$new/root/init"
  cp "$lib/guest-stage2" "$new/root/stage2"
  chmod 755 "$new/root/init" "$new/root/bin/busybox"
  (cd "$new/root" && find . | "$busybox" cpio -o -H newc -R 0:0 2>/dev/null | gzip -1) >"$new/image" ||
    die "$kExitCannotStart" 'cannot build the initramfs'
  mv "$new/image" "$2"
  rm -rf "$new"
  # Removes those of older versions of softroce; each start touches the one that it uses.
  find "$own" -maxdepth 1 -name 'initramfs-*' -mtime +14 -delete
}

# Gets everything that a start needs, from the cache if it is there. Sets image_place, image_vmlinux, image_initramfs
# and image_release.
prepare_image() { # KERNEL DEVICE
  image_place=$(kernel_place "$1" "$2")
  image_vmlinux=$image_place/vmlinux
  [ -e "$image_place/release" ] || with_lock "$1" fetch_kernel "$1"
  if [ "$2" = siw ] && [ ! -e "$(siw_module "$image_place")" ]; then with_lock "$1" build_siw "$1"; fi
  image_initramfs=$(initramfs_path "$image_place" "$2") || exit
  [ -e "$image_initramfs" ] || with_lock "$1" build_initramfs "$image_place" "$image_initramfs" "$2"
  image_release=$(<"$image_place/release")
  touch -c "$image_initramfs" 2>/dev/null || true
}
