// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstddef>
#include <cstdint>

namespace dapple::udapl {

// DAT_DTOS, and the extensions' DAT_IB_DTOS from 8 on.
enum class DtoOperation : uint8_t {
  kSend = 0,
  kRdmaWrite = 1,
  kRdmaRead = 2,
  kReceive = 3,
  kReceiveWithInvalidate = 4,  // a receive whose Send has invalidated a window
  kBind = 5,                   // of a window; its event is a kBindCompletion
  kInvalidate = 7,             // of a window that is about to be bound again: internal, makes no event
  kRdmaWriteImmed = 8,
  kReceiveImmed = 9,  // a receive that an RDMA Write with immediate data has consumed
  kFetchAndAdd = 10,
  kCompareAndSwap = 11,
  kSendUd = 13,
  kReceiveUd = 14,
};
inline constexpr size_t kDtoOperations = 15;

}  // namespace dapple::udapl
