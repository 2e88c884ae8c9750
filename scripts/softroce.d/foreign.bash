# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154  # the parts share their variables; bash -u checks them
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# Debian's kernels for other architectures, for tests that need no module (tests/emulated). Used with common.bash and
# kernel.bash.

foreign_place() { # KERNEL ARCHITECTURE
  printf '%s/%s-%s\n' "$(cache_dir)" "$1" "$2"
}

# Fills the place in the cache: image, release. Runs under the cache's lock.
fetch_foreign_kernel() { # KERNEL ARCHITECTURE
  local kernel=$1 architecture=$2 place suite new packages package wanted=() image
  place=$(foreign_place "$kernel" "$architecture")
  [ ! -e "$place/release" ] || return 0
  require_tools "$build_tools"
  suite=$(kernel_suite "$kernel")
  rm -rf "$place".new.*
  new=$(mktemp -d "$place.new.XXXXXX")
  open_suite "$new" "$suite" "$architecture"
  find_packages "$new/apt" "$architecture"
  # Newer kernels have the image in a package of its own, beside the modules' package.
  for package in "${packages[@]}"; do
    case $package in linux-image-* | linux-binary-*) wanted+=("$package") ;; esac
  done
  case ${wanted[0]:-} in
  linux-*-"$kernel".*) ;;
  '') die "$kExitCannotStart" "Debian's $suite has no linux-image-$architecture" ;;
  *) die "$kExitCannotStart" "Debian's $suite has moved on from kernel $kernel to ${wanted[0]}" ;;
  esac
  say "fetching ${wanted[*]}"
  download_packages "$new" "${wanted[@]}"
  unpack_debs "$new/debs" "$new/tree"
  image=$(find "$new/tree" -path '*/boot/vmlinu[xz]-*' -o -path '*/lib/modules/*/vmlinuz')
  [ -f "$image" ] || die "$kExitCannotStart" "no kernel in ${wanted[*]}"
  mv "$image" "$new/image"
  rm -rf "$new/apt" "$new/debs" "$new/tree" "$new/download.log"
  printf '%s\n' "${wanted[0]#linux-*-}" >"$new/release"
  rm -rf "$place"
  chmod 755 "$new"
  mv "$new" "$place"
}

# Sets foreign_image and foreign_release, from the cache if they are there.
prepare_foreign_kernel() { # KERNEL ARCHITECTURE
  local place
  place=$(foreign_place "$1" "$2")
  if [ ! -e "$place/release" ]; then
    with_lock "$1-$2" fetch_foreign_kernel "$1" "$2"
  fi
  foreign_image=$place/image
  foreign_release=$(<"$place/release")
}
