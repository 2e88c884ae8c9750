// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The device's own report about its DMA.
#pragma once

#include <infiniband/verbs.h>

namespace dapple::provider {

// True if the device reports bounced DMA, as in a confidential guest: it works on copies of the program's memory. False
// also if this context cannot ask, or if its driver library is too old to report the answer.
bool bounces_dma(ibv_context* context);

}  // namespace dapple::provider
