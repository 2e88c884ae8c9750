// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The requests of one queue pair from its connection to its end, in order, and the rules of their execution and
// completion: the oracle.
#pragma once

#include <cstddef>
#include <deque>

#include "roce/core/queue_pair.hpp"
#include "tests/sim/operation.hpp"
#include "tests/sim/referee.hpp"

namespace dapple::sim {

class Stream {
 public:
  Stream(Referee& referee, roce::QpType type, uint32_t qpn) : referee_(referee), type_(type), qpn_(qpn) {}

  // The faults that any of its requests may meet.
  Statuses excuses = 0;
  // Its queue pair has entered the error state, so flushes are allowed.
  bool is_broken = false;

  Operation& add(Operation operation);
  // Removes a request that could not be posted.
  void take_back() { operations_.pop_back(); }

  // Called for accesses at the responder, in its memory.
  void remote_written(uint64_t address, std::span<const std::byte> bytes);
  void remote_read(uint64_t address, std::span<const std::byte> bytes);
  void remote_atomic(const AtomicAccess& access);
  void remote_flushed(const roce::RemoteRange& range);
  // A receive has completed with success and holds `bytes`. False if they are not a message of this stream; a caller
  // that asks several streams may ignore that. srq: of XRC, the number of the queue that the receive is from.
  bool message_arrived(const roce::Completion& completion, std::span<const std::byte> bytes, uint32_t srq,
                       uint64_t& id);

  // Called for what observers of the two queue pairs are told, which each request must be once and in order.
  bool is_observed = false;  // the requester has an observer
  bool peer_is_observed = false;
  void counted(roce::SendOpcode opcode, uint64_t bytes, roce::CompletionStatus status);
  void counted_by_peer(bool is_read, uint64_t bytes);

  // Called for events at the requester.
  void gathered(std::span<const roce::Segment> segments);
  // The request of this completion, checked against the rules; null if one is broken.
  Operation* completed(const roce::Completion& completion, const SimMemory& local, const SimMemory* remote);
  void check_result(const Operation& operation, SimMemory& local);

  // Called when nothing more will happen. `works`: its queue pair is not in the error state. `is_calm`: the network
  // loses nothing.
  void check_end(bool works, bool is_calm);

  size_t open_count() const { return operations_.size() - first_open_; }
  std::deque<Operation>& operations() { return operations_; }

 private:
  // All requests before `number` have taken effect at the responder.
  bool effective_before(size_t number);
  Statuses excuses_of(const Operation& operation, const SimMemory& local, const SimMemory* remote) const;
  bool same_message(const Operation& operation, const roce::Completion& completion, std::span<const std::byte> bytes,
                    uint32_t srq) const;
  bool is_reliable() const { return roce::is_reliable(type_); }
  void check_counted(const Operation& operation, roce::CompletionStatus status);
  void check_delivered(const Operation& operation, size_t number);

  Referee& referee_;
  roce::QpType type_;
  uint32_t qpn_;
  std::deque<Operation> operations_;
  size_t first_open_ = 0;       // the request after the last one that has a completion
  size_t first_unwritten_ = 0;  // the first request that is not known to have taken effect
  size_t next_message_ = 0;     // no earlier message can still arrive
  size_t next_counted_ = 0;     // the observer of the requester was told of all before
};

}  // namespace dapple::sim
