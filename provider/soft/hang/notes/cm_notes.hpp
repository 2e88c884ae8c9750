// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "provider/common/cm_event_notes.hpp"

namespace dapple::soft::hang {

// What libdapple-preload.so has noted of librdmacm's events. Null without this library.
const provider::CmEventNotes* cm_notes();

}  // namespace dapple::soft::hang
