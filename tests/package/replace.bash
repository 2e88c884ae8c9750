# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034  # the parts share their variables
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# dapple-rpma replaces librpma0, and dapple-udapl replaces libdapl2. /etc/dat.conf belongs to libdapl2: it stays when
# libdapl2 is removed, and also when it is purged while dapple-udapl, which uses the file, is installed.

conf_is() { cmp "$here/etc/dat.conf" "$work/dat.conf"; }

# The messages of apt and dpkg about two packages that exclude each other, on each release.
kept='Packages need to be removed but remove is disabled'
conflicting='Conflicts: libdapl2'
not_both='conflicting packages - not installing'

change_conf() {
  printf '# changed\nofa-v2-mine u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "d0 0" ""\n' >>"$here/etc/dat.conf"
}

# conf_is_used unmodified|modified: entries of the file have their library, including the user's own, and a program sees
# them without errors.
conf_is_used() {
  local entries=(ofa-v2-ib0) entry
  [ "$1" = unmodified ] || entries+=(ofa-v2-mine)
  info_tells inside dapple-info --all || return 1
  for entry in "${entries[@]}"; do
    grep -qE "^$entry .* /etc/dat\.conf:[0-9]+ +/.*/libdaplofa\.so\.2" "$work/said" || { cat "$work/said" && return 1; }
  done
}

# purged_removed: does the same as "apt purge '~c'": purges every removed package whose configuration is left.
purged_removed() {
  inside apt-get -y -q purge '~c' && is libdapl2 none
}

# replace_with unmodified|modified CASE PACKAGE...: replaces these PACKAGEs of the original.
replace_with() {
  local conf=$1 case=$2 new=(dapple-udapl libdapple1 dapple-utils) gone package
  shift 2
  fresh
  check "$case: the original" install "$@"
  [ "$conf" = unmodified ] || change_conf
  cp "$here/etc/dat.conf" "$work/dat.conf"
  for package in "$@"; do [ "$package" != libdapl-dev ] || new+=(dapple-udapl-dev libdapple-dev); done
  check "$case: is replaced without a question" install "${new[@]}"
  for package in "$@"; do
    case $package in
      libdapl2) check "$case: $package is removed, with its configuration left" is "$package" rc ;;
      libdapl-dev) check "$case: $package is removed" is "$package" none ;;
      *) check "$case: $package stays" is "$package" ii ;;
    esac
  done
  check "$case: dat.conf is untouched" conf_is
  check "$case: dat.conf is used" conf_is_used "$conf"
  check "$case: ours is reinstalled" install --reinstall dapple-udapl
  check "$case: dat.conf is untouched still" conf_is
  check "$case: the old is purged, as all that is removed" purged_removed
  check "$case: ours is there" is dapple-udapl ii
  check "$case: dat.conf is untouched after that" conf_is
  check "$case: dat.conf is used after that" conf_is_used "$conf"
  # Packages that need libdapl2 are removed with ours; otherwise a newer apt installs libdapl2 again for them, and dpkg
  # asks about the file.
  gone=("${new[@]}")
  ! is dapl2-utils ii >/dev/null || gone+=(dapl2-utils)
  check "$case: ours is removed" inside apt-get -y -q purge "${gone[@]}"
  check "$case: dat.conf stays, as a file of the user's own" conf_is
  check "$case: nothing of ours is left in dpkg's diversions" not_diverted
}

# Our package alone replaces libdapl2 and libdapl-dev, which needs it.
replace_headers() {
  fresh
  check "headers: the original" install libdapl2 libdapl-dev
  refused "headers: apt asks before it removes" 'Do you want to continue|Continue\?' \
    inside sh -c 'exec apt-get -q install --no-install-recommends /mnt/deb/dapple-udapl_*.deb /mnt/deb/libdapple1_*.deb'
  check "headers: libdapl-dev stays then" is libdapl-dev ii
  check "headers: libdapl2 is replaced" install dapple-udapl libdapple1
  check "headers: ours is there" is dapple-udapl ii
  check "headers: libdapl2 is removed" is libdapl2 rc
  check "headers: libdapl-dev is removed" is libdapl-dev none
  check "headers: ours do not come by themselves" is dapple-udapl-dev none
}

# and_back unmodified|modified: the original replaces ours again.
and_back() {
  local case="back, $1"
  fresh
  check "$case: the original" install libdapl2
  [ "$1" = unmodified ] || change_conf
  cp "$here/etc/dat.conf" "$work/dat.conf"
  check "$case: is replaced" install dapple-udapl libdapple1
  check "$case: the original comes back" install libdapl2
  check "$case: ours has gone" is dapple-udapl none
  check "$case: dat.conf is the same" conf_is
  check "$case: it is libdapl2's again" not_diverted
  check "$case: the original is purged" inside apt-get -y -q purge libdapl2
  check "$case: dat.conf goes with it" test ! -e "$here/etc/dat.conf"
}

