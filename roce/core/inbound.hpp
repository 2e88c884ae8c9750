// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Checks whether each packet of a message fits the packets before it. For reliable and unreliable connections.
#pragma once

#include <cstdint>

#include "roce/core/core.hpp"

namespace dapple::roce {

enum class InboundError : uint8_t {
  kNone,
  kInvalidRequest,  // the packet cannot come here, or has a wrong size, or an operation is not allowed
  kNoReceive,       // a receive is needed and there is none
  kTooLong,         // for the receive
  kRemoteAccess,    // the peer's key, range or rights
  kLocalAccess,     // the receive's own memory
  kInvalidation,    // the message is here, but its key cannot be invalidated
  kLost,            // the bytes cannot be fetched: as if the packet had not come
  kLostCompletion,  // the message is here, but nobody will learn of it
  kLater,           // the memory's owner does not answer: as if the packet had not come
};

class Inbound {
 public:
  explicit Inbound(Core& core) : core_(core) {}

  void reset() { message_ = Message::kNone; }
  bool in_message() const { return message_ != Message::kNone; }

  // Checks and executes the packet of a Send or an RDMA Write. After an error the caller finishes the receive in
  // progress, if any.
  InboundError receive(const Packet& packet);

 private:
  enum class Message : uint8_t { kNone, kSend, kWrite };

  InboundError check(const Packet& packet);
  InboundError execute(const Packet& packet);
  InboundError check_loan(const Packet& packet) const;
  InboundError fetch(const Packet& packet);
  InboundError place(const Packet& packet);
  InboundError end(const Packet& packet);
  // The memory has refused a part of an RDMA Write.
  InboundError deny(Fault fault, const RemoteRange& range);

  Core& core_;
  Message message_ = Message::kNone;
  // The state of an RDMA Write in progress.
  uint32_t rkey_ = 0;
  uint64_t address_ = 0;
  uint64_t left_ = 0;
  uint64_t total_ = 0;
};

}  // namespace dapple::roce
