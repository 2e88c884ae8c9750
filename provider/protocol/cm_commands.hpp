// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Commands of rdma_cm that came with Linux 6.17: older headers of the kernel lack them.
#pragma once

#include <rdma/rdma_user_cm.h>
#include <stdint.h>

namespace dapple::soft {

inline constexpr uint32_t kCmResolveIbService = 23;
inline constexpr uint32_t kCmWriteEvent = 24;

struct CmIbServiceCommand {
  uint32_t id;
  uint32_t reserved;
  uint64_t service_id;
  uint8_t service_name[64];
  uint32_t flags;
  uint32_t reserved2;
};

struct CmWriteEventCommand {
  uint32_t id;
  uint32_t reserved;
  uint32_t event;
  uint32_t status;
  uint64_t argument;
  uint8_t rest[sizeof(rdma_ucm_ud_param) - sizeof(uint64_t)];  // of a union with the data of other events
};

}  // namespace dapple::soft
