// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Describes the limit of registered memory.
#pragma once

#include <string>

#include "ibverbs-glue/memlock.hpp"
#include "tools/report/json.hpp"

namespace dapple::info {

std::string memlock_for_people(const verbs::Memlock& memlock);
Json memlock_as_json(const verbs::Memlock& memlock);

}  // namespace dapple::info
