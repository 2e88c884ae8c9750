// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <string>

namespace dapple::run {

// Adds the entries of the folder `tree` to the folder `place`, which the process may not write to, by mounts: first at
// any depth where an entry is new. Entries of `place` stay, except files and links that `tree` has, too. The new
// entries and their folders, except /dev itself, cannot be written. Both are absolute paths. False on failure, and
// errno is set; some mounts may be there then.
bool cover(const std::string& place, const std::string& tree);

}  // namespace dapple::run
