// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The features of librpma on the device of an address.
#pragma once

#include <string>
#include <vector>

#include "tools/report/json.hpp"

namespace dapple::info {

struct RpmaFeature {
  const char* title;
  const char* key;
  bool has;
  std::string reason;
};

struct RpmaReport {
  std::string address;
  std::string device;
  std::string problem;  // why the features are unknown; otherwise empty
  std::vector<RpmaFeature> features;
};

// Loads the librpma of this name and asks it.
RpmaReport read_rpma(const std::string& library, const std::string& address);

std::string rpma_for_people(const RpmaReport& report);
Json rpma_as_json(const RpmaReport& report);

}  // namespace dapple::info
