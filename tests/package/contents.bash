# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034  # the parts share their variables
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# The files and the control data of the packages.

# Every file of a package matches one of these; T is the folder of the architecture, D that of the package's
# documentation, C that of bash's completions.
doc='D/(copyright|changelog.*)'
declare -A contents=(
  [dapple]=''
  [dapple-doc]='usr/share/doc/dapple/(README|CHANGELOG|SECURITY)\.md|usr/share/doc/dapple/(docs|bench)/([a-z0-9]+/)?[A-Za-z0-9-]+\.(md|svg|png)'
  [dapple-softroce]='usr/bin/dapple-softroce|usr/share/dapple/softroce_vm/[a-z0-9_-]+(\.py)?|C/dapple-softroce
    usr/share/man/man1/dapple-softroce\.1\.gz'
  [dapple-fio]='usr/lib/T/dapple/fio/librpma_(apm|gpspm)_(client|server)\.so|usr/share/dapple/fio/librpma_(apm|gpspm)-(client|server)\.fio
    usr/share/man/man7/dapple-fio\.7\.gz'
  [libdapple1]='usr/lib/T/libdapple\.so\.1(\.0\.0)?'
  [libdapple-dev]='usr/include/infiniband/dappledv(_[a-z]+)?\.h|usr/lib/T/(libdapple\.so|pkgconfig/dapple\.pc)
    usr/lib/T/cmake/dapple/dapple-(config|config-version|dapple|dapple-none)\.cmake
    usr/share/man/man3/dappledv_[a-z_]+\.3\.gz|D/examples/.*'
  [dapple-provider]='usr/bin/dapple-run|C/dapple-run|usr/lib/T/dapple/libdapple-[a-z0-9]+\.so|usr/libexec/dapple/dappled|usr/share/man/man(1/dapple-(run|check)\.1|7/dapple-(soft|face)\.7)\.gz|usr/share/dapple/profiles/[a-z0-9_]+\.profile
    D/examples/(ci|containers|dapple-check)/[A-Za-z.-]+|usr/share/lintian/overrides/dapple-provider'
  [dapple-utils]='usr/bin/dapple-[a-z]+|C/dapple-[a-z]+|usr/share/man/man1/dapple-[a-z]+\.1\.gz|usr/share/man/man7/dapple\.7\.gz
    usr/share/lintian/overrides/dapple-utils'
  [dapple-udapl]='usr/lib/T/(libdat2?|libdapl(ofa|oscm|oucm|cma|scm))\.so\.[12](\.0\.0)?
    usr/share/man/man5/dat\.conf\.5\.gz|usr/share/man/man7/dapple-udapl\.7\.gz
    D/examples/dat\.conf|usr/share/lintian/overrides/dapple-udapl'
  [dapple-udapl-dev]='usr/include/dat2?/[a-z0-9_]+\.h|usr/lib/T/(libdat2?|libdapl(ofa|oscm|oucm|cma|scm))\.so
    usr/lib/T/pkgconfig/dat2?\.pc|usr/lib/T/cmake/dapple/dapple-dat2?(-none)?\.cmake
    usr/share/man/man3/[a-z0-9_]+\.3dat\.gz|D/examples/.*'
  [dapple-rpma]='usr/lib/T/librpma\.so\.0(\.0\.0)?|usr/share/lintian/overrides/dapple-rpma'
  [dapple-rpma-dev]='usr/include/librpma\.h|usr/lib/T/(librpma\.so|pkgconfig/librpma\.pc)
    usr/lib/T/cmake/dapple/dapple-rpma(-none)?\.cmake
    usr/share/man/man3/rpma_[a-z0-9_]+\.3\.gz|usr/share/man/man7/librpma\.7\.gz|D/examples/.*'
)

