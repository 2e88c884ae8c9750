// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The parts of a new queue pair, and the checks of them.
#pragma once

#include "provider/soft/objects/objects.hpp"

namespace dapple::soft {
struct RwqTable;
}

namespace dapple::soft::verbs {

struct QpParts {
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;          // null for the receiving end of XRC
  ibv_xrcd* xrcd = nullptr;      // of the receiving end of XRC; null for others
  bool is_extended = false;      // it has the interface of ibv_qp_ex
  uint64_t send_operations = 0;  // of that
  RwqTable* table = nullptr;     // of receive side scaling; null for others
  const ibv_rx_hash_conf* hash = nullptr;
};

// False for an end of XRC that has no receives, or no sends.
inline bool has_sends(ibv_qp_type type) {
  return type != IBV_QPT_XRC_RECV;
}
inline bool has_receives(ibv_qp_type type) {
  return type != IBV_QPT_XRC_RECV && type != IBV_QPT_XRC_SEND;
}
// Takes out of `attr` what its type lacks: as the kernel, the device ignores it.
void leave_out_what_is_lacking(ibv_qp_init_attr& attr);

// 0, or the errno of a refusal.
int check_qp(const QpParts& parts, const ibv_qp_init_attr& attr);

// 0, or the errno of a refusal: the device's identity may have no XRC.
int check_xrc(const ibv_context* context);

}  // namespace dapple::soft::verbs
