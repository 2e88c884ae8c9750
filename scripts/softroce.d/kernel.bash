# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154  # the parts share their variables; bash -u checks them
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# Fetches a Debian kernel with apt, which checks signatures and hashes, and unpacks it without installing it.
# The result in the cache: KERNEL/{vmlinux,release,tree/lib/modules/RELEASE}.

kernel_suite() { # KERNEL
  case $1 in
  6.1) echo bookworm ;;
  6.12) echo trixie ;;
  7.2) echo forky ;;
  *) return 1 ;;
  esac
}

# Prints the Debian archive of this machine, from its downloaded indexes, or from its sources if there are no indexes
# yet.
debian_site() { # SCRATCH
  local site=${DAPPLE_DEBIAN_MIRROR:-}
  # shellcheck disable=SC2016  # the fields are apt's
  local fields='$(ORIGIN)|$(LABEL)|$(SITE)'
  [ -n "$site" ] || site=$(apt-get indextargets --format "$fields" 'Created-By: Packages' 2>/dev/null |
    sed -n '/^Debian|Debian|/{s///p;q}')
  [ -n "$site" ] || site=$(apt-get -o Dir::State::Lists="$1/lists" --print-uris update 2>/dev/null |
    sed -nE "/^'(.*)\/dists\/(bookworm|trixie|forky|sid|(old)*stable|testing|unstable)\/InRelease'.*/{s//\1/p;q}")
  [ -n "$site" ] || die "$kExitCannotStart" \
    "no Debian archive among this machine's apt sources; name one in DAPPLE_DEBIAN_MIRROR"
  printf '%s\n' "${site%/}"
}

# Runs apt with a state of its own: one suite, this machine's way to the network (proxies, credentials), none of its
# hooks.
write_private_apt() { # DIR SUITE [ARCHITECTURE]
  local dir=$1 suite=$2 architecture=${3:-amd64} site
  mkdir -p "$dir/lists/partial" "$dir/archives/partial"
  site=$(debian_site "$dir") || exit
  printf 'deb [arch=%s signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n' \
    "$architecture" "$site" "$suite" >"$dir/sources.list"
  {
    apt-config dump | grep '^Acquire::' | grep -vE '^Acquire::(IndexTargets|Languages|Changelogs)'
    cat <<CONF
Acquire::Languages "none";
APT::Architecture "$architecture";
APT::Architectures { "$architecture"; };
APT::Sandbox::User "";
APT::Update::Error-Mode "any";
Dir::Etc::Main "/dev/null";
Dir::Etc::Parts "/dev/null";
Dir::Etc::SourceList "$dir/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Dir::State::Lists "$dir/lists";
Dir::State::Status "/dev/null";
Dir::Cache "$dir";
Dir::Cache::Archives "$dir/archives";
CONF
  } >"$dir/apt.conf"
}

# Reads the suite's index; if that fails, prints the reason in one line.
update_index() { # DIR SUITE
  local log=$1/update.log why
  APT_CONFIG=$1/apt.conf apt-get -q update >"$log" 2>&1 && return
  why=$(sed -nE 's/^[EW]: //p' "$log" | head -n 1)
  if grep -qE 'NO_PUBKEY|not signed|EXPKEYSIG|signatures were invalid|couldn.t be verified' "$log"; then
    die "$kExitCannotStart" "the keys of this machine's debian-archive-keyring cannot verify Debian's $2;" \
      "upgrade that package ($why)"
  fi
  die "$kExitCannotStart" "cannot read Debian's $2: ${why:-apt-get update failed}"
}

# Makes a folder to fetch into, with its own apt in DIR/apt, which has read the suite's index.
open_suite() { # DIR SUITE [ARCHITECTURE]
  say "reading the index of Debian's $2${3:+ for $3}"
  write_private_apt "$1/apt" "${@:2}"
  update_index "$1/apt" "$2"
}

# Fetches packages into DIR/debs, from the suite for which DIR was opened.
download_packages() { # DIR PACKAGE…
  mkdir -p "$1/debs"
  (cd "$1/debs" && APT_CONFIG=$1/apt/apt.conf apt-get -q download "${@:2}" >"$1/download.log" 2>&1) ||
    die "$kExitCannotStart" "cannot fetch ${*:2}: $(grep -m1 '^E: ' "$1/download.log")"
}

