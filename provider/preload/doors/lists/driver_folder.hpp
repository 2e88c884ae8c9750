// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// libibverbs' folder of names of drivers. A system without the kernel's drivers, such as a small container, lacks it,
// and libibverbs prints a warning in every program.
#pragma once

#include <dirent.h>

namespace dapple::doors {

// An empty folder in the place of libibverbs' missing one; null with ENOENT for any other path.
DIR* driver_folder(const char* path);

}  // namespace dapple::doors
