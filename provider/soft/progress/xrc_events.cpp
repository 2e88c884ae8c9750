// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/progress/xrc_events.hpp"

#include <cassert>

#include "provider/soft/transport/context.hpp"

namespace dapple::soft {

void XrcEvents::noted(Srq& srq) {
  assert(engines_ != nullptr);
  engines_->tell_of_xrc(srq);
  engines_->wake_if_due();
}

void XrcEvents::raised(Qp& handle, uint32_t type) {
  assert(handle.xrc != nullptr);
  handle.context->raise(static_cast<ibv_event_type>(type), &handle.abi, handle.event_count);
}

}  // namespace dapple::soft
