// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/sim/stream.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstring>

namespace dapple::sim {

using roce::CompletionStatus;
using roce::QpType;
using roce::SendOpcode;

namespace {

bool has_content(uint64_t id, uint64_t offset, std::span<const std::byte> bytes) {
  for (size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] != content_byte(id, offset + i)) return false;
  return true;
}

bool covers(const Operation& operation, uint64_t address, size_t size) {
  const uint64_t from = operation.request.remote_address;
  return address >= from && address + size <= from + operation.length;
}

}  // namespace

Operation& Stream::add(Operation operation) {
  operations_.push_back(std::move(operation));
  return operations_.back();
}

bool Stream::effective_before(size_t number) {
  while (first_unwritten_ < number && operations_[first_unwritten_].took_effect()) ++first_unwritten_;
  return first_unwritten_ >= number;
}

// --- The responder's memory

void Stream::remote_written(uint64_t address, std::span<const std::byte> bytes) {
  if (type_ == QpType::kUc) {
    // Messages may be lost, so any message may be the next; its bytes must be those of a posted one.
    bool is_known = false;
    for (Operation& operation : operations_) {
      if (!operation.is_write() || !covers(operation, address, bytes.size())) continue;
      const uint64_t offset = address - operation.request.remote_address;
      if (!has_content(operation.request.id, offset, bytes)) continue;
      // A few bytes may match several requests.
      operation.written = std::max(operation.written, offset + bytes.size());
      is_known = true;
    }
    if (is_known) return;
    return referee_.fail("QP %#x: the peer wrote %zu bytes at %#" PRIx64 " that no request carries", qpn_, bytes.size(),
                         address);
  }
  // RC: each byte once, in order (IBTA 9.7.4: the responder executes requests in the order of their PSNs, once).
  effective_before(operations_.size());
  if (first_unwritten_ == operations_.size())
    return referee_.fail("QP %#x: the peer wrote %zu bytes at %#" PRIx64 " after all requests had been executed", qpn_,
                         bytes.size(), address);
  Operation& operation = operations_[first_unwritten_];
  if (!operation.is_write() || operation.request.remote_address + operation.written != address ||
      !covers(operation, address, bytes.size()))
    return referee_.fail("QP %#x: the peer wrote %zu bytes at %#" PRIx64 ", but request %#" PRIx64
                         " is to be executed next",
                         qpn_, bytes.size(), address, operation.request.id);
  if (!has_content(operation.request.id, operation.written, bytes))
    return referee_.fail("QP %#x: wrong bytes written for request %#" PRIx64, qpn_, operation.request.id);
  operation.written += bytes.size();
}

void Stream::remote_read(uint64_t address, std::span<const std::byte> bytes) {
  bool is_wanted = false;
  for (size_t number = first_open_; number < operations_.size(); ++number) {
    Operation& operation = operations_[number];
    if (operation.opcode() != SendOpcode::kRead || !covers(operation, address, bytes.size())) continue;
    // A Read sees all requests before it.
    if (!effective_before(number)) break;
    is_wanted = true;
    operation.seen.push_back({address - operation.request.remote_address, {bytes.begin(), bytes.end()}});
  }
  // A retried request may repeat a part that was answered meanwhile.
  for (size_t number = first_open_; !is_wanted && number-- > 0;)
    is_wanted = operations_[number].opcode() == SendOpcode::kRead && covers(operations_[number], address, bytes.size());
  if (!is_wanted) referee_.fail("QP %#x: the peer read at %#" PRIx64 " for no request", qpn_, address);
}

