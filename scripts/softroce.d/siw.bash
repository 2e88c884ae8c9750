# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154  # the parts share their variables; bash -u checks them
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# The kernel's software iWARP device, siw, as a module for the guest. Debian's kernels leave it out, so it is built from
# Debian's own source, with the headers of this kernel, by the compiler that built the kernel. All of these are unpacked
# into a folder that make sees as its root; nothing is installed. The result in the cache is
# KERNEL/tree/lib/modules/RELEASE/updates/siw.ko.

# The programs that make and the kernel's scripts run, besides the compiler.
readonly siw_tools='make dash bash coreutils sed grep gawk findutils'

siw_module() { # PLACE
  local place=$1
  printf '%s/tree/lib/modules/%s/updates/siw.ko\n' "$place" "$(<"$place/release")"
}

# Sets packages to the packages of the kernel's headers, and toolchain to those of the build programs.
find_siw_packages() { # DIR RELEASE
  local needs compiler
  needs=$(APT_CONFIG=$1/apt.conf apt-cache show --no-all-versions "linux-headers-$2" 2>/dev/null | sed -n 's/^Depends: //p')
  compiler=$(grep -oE 'gcc-[0-9]+' <<<"$needs" | head -n 1)
  if [ -z "$compiler" ]; then
    die "$kExitCannotStart" "Debian has moved on from kernel $2, so siw cannot be built for it; rm -r" \
      "$(cache_dir)/$kernel to fetch the present one"
  fi
  mapfile -t packages < <(grep -oE 'linux-(headers|kbuild|compiler|base)-[^ ,]+' <<<"$needs" | sort -u)
  # shellcheck disable=SC2046,SC2086  # lists of words
  mapfile -t toolchain < <(APT_CONFIG=$1/apt.conf apt-get -qq --no-install-recommends --print-uris install \
    "$compiler" $siw_tools $(printf '%s\n' "${packages[@]}" | grep kbuild) 2>/dev/null |
    sed -nE "s/^'[^']*' ([^_]*)_.*/\1/p")
  [ "${#toolchain[@]}" -gt 0 ] || die "$kExitCannotStart" "apt cannot find the dependencies of $compiler"
  packages=("linux-source-$kernel" "linux-headers-$2" "${packages[@]}")
}

# unpack_siw DEBS ROOT: unpacks siw's source to ROOT/siw, everything else to ROOT.
unpack_siw() {
  local deb folder
  # Debian 12's programs are still in /bin, but expect that /bin is /usr/bin.
  for folder in bin sbin lib lib64; do
    mkdir -p "$2/usr/$folder" && ln -s "usr/$folder" "$2/$folder"
  done
  for deb in "$1"/*.deb; do
    case $deb in
    */linux-source-*) ;;
    *) dpkg-deb --fsys-tarfile "$deb" | tar -xpf - -C "$2" --keep-directory-symlink || return ;;
    esac
  done
  # The installation of a package would make Debian's alternatives.
  ln -sf gawk "$2/usr/bin/awk"
  mkdir "$2/siw"
  dpkg-deb --fsys-tarfile "$1"/linux-source-*.deb | tar -xOf - --wildcards './usr/src/linux-source-*.tar.xz' |
    xz -dc -T0 | tar -xf - -C "$2/siw" --strip-components 5 --wildcards 'linux-source-*/drivers/infiniband/sw/siw/*'
  [ -e "$2/siw/siw_main.c" ]
}

# in_root ROOT SCRIPT: runs bash with that folder as its root. It has its own mounts of /dev, and of /proc for objtool.
in_root() {
  # shellcheck disable=SC2016  # for sh to expand
  local enter='mount --rbind /dev "$1/dev" && mount --rbind /proc "$1/proc" && exec chroot "$1" /usr/bin/bash -c "$2"'
  if ! unshare -rm true; then
    echo 'this needs a mount namespace, that is, root or unprivileged user namespaces; see unshare(1)'
    return 1
  fi
  PATH=/usr/sbin:/usr/bin:/sbin:/bin unshare -rm /bin/sh -c "$enter" sh "$1" "$2"
}

# Builds the module for KERNEL unless it exists. Runs under the cache's lock, after fetch_kernel.
build_siw() { # KERNEL
  local kernel=$1 place release module new packages toolchain
  place=$(cache_dir)/$kernel
  release=$(<"$place/release")
  module=$(siw_module "$place")
  [ ! -e "$module" ] || return 0
  require_tools "$build_tools"
  rm -rf "$place"/new-siw.*
  new=$(mktemp -d "$place/new-siw.XXXXXX")
  open_suite "$new" "$(kernel_suite "$kernel")"
  find_siw_packages "$new/apt" "$release"
  say "fetching ${packages[0]}, ${packages[1]} and a compiler (some 230 MB, not kept)"
  mkdir "$new/root"
  download_packages "$new" "${packages[@]}" "${toolchain[@]}"
  say 'unpacking them'
  unpack_siw "$new/debs" "$new/root" || die "$kExitCannotStart" "no siw in ${packages[0]}"
  say "building siw for $release"
  in_root "$new/root" "export PATH=/usr/bin:/bin LC_ALL=C
    make -s -j$(nproc) -C /usr/src/linux-headers-$release M=/siw CONFIG_RDMA_SIW=m modules &&
    objcopy -g -R .BTF -R .BTF.base /siw/siw.ko /siw/siw.small" >"$new/log" 2>&1 || {
    tail -n 20 "$new/log" >&2
    die "$kExitCannotStart" "cannot build siw for $release"
  }
  mkdir -p "${module%/*}"
  mv "$new/root/siw/siw.small" "$module"
  if ! depmod -b "$place/tree" "$release"; then
    rm -f "$module"
    die "$kExitCannotStart" "depmod failed for $release"
  fi
  rm -rf "$new"
}