# Unpacks the fetched packages.
unpack_debs() { # DEBS TREE
  local deb
  mkdir -p "$2"
  for deb in "$1"/*.deb; do dpkg-deb -x "$deb" "$2" || die "$kExitCannotStart" "cannot unpack ${deb##*/}"; done
}

# Sets packages to those behind the suite's linux-image-ARCHITECTURE that have a version in their name: one, or several
# on newer suites (image, modules, …).
find_packages() { # DIR [ARCHITECTURE]
  local architecture=${2:-amd64} all needs package i=0
  all=("linux-image-$architecture")
  while [ "$i" -lt "${#all[@]}" ]; do
    needs=$(APT_CONFIG=$1/apt.conf apt-cache show --no-all-versions "${all[i]}" 2>/dev/null | sed -n 's/^Depends: //p' |
      tr ',' '\n' | grep -oE "linux-[a-z]+-[0-9][^ ]*-$architecture")
    for package in $needs; do
      [[ " ${all[*]} " = *" $package "* ]] || all+=("$package")
    done
    i=$((i + 1))
  done
  packages=("${all[@]:1}")
}

# Removes modules that no guest needs, such as sound and drivers of real hardware.
trim_modules() { # KERNEL_MODULES_DIR
  rm -rf "$1/sound" "$1"/drivers/net/{ethernet,wireless,wwan,can,usb} "$1/drivers/infiniband/hw"
  find "$1/drivers" -mindepth 1 -maxdepth 1 ! -name infiniband ! -name net ! -name virtio ! -name char -exec rm -rf {} +
}

unpack_kernel() { # DEBS TREE
  unpack_debs "$1" "$2"
  # Newer kernels have their modules in /usr/lib; modprobe searches one of the two places, depending on its version.
  if [ -d "$2/usr/lib/modules" ]; then
    mkdir -p "$2/lib"
    mv "$2/usr/lib/modules" "$2/lib/modules"
  fi
  rm -rf "${2:?}/usr"
  mkdir "$2/usr"
  ln -s ../lib "$2/usr/lib"
}

# Fills KERNEL's place in the cache. Runs under the cache's lock.
fetch_kernel() { # KERNEL
  local kernel=$1 suite cache new packages release image
  cache=$(cache_dir)
  [ ! -e "$cache/$kernel/release" ] || return 0
  require_tools "$build_tools"
  suite=$(kernel_suite "$kernel")
  rm -rf "$cache/new-$kernel".*
  new=$(mktemp -d "$cache/new-$kernel.XXXXXX")
  open_suite "$new" "$suite"
  find_packages "$new/apt"
  case ${packages[0]:-} in
  linux-*-"$kernel".*) ;;
  '') die "$kExitCannotStart" "Debian's $suite has no linux-image-amd64" ;;
  *) die "$kExitCannotStart" "Debian's $suite has moved on from kernel $kernel to ${packages[0]}" ;;
  esac
  say "fetching ${packages[*]}"
  download_packages "$new" "${packages[@]}"
  say 'unpacking it'
  unpack_kernel "$new/debs" "$new/tree"
  # The image is /boot/vmlinuz-RELEASE; newer kernels have it among the modules.
  image=$(find "$new/tree" -path '*/boot/vmlinuz-*' -o -path '*/lib/modules/*/vmlinuz')
  release=$(find "$new/tree/lib/modules" -mindepth 1 -maxdepth 1 -printf '%f\n')
  if [ ! -f "$image" ] || [ -z "$release" ]; then die "$kExitCannotStart" "no kernel in ${packages[*]}"; fi
  "$lib/extract-vmlinux" "$image" "$new/vmlinux" || exit "$kExitCannotStart"
  trim_modules "$new/tree/lib/modules/$release/kernel"
  depmod -b "$new/tree" "$release" || die "$kExitCannotStart" "depmod failed for $release"
  rm -rf "$new/apt" "$new/debs" "$new/tree/boot" "$image"
  printf '%s\n' "$release" >"$new/release"
  rm -rf "${cache:?}/$kernel"
  chmod 755 "$new"
  mv "$new" "$cache/$kernel"
}
