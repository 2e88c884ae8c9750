// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A port's rate in Gb/s, as the speed and the width that drivers report for it.
#pragma once

#include <string_view>

#include "provider/protocol/device_attributes.hpp"

namespace dapple::face {

// Sets active_speed and active_width for a rate such as "400". False if no port has this rate.
bool find_rate(std::string_view rate, soft::DeviceAttributes& attributes);

// "2.5, 5, ... or 800 (Gb/s)".
void list_rates(char (&text)[96]);

}  // namespace dapple::face
