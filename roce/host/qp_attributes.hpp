// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The values with which a queue pair is made or changed, and the reasons for which it refuses a request.
#pragma once

#include <cstdint>
#include <optional>

#include "roce/host/request.hpp"

namespace dapple::roce {

// The numbers of both are libibverbs'.
// An extended reliable connection (IBTA A14) goes one way: from a kXrcSend, which has no responder, to a kXrcReceive,
// which has no requester.
// A raw packet queue pair has Ethernet frames instead of RoCE packets, so its engine is the host's own: a Core of this
// type. create() makes none.
enum class QpType : uint8_t { kRc = 2, kUc = 3, kUd = 4, kRawPacket = 8, kXrcSend = 9, kXrcReceive = 10 };
constexpr bool is_reliable(QpType type) {
  return type == QpType::kRc || type == QpType::kXrcSend || type == QpType::kXrcReceive;
}
enum class QpState : uint8_t { kReset = 0, kInit = 1, kRtr = 2, kRts = 3, kSqd = 4, kSqe = 5, kError = 6 };

class SendMemory;

struct QpConfig {
  uint32_t qpn = 0;
  QpType type = QpType::kRc;
  uint32_t domain = 0;  // the protection domain's number
  // That of the memory of receives, if it is another one: a shared receive queue has a domain of its own.
  std::optional<uint32_t> receive_domain = std::nullopt;
  uint32_t send_depth = 0;
  uint32_t max_send_segments = 1;
  uint32_t max_inline = 0;  // bytes
  uint32_t max_receive_segments = kMaxSegments;
  bool signal_all = false;
  bool shared_receives = false;  // of a shared receive queue: not flushed with this queue pair
  uint32_t datagram_mtu = 1024;  // UD: the largest payload, which the port decides
  // The longest message, at least 4,096 bytes. IBTA 9.4.3 and 9.3.2.3: not more than 2^31. The post of a longer one
  // fails, or its request completes with kLocalLength in its turn.
  uint64_t max_message = uint64_t{1} << 31;
  bool refuses_too_long = true;
  bool has_atomics = true;
  bool has_flush = true;  // and atomic writes
  // The send queue lives there; null: in memory of its own. It lives longer than the queue pair.
  SendMemory* send_memory = nullptr;
};

// Like struct ibv_qp_attr, without the path: the host has the addresses.
struct QpAttributes {
  QpState state = QpState::kReset;
  QpState current_state = QpState::kReset;
  bool draining = false;  // only in answers: the queue pair is in SQD, and requests are under way
  bool notify_drained = false;
  uint32_t access = 0;  // Access bits that peers have
  uint32_t qkey = 0;
  uint32_t path_mtu = 1024;  // bytes of payload: 256, 512, 1024, 2048 or 4096
  uint8_t timeout = 0;       // 4.096 us * 2^timeout; 0 waits for ever
  uint8_t retry_count = 0;
  uint8_t rnr_retry = 0;      // 7 retries for ever
  uint8_t min_rnr_timer = 0;  // the code of IBTA table 46
  uint32_t receive_psn = 0;
  uint32_t send_psn = 0;
  uint8_t max_rd_atomic = 0;
  uint8_t max_dest_rd_atomic = 0;
  uint32_t destination_qpn = 0;
};

// libibverbs' bits (enum ibv_qp_attr_mask).
enum QpAttributeBit : uint32_t {
  kState = 1 << 0,
  kCurrentState = 1 << 1,
  kNotifyDrained = 1 << 2,
  kAccessFlags = 1 << 3,
  kPkeyIndex = 1 << 4,
  kPort = 1 << 5,
  kQkey = 1 << 6,
  kAddress = 1 << 7,
  kPathMtu = 1 << 8,
  kTimeout = 1 << 9,
  kRetryCount = 1 << 10,
  kRnrRetry = 1 << 11,
  kReceivePsn = 1 << 12,
  kMaxRdAtomic = 1 << 13,
  kAlternatePath = 1 << 14,
  kMinRnrTimer = 1 << 15,
  kSendPsn = 1 << 16,
  kMaxDestRdAtomic = 1 << 17,
  kPathMigration = 1 << 18,
  kCapabilities = 1 << 19,
  kDestinationQpn = 1 << 20,
};

enum class PostError : uint8_t { kNone, kState, kFull, kSegments, kOpcode, kLength };

}  // namespace dapple::roce
