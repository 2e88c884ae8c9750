// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// DAPPLE_SEED: one number for everything that the device of this process does at random.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "provider/member/problem.hpp"

namespace dapple::soft {

// A decimal number of 64 bits. False if the text is not such a number.
bool parse_seed(std::string_view text, uint64_t& seed);

// Empty without DAPPLE_SEED. If it is malformed, no device can be opened: `problem` has the reason.
std::optional<uint64_t> seed_of_process();
bool seed_is_possible(Problem& problem);

}  // namespace dapple::soft
