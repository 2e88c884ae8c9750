// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Takes events off an EVD in the core's own form.
#pragma once

#include "udapl/core/events/evd_take.hpp"

inline auto into(dapple::udapl::Evd& evd, dapple::udapl::Event& event) {
  struct Sink {
    dapple::udapl::Evd& evd;
    dapple::udapl::Event& out;
    void operator()(const dapple::udapl::Event& taken) const { out = taken; }
    void completion(const dapple::udapl::WorkRequest& request, uint64_t length) const {
      out.kind = dapple::udapl::EventKind::kDtoCompletion;
      out.evd = &evd;
      out.dto = {request.ep, request.cookie, length, 0, dapple::udapl::DtoStatus::kSuccess, request.operation, 0};
    }
  };
  return Sink{evd, event};
}

inline dapple::udapl::Result<> take_event(dapple::udapl::Evd& evd, dapple::udapl::Event& event) {
  return evd.dequeue(into(evd, event));
}

inline dapple::udapl::Result<> wait_for_event(dapple::udapl::Evd& evd, uint32_t timeout_us, uint32_t threshold,
                                              dapple::udapl::Event& event, uint32_t& more) {
  return evd.wait(timeout_us, threshold, into(evd, event), more);
}
