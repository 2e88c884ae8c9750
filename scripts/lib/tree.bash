# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors

# name_tree FOLDER: sets `tree` to git's name for the present files of the working folder, committed or not. git's
# objects for that are in FOLDER, which must exist as long as the name is used, and not in the repository, which may
# belong to another user. Call it once in a process.
# shellcheck disable=SC2034  # the caller's
name_tree() {
  local objects index
  objects=$(git rev-parse --git-path objects) && index=$(git rev-parse --git-path index) && cp "$index" "$1/index" || return 1
  GIT_ALTERNATE_OBJECT_DIRECTORIES=$(realpath "$objects") GIT_OBJECT_DIRECTORY=$1
  export GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_OBJECT_DIRECTORY
  GIT_INDEX_FILE=$1/index git add -A 2>/dev/null && tree=$(GIT_INDEX_FILE=$1/index git write-tree)
}
