// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The first test of a function that goes through folders by itself.
#pragma once

namespace dapple::doors {

// True if a walk through all folders below `path` comes to the tree, or to a folder of the kernel that has entries in
// the tree. Links do not count.
bool passes_tree(const char* path);

}  // namespace dapple::doors
