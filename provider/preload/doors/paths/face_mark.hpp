// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The name of the folder in which dappled renders the tree: dapple-face-HEX. It is unique, so that a path shows by
// itself that it lies in such a folder, also if the folder belongs to another dappled or to another mount namespace.
#pragma once

#include <stddef.h>
#include <sys/types.h>

namespace dapple::doors {

// The path as the program knows it ("/sys/class/infiniband"), in the real path of a file of the tree; null for any
// other path. A file that dappled has replaced has another path, which show() makes the known one.
const char* shown_path(const char* path);

// Replaces the real path of a file of the tree, of `size` bytes and a NUL, by the path that the program knows. Returns
// the new size. The kernel adds a word to the path of a file that is gone; the program finds the file of the next
// dappled at the path without it.
ssize_t show(char* path, ssize_t size);

}  // namespace dapple::doors