void Stream::remote_atomic(const AtomicAccess& access) {
  effective_before(operations_.size());
  if (first_unwritten_ == operations_.size())
    return referee_.fail("QP %#x: an atomic at %#" PRIx64 " was executed again", qpn_, access.address);
  Operation& operation = operations_[first_unwritten_];
  const roce::SendRequest& request = operation.request;
  bool is_it = false;
  if (access.kind == AtomicKind::kCompareSwap)
    is_it = request.opcode == SendOpcode::kCompareSwap && request.swap == access.operand &&
            request.compare_or_add == access.compare;
  else if (access.kind == AtomicKind::kFetchAdd)
    is_it = request.opcode == SendOpcode::kFetchAdd && request.compare_or_add == access.operand;
  else
    is_it = request.opcode == SendOpcode::kAtomicWrite && request.atomic_write == access.operand;
  if (!is_it || request.remote_address != access.address)
    return referee_.fail("QP %#x: an atomic at %#" PRIx64 " was executed where request %#" PRIx64 " is next", qpn_,
                         access.address, request.id);
  operation.executed = true;
  operation.original = access.original;
}

// Two Flushes may have one range: the next one that was not executed, or a repetition.
void Stream::remote_flushed(const roce::RemoteRange& range) {
  Operation* flushed = nullptr;
  for (size_t number = 0; number < operations_.size(); ++number) {
    Operation& operation = operations_[number];
    if (operation.opcode() != SendOpcode::kFlush || operation.request.remote_address != range.address ||
        operation.request.flush_length != range.length || !effective_before(number))
      continue;
    flushed = &operation;
    if (operation.flushes == 0) break;
  }
  if (flushed == nullptr)
    return referee_.fail("QP %#x: a flush at %#" PRIx64 " that was not asked for yet", qpn_, range.address);
  ++flushed->flushes;
}

// --- Messages

bool Stream::same_message(const Operation& operation, const roce::Completion& completion,
                          std::span<const std::byte> bytes, uint32_t srq) const {
  if (type_ == QpType::kXrcSend && operation.request.remote_srq != srq) return false;
  if (!operation.is_message() || operation.is_unreachable || completion.byte_count != operation.length) return false;
  const bool is_write = operation.is_write();
  if ((completion.opcode == roce::CompletionOpcode::kReceiveWriteImmediate) != is_write) return false;
  uint8_t flags = 0;
  if (is_write || operation.opcode() == SendOpcode::kSendImmediate) flags = roce::kWithImmediate;
  if (operation.opcode() == SendOpcode::kSendInvalidate) flags = roce::kWithInvalidate;
  if ((completion.flags & (roce::kWithImmediate | roce::kWithInvalidate)) != flags) return false;
  if (flags != 0 && completion.immediate_or_rkey != operation.request.immediate_or_rkey) return false;
  if (completion.solicited != ((operation.request.flags & roce::kSolicited) != 0)) return false;
  return is_write || has_content(operation.request.id, 0, bytes.first(operation.length));
}

bool Stream::message_arrived(const roce::Completion& completion, std::span<const std::byte> bytes, uint32_t srq,
                             uint64_t& id) {
  if (!is_reliable()) {
    for (Operation& operation : operations_) {
      if (!same_message(operation, completion, bytes, srq)) continue;
      operation.delivered = true;
      id = operation.request.id;
      return true;
    }
    return false;
  }
  // RC: all messages, once, in order.
  while (next_message_ < operations_.size() && !operations_[next_message_].is_message()) ++next_message_;
  if (next_message_ == operations_.size()) return false;
  Operation& operation = operations_[next_message_];
  id = operation.request.id;
  if (!same_message(operation, completion, bytes, srq)) return false;
  if (!effective_before(next_message_) || !operation.took_effect())
    referee_.fail("QP %#x: the message of request %#" PRIx64 " arrived before earlier requests had been executed", qpn_,
                  id);
  operation.delivered = true;
  ++next_message_;
  return true;
}

// --- The requester

