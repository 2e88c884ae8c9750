// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dapple::sim {

// The program file whose offsets the following call gets.
void set_module_file(std::string path);
// The source lines of some places in the module, such as "provider/soft/same_host/ring.cpp:82"; empty for 0. Code of
// the C++ library counts as the line that has called it.
std::vector<std::string> source_lines(const std::vector<uint64_t>& places);

}  // namespace dapple::sim
