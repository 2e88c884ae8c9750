// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The part of a shared receive queue that matches tags.
#pragma once

#include "provider/soft/objects/objects.hpp"

namespace dapple::soft::verbs {

// 0 or an errno: the device, or the attributes of a queue of the type IBV_SRQT_TM, do not serve.
int check_tag_srq(const ibv_context* context, const ibv_srq_init_attr_ex& attr);
// Gives the queue its list. 0 or an errno.
int join_tags(Srq& srq, const ibv_srq_init_attr_ex& attr);

}  // namespace dapple::soft::verbs