# Package, field and the field's exact value.
control_fields='libdapple1 Multi-Arch same
libdapple-dev Multi-Arch same
dapple Recommends dapple-doc, dapple-fio
dapple-fio Architecture amd64
dapple-doc Architecture all
dapple-doc Multi-Arch foreign
dapple-softroce Architecture amd64
dapple-softroce Multi-Arch foreign
dapple-utils Multi-Arch foreign
dapple-utils Suggests dapple-provider, dapple-udapl
dapple-udapl Multi-Arch same
dapple-udapl Provides libdapl2 (= 2.1.10.1.f1e05b7a-3)
dapple-udapl Conflicts libdapl2
dapple-udapl Replaces dapl2-utils, libdapl2
dapple-udapl-dev Multi-Arch same
dapple-udapl-dev Provides libdapl-dev (= 2.1.10.1.f1e05b7a-3)
dapple-udapl-dev Conflicts libdapl-dev
dapple-udapl-dev Replaces libdapl-dev
dapple-rpma Multi-Arch same
dapple-rpma Provides librpma0 (= 1.3.0)
dapple-rpma Conflicts librpma0
dapple-rpma Replaces librpma0
dapple-rpma-dev Multi-Arch same
dapple-rpma-dev Provides librpma-dev (= 1.3.0)
dapple-rpma-dev Conflicts librpma-dev
dapple-rpma-dev Replaces librpma-dev'

# deb_of PACKAGE
deb_of() { compgen -G "$packages/$1_*.deb"; }

# files_of PACKAGE: prints its files without folders.
files_of() { dpkg-deb --fsys-tarfile "$(deb_of "$1")" | tar -t | grep -v '/$' | sed 's,^\./,,'; }