# removed_first unmodified|modified: purges ours while the original is removed but not purged; then installs the
# original.
removed_first() {
  local case="removed first, $1"
  fresh
  check "$case: the original" install libdapl2
  [ "$1" = unmodified ] || change_conf
  cp "$here/etc/dat.conf" "$work/dat.conf"
  check "$case: is replaced" install dapple-udapl libdapple1 dapple-utils
  check "$case: ours is purged" inside apt-get -y -q purge dapple-udapl libdapple1 dapple-utils
  check "$case: ours has gone" is dapple-udapl none
  check "$case: the configuration is libdapl2's still" is libdapl2 rc
  check "$case: dat.conf stays" conf_is
  check "$case: nothing of ours is left in dpkg's diversions" not_diverted
  check "$case: the original is installed again" install libdapl2
  check "$case: it is there" is libdapl2 ii
  check "$case: dat.conf is the same" conf_is
}

test_refusals() {
  fresh
  install libdapl2 libdapl-dev >"$work/out" 2>&1 || verdict 1 "the original can be installed"
  refused "apt refuses ours beside the original" "$kept" install --no-remove dapple-udapl libdapple1
  refused "apt refuses both at once" "$conflicting" install dapple-udapl libdapple1 libdapl2
  refused "apt refuses our headers beside the original's" "$kept" \
    install --no-remove dapple-udapl-dev dapple-udapl libdapple1 libdapple-dev
  check "the original is as it was" is libdapl2 ii
  fresh
  install dapple-udapl libdapple1 >"$work/out" 2>&1 || verdict 1 "ours can be installed"
  refused "apt refuses the original beside ours" "$kept" install --no-remove libdapl2
  # shellcheck disable=SC2016  # for the inner shell
  refused "dpkg refuses the original beside ours" "$not_both libdapl2" inside sh -c 'dpkg -i /mnt/deb/libdapl2_*.deb'
  check "ours is as it was" is dapple-udapl ii
}

# dapple-info does not mention a file that it does not use.
info_is_silent() { info_tells inside dapple-info && ! grep -ai 'dat\.conf' "$work/said"; }

test_hostile_conf() {
  fresh
  "$root/tests/package/hostile-conf" >"$here/etc/dat.conf"
  cp "$here/etc/dat.conf" "$work/dat.conf"
  check "a hostile dat.conf does not keep ours from being installed" install dapple-udapl libdapple1 dapple-utils
  check "dapple-info does not look at it" info_is_silent
  refused "dapple-info --dat survives it and says so" '^dat: /etc/dat\.conf:1: .*line ignored' inside dapple-info --dat
  check "it is as it was" conf_is
}

# This package's librpma.so.0 is the one that programs in the root load.
rpma_is_of() {
  inside sh -c 'file=$(ldconfig -p | sed -n "s/.*librpma\.so\.0 .*=> //p") && dpkg -S "$(realpath "$file")"' | grep "^$1:"
}

# dapple-rpma replaces librpma0 and, with -dev, librpma-dev; and back. Neither has any configuration.
replace_rpma() {
  fresh
  check "librpma: the original" install librpma0 librpma-dev
  check "librpma: the original's library is found" rpma_is_of librpma0
  refused "librpma: apt refuses ours beside it" "$kept" install --no-remove dapple-rpma libdapple1
  check "librpma: is replaced without a question" install dapple-rpma dapple-rpma-dev libdapple1 libdapple-dev
  check "librpma: librpma0 is removed" is librpma0 none
  check "librpma: librpma-dev is removed" is librpma-dev none
  check "librpma: ours is found" rpma_is_of dapple-rpma
  refused "librpma: apt refuses the original beside ours" "$kept" install --no-remove librpma0
  # shellcheck disable=SC2016  # for the inner shell
  refused "librpma: dpkg refuses the original beside ours" "$not_both librpma0" inside sh -c 'dpkg -i /mnt/deb/librpma0_*.deb'
  check "librpma: ours is as it was" is dapple-rpma ii
  check "librpma: the original comes back" install librpma0 librpma-dev
  check "librpma: ours has gone" is dapple-rpma none
  check "librpma: its headers have gone" is dapple-rpma-dev none
  check "librpma: the original's library is found again" rpma_is_of librpma0
}

test_replace() {
  local conf
  replace_rpma
  replace_with unmodified 'unmodified' libdapl2
  replace_with modified 'modified' libdapl2
  replace_with unmodified 'unmodified, -dev' libdapl2 libdapl-dev dapl2-utils
  replace_with modified 'modified, -dev' libdapl2 libdapl-dev dapl2-utils
  replace_headers
  for conf in unmodified modified; do
    and_back "$conf"
    removed_first "$conf"
  done
  test_refusals
  test_hostile_conf
}
