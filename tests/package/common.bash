# shellcheck shell=bash
# shellcheck disable=SC2154  # roots.bash sets variables
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# The common parts of the packages' tests: verdicts, Debian's own packages of uDAPL and librpma, temporary roots.
# Sourced with $root set to the project's folder.

# shellcheck source=scripts/lib/common.bash
. "$root/scripts/lib/common.bash"
# shellcheck source=scripts/lib/roots.bash
. "$root/scripts/lib/roots.bash"
# shellcheck source=tests/package/tells.bash
. "$root/tests/package/tells.bash"
[ "$(id -u)" = 0 ] || die "packages are installed by root only"

failures=0
verdict() { # 0|1 NAME
  if [ "$1" = 0 ]; then
    echo "passed $2"
  else
    echo "FAILED $2"
    [ ! -s "$work/out" ] || tail -n 25 "$work/out" | sed 's/^/    | /'
    failures=$((failures + 1))
  fi
  : >"$work/out"
}

# check NAME COMMAND...: shows the command's output if it fails.
check() {
  local name=$1
  shift
  "$@" >"$work/out" 2>&1 </dev/null
  verdict "$?" "$name"
}

# refused NAME PATTERN COMMAND...: the command must fail, with a line that matches the extended regular expression, and
# neither by a signal nor because a command is missing.
refused() {
  local name=$1 pattern=$2 code
  shift 2
  "$@" >"$work/out" 2>&1 </dev/null
  code=$?
  [ "$code" -gt 0 ] && [ "$code" -lt 124 ] && grep -aqE -- "$pattern" "$work/out"
  verdict "$?" "$name"
}

# original_debs: sets original to a folder with bookworm's packages of uDAPL and librpma, which serve later releases too.
original_debs() {
  local names=(libdapl2 libdapl-dev dapl2-utils librpma0 librpma-dev)
  original=$roots/original-debs-$(sha256sum <<<"${names[*]}" | head -c 8)
  [ ! -e "$original/complete" ] || return 0
  rm -rf "$original" && mkdir -p "$original" && "$root/scripts/lib/debian" fetch "$original" bookworm "${names[@]}" &&
    touch "$original/complete"
}

# fresh: sets here to a copy of the root in $clean, which the next call removes. Both sets of packages appear in /mnt.
fresh() {
  here=$work/root
  copy_of "$clean" "$here"
  rm -rf "$work/deb" && mkdir -p "$work/deb" && cp "$packages"/*.deb "$original"/debs/*.deb "$work/deb" && : >"$work/out"
  shown=("$work/deb")
}

# inside COMMAND...: runs the command in the root of the last fresh.
inside() { in_root "$here" "$@"; }

# install [OPTION...] PACKAGE...: installs with apt, from the files in /mnt/deb if they exist. Never asks.
install() {
  local words=() word file
  for word in "$@"; do
    for file in "$work/deb/$word"_*.deb; do [ ! -e "$file" ] || word=/mnt/deb/${file##*/}; done
    words+=("$word")
  done
  inside apt-get -y -q -o Dpkg::Use-Pty=0 install --no-install-recommends "${words[@]}"
}

# is PACKAGE STATUS: compares with dpkg's status: ii, rc, or none.
is() {
  local status
  status=$(inside dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null)
  status=${status%% *}
  if [ "${status:-none}" = un ]; then status=none; fi
  [ "${status:-none}" = "$2" ] || {
    echo "$1 is ${status:-none} and should be $2"
    return 1
  }
}
