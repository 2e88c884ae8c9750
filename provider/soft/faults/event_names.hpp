// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <infiniband/verbs.h>

#include <string_view>

namespace dapple::soft {

// The name of an asynchronous event, without IBV_EVENT_.
std::string_view event_name(ibv_event_type type);
// -1 for a name that does not exist.
int event_of(std::string_view name);

}  // namespace dapple::soft
