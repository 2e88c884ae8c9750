// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <string>
#include <vector>

namespace dapple {

// Prints rows of words as columns, each as wide as its widest word, for a terminal or a file. The first row is the
// headline; an empty word is printed as a hyphen. The last column is not padded.
std::string format_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace dapple