void Stream::gathered(std::span<const roce::Segment> segments) {
  if (segments.empty() || !is_reliable()) return;
  bool response_is_open = false;
  for (size_t number = first_open_; number < operations_.size(); ++number) {
    const Operation& operation = operations_[number];
    // A later signalled completion tells the fate of requests without one.
    const bool waits = operation.opcode() == SendOpcode::kRead || operation.opcode() == SendOpcode::kCompareSwap ||
                       operation.opcode() == SendOpcode::kFetchAdd;
    if (!operation.segments.empty() && operation.has_source() && operation.segments[0].address == segments[0].address) {
      // IBTA 10.8.3.3.
      if ((operation.request.flags & roce::kFence) && response_is_open)
        referee_.fail("QP %#x: request %#" PRIx64 " did not wait at its fence", qpn_, operation.request.id);
      return;
    }
    response_is_open = response_is_open || (waits && operation.is_signaled);
  }
}

Statuses Stream::excuses_of(const Operation& operation, const SimMemory& local, const SimMemory* remote) const {
  Statuses excused = operation.excuses | excuses;
  const auto died = [](const SimMemory& memory, uint32_t name) {
    const Key* key = memory.find(name);
    return key == nullptr || key->died;
  };
  for (const roce::Segment& segment : operation.segments)
    if (segment.length > 0 && died(local, segment.lkey)) excused |= status_bit(CompletionStatus::kLocalProtection);
  if (remote != nullptr && !operation.is_send() && !operation.is_local() && died(*remote, operation.request.rkey))
    excused |= status_bit(CompletionStatus::kRemoteAccess);
  return excused;
}

// --- What observers are told

void Stream::counted(SendOpcode opcode, uint64_t bytes, CompletionStatus status) {
  if (next_counted_ == operations_.size())
    return referee_.fail("QP %#x: its observer is told of a request that was not posted", qpn_);
  Operation& operation = operations_[next_counted_++];
  if (operation.opcode() != opcode || (operation.has_source() && operation.length != bytes))
    return referee_.fail("QP %#x: its observer is told of opcode %u with %" PRIu64
                         " bytes instead of request %#" PRIx64,
                         qpn_, static_cast<unsigned>(opcode), bytes, operation.request.id);
  operation.counted = status;
}

// Writes are executed in order. A Read ends with its last response, and a response that is repeated may follow a later
// one.
void Stream::counted_by_peer(bool is_read, uint64_t bytes) {
  if (!is_reliable()) return;
  for (size_t number = 0; number < operations_.size(); ++number) {
    Operation& operation = operations_[number];
    if (operation.is_counted_by_peer || (is_read ? operation.opcode() != SendOpcode::kRead : !operation.is_write()))
      continue;
    if (!effective_before(number) || !operation.took_effect()) break;
    if (operation.length != bytes && is_read) continue;
    if (operation.length != bytes) break;
    operation.is_counted_by_peer = true;
    return;
  }
  referee_.fail("QP %#x: the peer's observer is told of a %s of %" PRIu64 " bytes that was not executed", qpn_,
                is_read ? "Read" : "Write", bytes);
}

void Stream::check_counted(const Operation& operation, CompletionStatus status) {
  if (is_observed && operation.counted != status)
    referee_.fail("QP %#x: request %#" PRIx64 " ends with status %u, and its observer does not know that", qpn_,
                  operation.request.id, static_cast<unsigned>(status));
}

void Stream::check_delivered(const Operation& operation, size_t number) {
  if (!is_reliable()) return;
  if (!effective_before(number) || !operation.took_effect())
    referee_.fail("QP %#x: request %#" PRIx64 " succeeded but was not executed", qpn_, operation.request.id);
  if (operation.is_message() && !operation.delivered)
    referee_.fail("QP %#x: request %#" PRIx64 " succeeded but its message did not arrive", qpn_, operation.request.id);
  if (peer_is_observed && (operation.is_write() || operation.opcode() == SendOpcode::kRead) &&
      !operation.is_counted_by_peer)
    referee_.fail("QP %#x: request %#" PRIx64 " succeeded, and the peer's observer was not told", qpn_,
                  operation.request.id);
  if (operation.opcode() == SendOpcode::kFlush && operation.flushes == 0)
    referee_.fail("QP %#x: flush %#" PRIx64 " succeeded but was not executed", qpn_, operation.request.id);
}

