#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# The devcontainer feature: puts the release's archive into /usr/local/lib/dapple, or $PREFIX/lib/dapple, and its
# programs into bin. VERSION and RELEASE are the feature's options.
set -u
prefix=${PREFIX:-/usr/local}
[ -n "${RELEASE-}" ] || { echo "dapple: the option release names no folder" >&2 && exit 1; }
DAPPLE_RELEASE=$RELEASE DAPPLE_VERSION=${VERSION-} "$(dirname "$(realpath "$0")")/fetch" "$prefix/lib/dapple" || exit 1
mkdir -p "$prefix/bin" && for program in "$prefix/lib/dapple/bin"/*; do ln -sf "$program" "$prefix/bin/${program##*/}" || exit 1; done
