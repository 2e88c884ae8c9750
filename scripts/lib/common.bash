# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# The common parts of the scripts for users: messages, the setup of a Debian 12, building. Sourced with $root set to the
# project's folder, which becomes the working folder.

cd "${root:?}" || exit 1
logs=$root/build/log
mkdir -p "$logs" || exit 1

headline() { printf '\n== %s\n' "$*"; }
say() { printf '   %s\n' "$*"; }
die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# Prints the version of the tree, such as 1.0.0 or 1.0.0-rc1.
tree_version() {
  sed -n 's/^project(dapple VERSION \([0-9.]*\) .*/\1/p; s/^set(DAPPLE_VERSION_SUFFIX "\(.*\)")$/\1/p' CMakeLists.txt | tr -d '\n'
}

# logged NAME COMMAND...: runs the command with its output in build/log/NAME.log, and shows the end of that file if it
# fails.
logged() {
  local log=$logs/$1.log
  shift
  if ! "$@" >"$log" 2>&1 </dev/null; then
    printf 'This failed: %s\nThe end of its output (all of it: %s):\n' "$*" "${log#"$root"/}" >&2
    tail -n 40 "$log" >&2
    return 1
  fi
}

# The seconds between two lines about the present step, in a log.
step_interval=30

# steps [LOG]: reads the output of Ninja or apt-get and prints the present step: one line on a terminal, or a line twice a minute in a
# log. With LOG the output goes to that file, otherwise all lines but the steps are printed.
steps() {
  local log=${1-} line step last=$SECONDS
  while IFS= read -r line || [ -n "$line" ]; do
    [ -z "$log" ] || printf '%s\n' "$line" >>"$log"
    if [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]]; then
      step="compiling, ${BASH_REMATCH[1]} of ${BASH_REMATCH[2]}"
    elif [[ $line =~ ^Get:[0-9]+\ [^\ ]+\ [^\ ]+\ [^\ ]+\ ([^\ ]+) ]]; then
      step="fetching ${BASH_REMATCH[1]}"
    elif [[ $line =~ ^(Unpacking|Setting\ up)\ ([^\ ]+) ]]; then
      step="${BASH_REMATCH[1],} ${BASH_REMATCH[2]}"
    else
      [ -n "$log" ] || printf '%s\n' "$line"
      continue
    fi
    if [ -t 1 ]; then
      printf '\r\033[K   %s' "$step"
    elif [ $((SECONDS - last)) -ge "$step_interval" ]; then
      say "$step"
      last=$SECONDS
    fi
  done
  [ ! -t 1 ] || printf '\r\033[K'
}

# as_root COMMAND...: uses sudo if the user is not root.
as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo -- "$@"
  else
    printf 'neither root nor sudo: cannot run %s\n' "$*" >&2
    return 1
  fi
}

apt_get() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -y -q -o Dpkg::Use-Pty=0 -o Dpkg::Options::=--force-confold \
    -o Acquire::Retries=3 -o DPkg::Lock::Timeout=600 "$@"
}

# Prints the packages of the groups that are not installed.
missing_packages() {
  local packages package
  # The program itself would need python3, which may be missing.
  packages=$(awk -v groups=" $* " 'NF && index(groups, " " $1 " ") { print $2 }' scripts/lib/packages scripts/softroce_vm/packages) ||
    return 1
  sort -u <<<"$packages" | while IFS= read -r package; do
    # shellcheck disable=SC2016  # the field is dpkg's
    case $(dpkg-query -W -f='${Status}' "$package" 2>/dev/null) in
      'install ok installed') ;;
      *) echo "$package" ;;
    esac
  done
}

install_packages() {
  : >"$logs/apt-install.log"
  apt_get install --no-install-recommends "$@" 2>&1 </dev/null | steps "$logs/apt-install.log"
  return "${PIPESTATUS[0]}"
}

# set_up GROUP...: installs the missing packages of these groups of scripts/lib/packages, or of "vm", scripts/softroce's
# own.
set_up() {
  local missing started=$SECONDS
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    die "this script needs apt-get, which this machine lacks; scripts/lib/packages lists the packages"
  fi
  missing=$(missing_packages "$@") || die "cannot tell which packages are missing"
  [ -n "$missing" ] || return 0
  headline "Installing $(wc -w <<<"$missing") Debian packages"
  fold -s -w 100 <<<"${missing//$'\n'/ }" | sed 's/^/   /'
  # The present lists may be sufficient; stale or absent ones are fetched only if not.
  # shellcheck disable=SC2086  # a list of words
  if ! install_packages $missing; then
    say "fetching the package lists"
    logged apt-update apt_get update || die "apt-get update failed; is the network there?"
    # shellcheck disable=SC2086  # a list of words
    install_packages $missing || {
      printf 'The end of the output of apt-get install (all of it: %s):\n' "${logs#"$root"/}/apt-install.log" >&2
      tail -n 40 "$logs/apt-install.log" >&2
      die "apt-get install failed"
    }
  fi
  say "done in $((SECONDS - started)) s"
}

# build PRESET [TARGET...]: configures and builds the preset, or these targets of it.
build() {
  local preset=$1 started=$SECONDS targets=()
  shift
  [ $# = 0 ] || targets=(--target "$@")
  headline "Building ($preset)"
  # These are set each time, because a build folder may be older than the folders in the cache.
  logged "configure-$preset" cmake --preset "$preset" ${DAPPLE_ORIGINAL_DAPL:+"-DDAPPLE_ORIGINAL_DAPL=$DAPPLE_ORIGINAL_DAPL"} \
    ${DAPPLE_QEMU_USER:+"-DDAPPLE_QEMU_USER=$DAPPLE_QEMU_USER"} || return 1
  # On a terminal Ninja shows its progress in one line; in a log it would print a line for each file.
  if [ -t 1 ]; then
    cmake --build --preset "$preset" "${targets[@]}" </dev/null || return 1
  else
    cmake --build --preset "$preset" "${targets[@]}" 2>&1 </dev/null | steps
    [ "${PIPESTATUS[0]}" = 0 ] || return 1
  fi
  say "done in $((SECONDS - started)) s, in build/$preset"
}
