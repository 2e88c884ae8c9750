# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034  # the parts share their variables
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# Tests the packages on a bare system.

ours=(dapple dapple-doc dapple-softroce dapple-fio libdapple1 libdapple-dev dapple-provider dapple-utils dapple-udapl dapple-udapl-dev dapple-rpma dapple-rpma-dev)

# Lists every file, except those of the package manager and the dynamic loader's cache.
files_in_root() {
  (cd "$here" && find . -xdev \( -path ./proc -o -path ./dev -o -path ./tmp -o -path ./mnt -o -path ./var/lib/dpkg \
    -o -path ./var/lib/apt -o -path ./var/cache -o -path ./var/log -o -path ./etc/ld.so.cache \) -prune -o -print | sort)
}

autopkgtest() { # NAME
  shown=("$work/deb" "$root/debian")
  inside "/mnt/debian/tests/$1"
}

# with_archive: makes our packages known to the root's apt, as from an archive.
with_archive() {
  (cd "$work/deb" && dpkg-scanpackages . >Packages) 2>"$work/scan" &&
    echo 'deb [trusted=yes] file:/mnt/deb ./' >"$here/etc/apt/sources.list.d/dapple.list" &&
    inside apt-get -q update -o Dir::Etc::SourceList=/etc/apt/sources.list.d/dapple.list -o Dir::Etc::SourceParts=- \
      -o APT::Get::List-Cleanup=0
}

dependencies_of_test() { awk -v name="$1" '$1 == "Tests:" { is = $2 == name } is && $1 == "Depends:" {
  sub(/^Depends: /, ""); gsub(/,/, " "); print }' debian/tests/control; }

unprivileged_info() {
  info_tells inside setpriv --reuid 65534 --clear-groups sh -c 'ulimit -l 64; exec dapple-info' || return 1
  grep -q 'Memory that may be locked.*64 KiB' "$work/said" && grep -q 'LimitMEMLOCK' "$work/said" || { cat "$work/said" && return 1; }
}

# The programs of an original package run on our libraries.
original_tools() {
  local tool
  for tool in dtest dtestcm dtestsrq dtestx; do
    inside sh -c "! ldd /usr/bin/$tool | grep 'not found'" || return 1
  done
  inside sh -c 'dtest -h 2>&1 | head -n 40' | grep -qi usage
}

# names_are_found: the loader must find each library of uDAPL under its SONAME, with all its dependencies.
names_are_found() {
  # shellcheck disable=SC2016  # for the inner shell
  inside sh -c 'for name in libdat2.so.2 libdaplofa.so.2 libdaploscm.so.2 libdaploucm.so.2 libdat.so.1 libdaplcma.so.1 libdaplscm.so.1; do
    ldconfig -p | grep "^.$name " && [ -z "$(LD_PRELOAD=$name true 2>&1)" ] || { echo "$name" && exit 1; }
  done'
}

# completion_loads: bash-completion must find ours by the program's name. Its newer releases use another name for that.
completion_loads() {
  # shellcheck disable=SC2016  # for the inner shell
  install bash-completion && inside bash -c '. /usr/share/bash-completion/bash_completion
    for tool in info test lat bw run softroce; do
      { _comp_load "dapple-$tool" || _completion_loader "dapple-$tool"; } 2>/dev/null
      complete -p "dapple-$tool" | grep " _dapple_" || exit 1
    done'
}

conf_is_not_missed() {
  info_tells inside dapple-info --dat && ! grep '/etc/dat\.conf' "$work/said"
}

not_diverted() { ! inside dpkg-divert --list | grep -F dat.conf; }

test_install() {
  fresh
  # Packages that ours depend on have files of their own in /etc.
  # shellcheck disable=SC2046  # words
  install fio ibverbs-utils rdmacm-utils libibverbs-dev $(scripts/softroce --packages) >"$work/out" 2>&1 || verdict 1 "rdma-core can be installed"
  files_in_root >"$work/files"
  check "all can be installed together" install "${ours[@]}"
  check "each library of uDAPL is found under its name" names_are_found
  check "no dat.conf is made" test ! -e "$here/etc/dat.conf"
  check "none is missed" conf_is_not_missed
  check "and none is diverted" not_diverted
  check "/etc is as it was" diff <(grep ^./etc/ "$work/files") <(files_in_root | grep ^./etc/)
  check "dapple-info says how much memory may be locked, and how to raise it" unprivileged_info
  check "dapl2-utils can be installed beside, with its dat.conf(5)" install dapl2-utils
  check "dat.conf(5) is ours" inside sh -c 'dpkg -S /usr/share/man/man5/dat.conf.5.gz | grep "^dapple-udapl"'
  check "Debian's tools load and run on ours" original_tools
  check "they can be reinstalled" install --reinstall "${ours[@]}"
  check "all can be removed" inside apt-get -y -q purge dapl2-utils "${ours[@]}"
  inside apt-get -y -q autoremove --purge >"$work/out" 2>&1
  check "nothing is left behind" diff "$work/files" <(files_in_root)

  fresh
  check "dapl2-utils can be there before" install libdapl2 dapl2-utils
  check "ours comes under it" install "${ours[@]}"
  check "it stays" is dapl2-utils ii
  check "bash completes the options of all programs" completion_loads
  beside_libdapl2
}

# beside_libdapl2: our tools use only the original's nodes, so installing them keeps its library.
beside_libdapl2() {
  fresh
  check "libdapl2 can be there without ours" install libdapl2
  check "dapple-utils comes beside it" install --no-remove dapple-utils libdapple1
  check "libdapl2 stays" is libdapl2 ii
  check "ours does not come with it" is dapple-udapl none
  check "dapple-info lists what that has" inside sh -c 'dapple-info --all | grep -E "^ofa-v2-ib0 .*/libdaplofa\.so\.2"'
  check "the other tools load it" inside sh -c 'for tool in test lat bw; do "dapple-$tool" --version || exit; done'
  check "ours takes its place under it" install dapple-udapl
  check "dapple-utils stays" is dapple-utils ii
}

test_autopkgtests() {
  local test
  for test in tools examples dependencies softroce fio; do
    fresh
    check "an archive of the packages" with_archive
    # shellcheck disable=SC2046  # words
    check "what the autopkgtest $test needs is installed from it" inside apt-get -y -q install --no-install-recommends \
      $(dependencies_of_test "$test")
    check "autopkgtest $test" autopkgtest "$test"
  done
}

# A root with all packages, and the examples of uDAPL and librpma compiled in it.
device_root() {
  fresh
  install "${ours[@]}" dapl2-utils rdmacm-utils ibverbs-utils ibverbs-providers build-essential pkgconf &&
    inside sh -c 'cp -r /usr/share/doc/dapple-udapl-dev/examples/dapple-demo /usr/share/doc/dapple-rpma-dev/examples/rpma /opt &&
      make -C /opt/dapple-demo && make -C /opt/rpma' &&
    cp "$root"/tests/package/{device-guest,hostile-conf} "$root/scripts/lib/rping.bash" "$root/debian/tests/device" "$here/opt/" && mkdir -p "$here/sys"
}

test_device() {
  check "a root with all of it" device_root
  scripts/softroce --timeout 600 -- tests/package/enter-guest "$here" /opt/device-guest 2>&1 </dev/null | tee "$work/device" |
    grep -E '^(passed|FAILED)'
  [ "${PIPESTATUS[0]}" = 0 ] && ! grep -q '^FAILED' "$work/device" || { cp "$work/device" "$work/out" && false; }
  verdict "$?" "the installed packages on a device"
}
