// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Shows the environment variables of dapple that are set.
#pragma once

#include <string>

#include "provider/common/settings.hpp"
#include "tools/report/json.hpp"

namespace dapple::info {

// Empty if none is set.
std::string settings_for_people(const provider::Settings& settings);
Json settings_as_json(const provider::Settings& settings);

}  // namespace dapple::info
