// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A request in the send queue. A queue has room for many, and is empty most of the time, so an entry is as small as a
// cache line: parts that no request has together share their bytes, and the entry knows which part it has.
#pragma once

#include <cassert>
#include <cstdint>
#include <new>
#include <type_traits>

#include "roce/host/request.hpp"
#include "roce/host/send_operations.hpp"

namespace dapple::roce {

class SendEntry {
 public:
  // Of RDMA operations, atomics and flushes; of XRC, also of Sends.
  struct Remote {
    uint64_t address = 0;
    uint32_t rkey = 0;
    uint32_t srq = 0;      // XRC
    uint64_t operand = 0;  // as SendRequest's compare_or_add, atomic_write or flush_type
    uint64_t swap = 0;
  };
  // UD.
  struct Datagram {
    AddressVector address;
    uint32_t qpn = 0;
    uint32_t qkey = 0;
  };
  // kBare: the entry has none of these parts.
  enum class Part : uint8_t { kBare, kRemote, kDatagram, kBind };
  // kQuiet: a plain Send that has been sent, and ends without a completion.
  enum class Progress : uint8_t { kWaiting, kStarted, kQuiet };

  SendEntry() : remote_() {}

  bool is_quiet() const { return progress == Progress::kQuiet; }
  bool is_started() const { return progress != Progress::kWaiting; }
  bool has_failed() const { return status != CompletionStatus::kSuccess; }
  bool is_inline() const { return segment_count == kInlineBytes; }

  Part part() const { return part_; }
  const Remote& remote() const {
    assert(part_ == Part::kRemote);
    return remote_;
  }
  const Datagram& datagram() const {
    assert(part_ == Part::kDatagram);
    return datagram_;
  }
  const WindowBind& bind() const {
    assert(part_ == Part::kBind);
    return bind_;
  }
  void set_bare() { part_ = Part::kBare; }
  void set(const Remote& remote) {
    part_ = Part::kRemote;
    new (&remote_) Remote(remote);
  }
  void set(const Datagram& datagram) {
    part_ = Part::kDatagram;
    new (&datagram_) Datagram(datagram);
  }
  void set(const WindowBind& bind) {
    part_ = Part::kBind;
    new (&bind_) WindowBind(bind);
  }

  // As in SendRequest. A request that is answered with data has none.
  uint32_t immediate_or_rkey() const {
    assert(!wants_response(opcode));
    return immediate_or_received_;
  }
  void set_immediate_or_rkey(uint32_t value) {
    assert(!wants_response(opcode));
    immediate_or_received_ = value;
  }
  // The packets of the response that have come, from 0.
  uint32_t received() const {
    assert(wants_response(opcode));
    return immediate_or_received_;
  }
  void set_received(uint32_t count) {
    assert(wants_response(opcode));
    immediate_or_received_ = count;
  }

  uint64_t id = 0;
  SendOpcode opcode = SendOpcode::kSend;
  uint8_t flags = 0;    // SendFlag
  uint16_t mark = 0;    // as in SendRequest
  uint32_t length = 0;  // bytes of the message; UINT32_MAX: or more, which no queue pair sends
  // Set when it is started.
  uint32_t first_psn = 0;
  uint32_t packets = 0;  // PSNs that it takes; 0 for a local request

  uint8_t segment_count = 0;  // kInlineBytes: the bytes of the message are there instead
  static constexpr uint8_t kInlineBytes = 0xFF;
  static_assert(kMaxSegments < kInlineBytes);
  CompletionStatus status = CompletionStatus::kSuccess;  // another one: it fails
  Progress progress = Progress::kWaiting;

 private:
  Part part_ = Part::kBare;
  uint32_t immediate_or_received_ = 0;
  union {
    Remote remote_;
    Datagram datagram_;
    WindowBind bind_;
  };
};
static_assert(sizeof(SendEntry) == 64 && std::is_trivially_destructible_v<SendEntry>);

}  // namespace dapple::roce
