#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# The devcontainer feature: puts the release's archive into /usr/local/lib/dapple, or $PREFIX/lib/dapple, and its
# programs into bin. VERSION, RELEASE and ENVIRONMENT are the feature's options.
#
# The tools of development containers take the environment of all programs from a login shell, which reads a file in
# /etc/profile.d, or $PROFILE. The feature's "containerEnv" cannot hold it: LD_PRELOAD has a $, which an image would
# expand.
set -u
prefix=${PREFIX:-/usr/local} profile=${PROFILE:-/etc/profile.d}
[ -n "${RELEASE-}" ] || { echo "dapple: the option release names no folder" >&2 && exit 1; }
DAPPLE_RELEASE=$RELEASE DAPPLE_VERSION=${VERSION-} "$(dirname "$(realpath "$0")")/fetch" "$prefix/lib/dapple" || exit 1
mkdir -p "$prefix/bin" && for program in "$prefix/lib/dapple/bin"/*; do ln -sf "$program" "$prefix/bin/${program##*/}" || exit 1; done
# Programs of an earlier version that this one lacks.
for program in "$prefix/bin"/*; do
  [[ $(readlink "$program") != "$prefix/lib/dapple/bin/"* || -e $program ]] || rm "$program" || exit 1
done
rm -f "$profile/dapple.sh"
[ "${ENVIRONMENT-true}" = true ] || exit 0
# shellcheck disable=SC2016  # for that shell
mkdir -p "$profile" && printf 'if [ -x "%s" ]; then eval "$("%s" --env)"; fi\n' "$prefix/bin/dapple-run" "$prefix/bin/dapple-run" >"$profile/dapple.sh" &&
  chmod 644 "$profile/dapple.sh"
