// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Work requests without segments, on a device that needs one segment.
#pragma once

#include "ibverbs-glue/verbs.hpp"

namespace dapple::verbs {

// libsiw refuses a receive without segments, and for an RDMA Read without any siw uses the segments of an earlier
// request. A segment of no bytes counts as none: its key is not checked.
template <class WorkRequest>
void name_a_segment(WorkRequest& wr) {
  static ibv_sge none{};
  wr.sg_list = &none;
  wr.num_sge = 1;
}

}  // namespace dapple::verbs