no_others() { # PACKAGE
  local pattern=${contents[$1]} triplet
  triplet=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
  pattern=$(printf '%s\n' "$pattern" "$doc" | sed 's/^ *//' | paste -sd'|')
  pattern=${pattern//\/T\//\/$triplet\/}
  pattern=${pattern//C\//usr\/share\/bash-completion\/completions\/}
  pattern=${pattern//D\//usr\/share\/doc\/$1\/}
  ! files_of "$1" | grep -vE "^($pattern)\$"
}

# Our packages contain none of these: kernel modules and tools to build them, a list of plug-ins, configuration.
nothing_foreign() { ! files_of "$1" | grep -E '\.ko|dkms|libibverbs\.d|^etc/|modprobe|modules-load'; }

has_field() { # PACKAGE FIELD VALUE
  local value
  value=$(dpkg-deb -f "$(deb_of "$1")" "$2" | tr ',' '\n' | sed 's/^ *//' | sort | paste -sd, | sed 's/,/, /g')
  [ "$value" = "$3" ] || {
    echo "$1: $2 is '$value' and should be '$3'"
    return 1
  }
}

# depends_as PACKAGE PATTERN WANTED: the package's dependencies that match the pattern must be WANTED.
depends_as() {
  local depends
  depends=$(dpkg-deb -f "$(deb_of "$1")" Depends | sed 's/, */\n/g' | grep -E "$2")
  [ "$depends" = "$3" ] || { echo "$1 depends on '$depends' instead of '$3'" && return 1; }
}

# depends_on PACKAGE PATTERN: the pattern must match one whole dependency.
depends_on() {
  local depends
  depends=$(dpkg-deb -f "$(deb_of "$1")" Depends | sed 's/, */\n/g')
  grep -qxE -- "$2" <<<"$depends" || { echo "$1 depends on ${depends//$'\n'/, }" && return 1; }
}

# has_symbols PACKAGE PATTERN...: each pattern must match a line of its symbols file.
has_symbols() {
  local symbols pattern
  symbols=$(dpkg-deb -I "$(deb_of "$1")" symbols) || return 1
  for pattern in "${@:2}"; do
    grep -qxE -- "$pattern" <<<"$symbols" || { echo "$symbols" && echo "no line is $pattern" && return 1; }
  done
}

# depends_on_what_it_says: the package of softroce must depend on the packages that the script itself names, and on apt.
depends_on_what_it_says() {
  diff <({ scripts/softroce --packages && echo apt; } | sort) <(dpkg-deb -f "$(deb_of dapple-softroce)" Depends | tr -s ', ' '\n' | sort)
}

# docs_are_whole: every page and picture of the tree must be there, under the names by which they refer to each other.
docs_are_whole() {
  diff <({ git ls-files docs | grep -E '\.(md|svg|png)$' && git ls-files bench | grep -E '^bench/[^/]*\.(md|svg)$' && printf '%s\n' CHANGELOG.md README.md SECURITY.md; } | sort) \
    <(files_of dapple-doc | sed -n 's,^usr/share/doc/dapple/,,p' | sort)
}

# is_small PACKAGE BYTES: its libraries must not be larger. The package has the provider's code once for each version of
# the API.
is_small() {
  local size
  size=$(dpkg-deb --fsys-tarfile "$(deb_of "$1")" | tar -tv | awk '/\.so\./ { size += $3 } END { print size }')
  echo "$size bytes" && [ "$size" -lt "$2" ]
}

# lintian_is_silent FOLDER: about the packages in it.
lintian_is_silent() { ! grep -v '^N:' "$1/lintian"; }

test_contents() {
  local deb package field value
  for deb in "$packages"/*.deb; do
    package=$(dpkg-deb -f "$deb" Package)
    case $package in *-dbgsym) continue ;; esac
    check "$package holds what it should, $(files_of "$package" | wc -l) files" no_others "$package"
    check "$package has no kernel module, plug-in list or configuration" nothing_foreign "$package"
  done
  while read -r package field value; do
    check "$package says $field: $value" has_field "$package" "$field" "$value"
  done <<<"$control_fields"
  # A library that throws unwinds with the system's libgcc_s, and none uses the system's libstdc++: docs/abi.md.
  for package in dapple-udapl dapple-rpma; do
    check "$package depends on libgcc-s1" depends_on "$package" 'libgcc-s1 \(>= [34]\.[0-9.]+\)'
  done
  for package in libdapple1 dapple-provider dapple-udapl dapple-rpma dapple-fio; do
    check "$package does not depend on libstdc++" depends_as "$package" '^libstdc' ''
  done
  check "dapple-utils needs our library of uDAPL or the original's" depends_as dapple-utils dapl 'dapple-udapl | libdapl2'
  # These files determine a program's dependencies, which the autopkgtest "dependencies" gets from dpkg-shlibdeps.
  check "libdapl2 is as good for the original's symbols" has_symbols dapple-udapl 'libdat2\.so\.2 dapple-udapl \| libdapl2' \
    '\| dapple-udapl #MINVER#' ' dat_ia_openv@DAT_2\.0 [0-9.]+~?' ' dat_cno_trigger@DAPPLE_DAT_1 [0-9.]+~? 1'
  check "DAT 1.2 is ours alone" has_symbols dapple-udapl 'libdat\.so\.1 dapple-udapl #MINVER#' ' dat_ia_openv@DAT_1\.2 [0-9.]+~?' \
    ' dat_ia_openv@SUNW_1\.1 [0-9.]+~?'
  check "librpma0 is as good for the original's symbols" has_symbols dapple-rpma \
    'librpma\.so\.0 dapple-rpma \| librpma0 \(>= 1\.2\.0\)' ' rpma_flush@LIBRPMA_1\.0 [0-9.]+~?'
  check "dapple-softroce depends on what it says" depends_on_what_it_says
  check "dapple-doc holds every page and picture" docs_are_whole
  check "the libraries of dapple-udapl take less than 2.5 MB" is_small dapple-udapl 2500000
  local folder
  for folder in "$packages" "$packages/source"; do
    [ ! -e "$folder/lintian" ] || check "lintian has nothing to say about $(basename "$folder"/*.changes)" lintian_is_silent "$folder"
  done
  [ ! -e "$packages/same" ] || verdict 0 "a second source package and build gave the same bytes"
}
