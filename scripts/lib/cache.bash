# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# Sets cache to the user's folder for all that dapple's scripts fetch. Sourced.
cache=${DAPPLE_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/dapple}
case $cache in /*) ;; *) cache=$PWD/$cache ;; esac
