// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Work requests without segments, on a device that wants one.
#pragma once

#include "ibverbs-glue/verbs.hpp"

namespace dapple::verbs {

// libsiw refuses a receive without segments, and of an RDMA Read without any siw takes what an earlier request has left
// in its place. One of no bytes is read as none: its key is not looked at.
template <class WorkRequest>
void name_a_segment(WorkRequest& wr) {
  static ibv_sge none{};
  wr.sg_list = &none;
  wr.num_sge = 1;
}

}  // namespace dapple::verbs
