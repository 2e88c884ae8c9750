// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#ifndef DAPPLE_PROVIDER_SOFT_EVENT_NAMES_HPP
#define DAPPLE_PROVIDER_SOFT_EVENT_NAMES_HPP

#include <infiniband/verbs.h>

#include <string_view>

namespace dapple::soft {

// The name of an asynchronous event, without IBV_EVENT_.
std::string_view event_name(ibv_event_type type);
// -1 for a name that does not exist.
int event_of(std::string_view name);

}  // namespace dapple::soft

#endif  // DAPPLE_PROVIDER_SOFT_EVENT_NAMES_HPP
