// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <infiniband/dappledv.h>

namespace dapple::udapl {

// The reason why no IA may be opened on a device with these attributes, as a line of text; null if one may be opened.
//
// A device that is known to be non-coherent is refused unless an override is set: verbs keeps its queues in the same
// kind of memory, so they would become stale silently, and no sync call reaches them. A device of unknown coherence is
// used, with maintenance.
inline const char* obstacle_of(const dappledv_device_attr& attr) {
  if (attr.coherence == DAPPLEDV_COHERENCE_BOUNCED) {
    return "its DMA is bounced: it works on copies of memory, which no sync call updates; only memory from "
           "ibv_alloc_buf() is shared with it, and DAT cannot use that memory";
  }
  const bool known_non_coherent =
      attr.coherence == DAPPLEDV_COHERENCE_NONCOHERENT_CPU || attr.coherence == DAPPLEDV_COHERENCE_NONCOHERENT_IO;
  if (known_non_coherent && attr.certainty != DAPPLEDV_CERTAINTY_OVERRIDE) {
    return "it is not cache-coherent, but Linux verbs needs coherent queues; if its queues are coherent, set "
           "coherence=cpu in "
           "ia_params or DAPPLE_COHERENCE";
  }
  if (!attr.sync_supported)
    return "it needs cache maintenance, and this CPU or kernel gives user space no instruction for it";
  return nullptr;
}

}  // namespace dapple::udapl