Operation* Stream::completed(const roce::Completion& completion, const SimMemory& local, const SimMemory* remote) {
  const bool is_success = completion.status == CompletionStatus::kSuccess;
  while (first_open_ < operations_.size()) {
    const size_t number = first_open_++;
    Operation& operation = operations_[number];
    operation.completed = true;
    check_counted(operation,
                  operation.request.id == completion.request_id ? completion.status : CompletionStatus::kSuccess);
    if (operation.request.id != completion.request_id) {
      // Only requests without a completion may be skipped, and they have succeeded.
      if (operation.is_signaled || operation.must_fail) break;
      check_delivered(operation, number);
      continue;
    }
    operation.status = completion.status;
    if (is_success) {
      if (!operation.is_signaled || is_broken) break;
      if (operation.must_fail) {
        referee_.fail("QP %#x: request %#" PRIx64 " succeeded, which it must not", qpn_, operation.request.id);
        return nullptr;
      }
      check_delivered(operation, number);
      return &operation;
    }
    if (completion.status == CompletionStatus::kFlushed) {
      if (!is_broken) break;
    } else if (is_broken || !(excuses_of(operation, local, remote) & status_bit(completion.status))) {
      referee_.fail("QP %#x: request %#" PRIx64 " failed with status %u without a reason", qpn_, operation.request.id,
                    static_cast<unsigned>(completion.status));
      return nullptr;
    }
    is_broken = is_broken || !is_success;
    return &operation;
  }
  referee_.fail("QP %#x: completion of %#" PRIx64 " with status %u is out of order", qpn_, completion.request_id,
                static_cast<unsigned>(completion.status));
  return nullptr;
}

void Stream::check_end(bool works, bool is_calm) {
  for (size_t number = 0; number < operations_.size(); ++number) {
    const Operation& operation = operations_[number];
    if (type_ == QpType::kUc && is_calm && operation.opcode() == SendOpcode::kWrite &&
        operation.written != operation.length)
      return referee_.fail("QP %#x: Write %#" PRIx64 " did not arrive", qpn_, operation.request.id);
    if (is_observed && !operation.counted)
      return referee_.fail("QP %#x: its observer was not told of request %#" PRIx64, qpn_, operation.request.id);
    if (operation.completed) continue;
    if (operation.is_signaled)
      return referee_.fail("QP %#x: request %#" PRIx64 " never completed", qpn_, operation.request.id);
    if (works) check_delivered(operation, number);
  }
}

void Stream::check_result(const Operation& operation, SimMemory& local) {
  if (operation.opcode() == SendOpcode::kCompareSwap || operation.opcode() == SendOpcode::kFetchAdd) {
    uint64_t result = 0;
    std::memcpy(&result, local.at(operation.segments[0].address), sizeof result);
    if (result != operation.original)
      referee_.fail("QP %#x: atomic %#" PRIx64 " gave %#" PRIx64 ", memory held %#" PRIx64, qpn_, operation.request.id,
                    result, operation.original);
    return;
  }
  if (operation.opcode() != SendOpcode::kRead) return;
  // Each byte must be one that the responder has read for this request.
  std::vector<bool> is_seen(operation.length);
  std::vector<std::byte> bytes;
  for (const roce::Segment& segment : operation.segments)
    bytes.insert(bytes.end(), local.at(segment.address), local.at(segment.address) + segment.length);
  for (const Operation::Seen& seen : operation.seen)
    for (size_t i = 0; i < seen.bytes.size(); ++i)
      if (seen.bytes[i] == bytes[seen.offset + i]) is_seen[seen.offset + i] = true;
  for (size_t i = 0; i < operation.length; ++i)
    if (!is_seen[i])
      return referee_.fail("QP %#x: byte %zu of Read %#" PRIx64 " is wrong", qpn_, i, operation.request.id);
}

}  // namespace dapple::sim
