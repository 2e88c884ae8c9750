// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/operations/checking_memory.hpp"

#include <algorithm>

#include "provider/protocol/slot_numbers.hpp"
#include "provider/soft/check/borrowers.hpp"
#include "provider/soft/check/loan_findings.hpp"
#include "provider/soft/check/operations/checked_qp.hpp"
#include "provider/soft/check/race_findings.hpp"
#include "provider/soft/check/request_findings.hpp"
#include "provider/soft/faults/weak_order.hpp"
#include "provider/soft/sanitizers/announced_peers.hpp"
#include "provider/soft/tag_matching/tag_objects.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/xrc/xrc_qp.hpp"

namespace dapple::soft::check {

using roce::Accessor;
using roce::Fault;
using roce::RemoteRange;
using roce::Segment;

Access CheckingMemory::peers_access(const RemoteRange& range, const char* what, uint32_t rights) const {
  return {.device = &qp_.context->memory,
          .domain = peers_domain_of(qp_),
          .text = format("A peer's %s of %llu bytes at 0x%llx reaches queue pair 0x%x of %s", what,
                         static_cast<unsigned long long>(range.length), static_cast<unsigned long long>(range.address),
                         qp_.qpn, qp_.context->ibv->device->name),
          .key = range.rkey,
          .address = range.address,
          .length = range.length,
          .rights = rights,
          .from_peer = true,
          .qpn = qp_.qpn,
          .posted = std::nullopt,
          .queue_pair = checker_.objects.made(&qp_)};
}

Access CheckingMemory::own_access(const char* what, uint64_t size, std::optional<ReportedStack> posted,
                                  uint32_t rights) const {
  return {.device = &qp_.context->memory,
          .domain = qp_.pd->number,
          .text = format("Queue pair 0x%x of %s %s %llu bytes", qp_.qpn, qp_.context->ibv->device->name, what,
                         static_cast<unsigned long long>(size)),
          .rights = rights,
          .from_peer = false,
          .qpn = qp_.qpn,
          .posted = posted,
          .queue_pair = std::nullopt};
}

Fault CheckingMemory::explain(Fault fault, const RemoteRange& range, const char* what, uint32_t rights) {
  if (fault == Fault::kAccess && report_key(checker_, qp_.context->memory, peers_access(range, what, rights)))
    tell_peers_failure();
  return fault;
}

void CheckingMemory::explain(std::span<const Segment> segments, Access access, ToldFailures::What failing) {
  for (const Segment& segment : segments) {
    access.key = segment.lkey;
    access.address = segment.address;
    access.length = segment.length;
    if (segment.length != 0 && report_key(checker_, qp_.context->memory, access))
      return checker_.told.add(qp_.qpn, failing);
  }
}

ToldFailures::What CheckingMemory::filled(std::span<const Segment> segments) {
  return sends_.with_result(segments) ? ToldFailures::kOwnRequest : ToldFailures::kPeersRequest;
}

bool CheckingMemory::there(Accessor who, const RemoteRange& range, uint32_t access, const char* what) {
  if (range.length == 0) return true;
  if ((access & roce::kRemoteRead) == 0) {
    checker_.lent.written_by(qp_.engine->attributes().destination_qpn);
    was_written_.store(true, std::memory_order_relaxed);
  }
  Probe probe(checker_, (access & roce::kRemoteRead) == 0 ? Probe::Use::kWrites : Probe::Use::kReads);
  const Fault fault = qp_.context->memory.lend_to_peer(who, range, access, probe);
  if (fault == Fault::kNone) warn_of_freed(range, what);
  if (fault != Fault::kFailed) return true;
  tell_peers_failure();
  report_unmapped(checker_, peers_access(range, what), probe.gone(), probe.size());
  return false;
}

void CheckingMemory::warn_of_freed(const RemoteRange& range, const char* what) {
  if (checker_.freed == nullptr) return;
  const auto mark = checker_.freed->find(&qp_.context->memory, range.rkey, range.address, range.length);
  if (mark) report_freed(checker_, peers_access(range, what), *mark);
}

void CheckingMemory::warn_of_freed(std::span<const Segment> segments, uint64_t offset, size_t size, const char* what,
                                   const std::optional<Stack>& posted) {
  if (checker_.freed == nullptr) return;
  for (const Segment& segment : segments) {
    if (offset >= segment.length) {
      offset -= segment.length;
      continue;
    }
    const size_t part = std::min<uint64_t>(segment.length - offset, size);
    if (const auto mark = checker_.freed->find(&qp_.context->memory, segment.lkey, segment.address + offset, part)) {
      const uint64_t whole = posted ? roce::length_of(segments) : stored_by(segments, part);
      Access access = own_access(what, whole, posted ? ReportedStack{"posted", *posted} : poster_of_result(segments));
      access.key = segment.lkey;
      report_freed(checker_, access, *mark);
    }
    size -= part;
    offset = 0;
    if (size == 0) return;
  }
}

// The bytes of the request, if this is the result of one. The length of a message is not known before its end.
uint64_t CheckingMemory::stored_by(std::span<const Segment> segments, size_t packet) {
  return sends_.with_result(segments) ? roce::length_of(segments) : packet;
}

// The post of the Read or atomic with these segments, or of the oldest receive with one of their keys.
std::optional<ReportedStack> CheckingMemory::poster_of_result(std::span<const Segment> segments) {
  if (const std::optional<Stack> stack = sends_.with_result(segments)) return ReportedStack{"posted", *stack};
  for (const void* queue : {list_of(qp_), static_cast<const void*>(receive_queue_of(qp_))}) {
    for (const Segment& segment : segments) {
      if (const std::optional<Stack> stack = checker_.receives.with_key(queue, segment.lkey))
        return ReportedStack{"posted", *stack};
    }
  }
  return std::nullopt;
}

Fault CheckingMemory::check_remote(Accessor who, const RemoteRange& range, uint32_t access) {
  const char* what = (access & roce::kRemoteRead) != 0 ? "RDMA Read" : "RDMA Write";
  const Fault fault = explain(below_.check_remote(who, range, access), range, what, access);
  if (fault != Fault::kNone) return fault;
  if ((access & roce::kRemoteRead) == 0) {
    // Its bytes may be stored after the next packets.
    if (has_weak_order()) note_access(who, range, roce::kRemoteWrite, NotedAccess::Kind::kWrite);
    return Fault::kNone;
  }
  if (!there(who, range, roce::kRemoteRead, what)) return Fault::kFailed;
  note_access(who, range, roce::kRemoteRead, NotedAccess::Kind::kRead);
  return Fault::kNone;
}

// The order of the accesses of several programs. An access is noted before it is made: the program may look at the
// bytes at once, and post a request.
void CheckingMemory::note_access(Accessor who, const RemoteRange& range, uint32_t right, NotedAccess::Kind kind) {
  NumberedQueuePair* numbered = qp_.layers.checked->numbered;
  Address address;
  if (numbered == nullptr || range.length == 0) return;
  if (qp_.context->memory.lend_to_peer(who, range, right, address) != Fault::kNone) return;
  if (const auto found = numbered->access(range, address.begin(), kind)) report_race(checker_, qp_, *found);
}

void CheckingMemory::note_answer(Accessor who, const RemoteRange& range, uint32_t right, NotedAccess::Kind kind) {
  NumberedQueuePair* numbered = qp_.layers.checked->numbered;
  Address address;
  if (numbered == nullptr || range.length == 0) return;
  if (qp_.context->memory.lend_to_peer(who, range, right, address) != Fault::kNone) return;
  numbered->answer(range, address.begin(), kind);
}

void CheckingMemory::note_fill(std::span<const Segment> segments, const Probe& probe) {
  NumberedQueuePair* numbered = qp_.layers.checked->numbered;
  if (numbered == nullptr) return;
  std::optional<uint64_t> posted = checker_.receives.time_of(receive_queue_of(qp_), segments);
  if (!posted) posted = checker_.receives.time_of(list_of(qp_), segments);
  if (!posted) return;
  for (const std::span<std::byte> piece : probe.changed()) {
    const auto begin = reinterpret_cast<uintptr_t>(piece.data());
    if (const auto found = numbered->fill({begin, begin + piece.size()}, *posted)) report_race(checker_, qp_, *found);
  }
}

Fault CheckingMemory::write(Accessor who, const RemoteRange& range, const std::byte* from) {
  if (!there(who, range, roce::kRemoteWrite, "RDMA Write")) return Fault::kFailed;
  if (!has_weak_order()) note_access(who, range, roce::kRemoteWrite, NotedAccess::Kind::kWrite);
  const Fault fault = explain(below_.write(who, range, from), range, "RDMA Write", roce::kRemoteWrite);
  if (fault == Fault::kNone && checker_.reporter.options().notes) note_write(who, range);
  return fault;
}

void CheckingMemory::note_write(Accessor who, const RemoteRange& range) {
  Address address;
  if (qp_.context->memory.lend_to_peer(who, range, roce::kRemoteWrite, address) != Fault::kNone) return;
  const auto other = checker_.writes.add({&qp_, qp_.qpn, address.begin(), address.begin() + range.length});
  if (!other) return;
  std::vector<ReportedStack> places;
  for (const void* object : {other->qp, static_cast<const void*>(&qp_)}) {
    if (const std::optional<ReportedStack> made = checker_.objects.made(object)) places.push_back(*made);
  }
  if (const auto registration = checker_.keys.find(&qp_.context->memory, range.rkey))
    places.push_back({"registered", registration->registered});
  checker_.reporter.show(
      {.level = Level::kNote,
       .kind = "overlapping-writes",
       .text = format("RDMA Writes to queue pairs 0x%x and 0x%x of %s change the same bytes, the first at %p, and the "
                      "program has had no completion between the two: nothing tells it their order.",
                      other->qpn, qp_.qpn, qp_.context->ibv->device->name,
                      reinterpret_cast<const void*>(std::max(address.begin(), other->begin))),
       .remedy = "Give each peer memory of its own, or let a message tell that the first Write is done.",
       .places = places});
}

// Reports no missing right: a late second answer to a Read that the peer has already completed is no mistake.
// check_remote() comes before the first answer, and reports. It does not touch a GPU's memory.
Fault CheckingMemory::read(Accessor who, const RemoteRange& range, std::byte* to) {
  Probe probe(checker_, Probe::Use::kReads);
  if (qp_.context->memory.lend_to_peer(who, range, roce::kRemoteRead, probe) == Fault::kFailed) return Fault::kFailed;
  const Fault fault = below_.read(who, range, to);
  if (fault == Fault::kNone) note_answer(who, range, roce::kRemoteRead, NotedAccess::Kind::kRead);
  KeyHolder holder;
  if (fault == Fault::kAccess && qp_.context->memory.find_holder(range.rkey, holder) && holder.problem != nullptr)
    explain(fault, range, "RDMA Read", roce::kRemoteRead);
  return fault;
}

void CheckingMemory::announce_update(Accessor who, const RemoteRange& word) const {
  AnnouncedPeers* peers = AnnouncedPeers::get();
  if (peers == nullptr || word.address % word.length != 0) return;
  const bool is_same_process = slot_of(qp_.engine->attributes().destination_qpn) == slot_of(qp_.qpn) &&
                               (qp_.transport.ring != nullptr || qp_.context->has_gid(qp_.transport.path.destination));
  if (!peers->is_strict() && !is_same_process) return;
  Update update(*peers, word.length);
  qp_.context->memory.lend_to_peer(who, word, roce::kRemoteAtomic, update);
}

Fault CheckingMemory::compare_swap(Accessor who, uint32_t rkey, uint64_t address, uint64_t compare, uint64_t swap,
                                   uint64_t& original) {
  const RemoteRange range = {rkey, address, sizeof swap};
  if (!there(who, range, roce::kRemoteAtomic, "compare and swap")) return Fault::kFailed;
  note_access(who, range, roce::kRemoteAtomic, NotedAccess::Kind::kAtomic);
  announce_update(who, range);
  const Fault fault = below_.compare_swap(who, rkey, address, compare, swap, original);
  if (fault == Fault::kNone) note_answer(who, range, roce::kRemoteAtomic, NotedAccess::Kind::kAtomic);
  return explain(fault, range, "compare and swap", roce::kRemoteAtomic);
}

Fault CheckingMemory::fetch_add(Accessor who, uint32_t rkey, uint64_t address, uint64_t add, uint64_t& original) {
  const RemoteRange range = {rkey, address, sizeof add};
  if (!there(who, range, roce::kRemoteAtomic, "fetch and add")) return Fault::kFailed;
  note_access(who, range, roce::kRemoteAtomic, NotedAccess::Kind::kAtomic);
  announce_update(who, range);
  const Fault fault = below_.fetch_add(who, rkey, address, add, original);
  if (fault == Fault::kNone) note_answer(who, range, roce::kRemoteAtomic, NotedAccess::Kind::kAtomic);
  return explain(fault, range, "fetch and add", roce::kRemoteAtomic);
}

Fault CheckingMemory::atomic_write(Accessor who, uint32_t rkey, uint64_t address, uint64_t value) {
  const RemoteRange range = {rkey, address, sizeof value};
  if (!there(who, range, roce::kRemoteWrite, "atomic write")) return Fault::kFailed;
  note_access(who, range, roce::kRemoteWrite, NotedAccess::Kind::kAtomic);
  return explain(below_.atomic_write(who, rkey, address, value), range, "atomic write", roce::kRemoteWrite);
}

Fault CheckingMemory::flush(Accessor who, const RemoteRange& range, uint32_t type) {
  return explain(below_.flush(who, range, type), range, "flush", roce::flush_rights(type));
}

Fault CheckingMemory::check_local(Accessor who, std::span<const Segment> segments, bool write) {
  const Fault fault = below_.check_local(who, segments, write);
  if (fault != Fault::kAccess) return fault;
  const uint32_t rights = write ? uint32_t{roce::kLocalWrite} : 0;
  explain(segments, own_access("needs", roce::length_of(segments), poster_of_result(segments), rights),
          ToldFailures::kOwnRequest);
  return fault;
}

// Reports only bytes that are sent for the first time: the program may know the fate of a message before the device
// does.
Fault CheckingMemory::gather(Accessor who, std::span<const Segment> segments, uint64_t offset, std::byte* to,
                             size_t size) {
  const auto access = [&](const Stack& posted) {
    return own_access("sends", roce::length_of(segments), ReportedStack{"posted", posted});
  };
  Probe probe(checker_, Probe::Use::kReads);
  const Fault lent = qp_.context->memory.lend(who, segments, offset, size, false, probe);
  if (lent == Fault::kFailed) {
    const std::optional<Stack> posted = sends_.waiting(segments, offset);
    if (!posted) return Fault::kFailed;
    Access sending = access(*posted);
    sending.key = probe.key(segments, offset);
    tell_own_failure();
    report_unmapped(checker_, sending, probe.gone(), probe.size());
    return Fault::kFailed;
  }
  if (lent == Fault::kNone && checker_.freed != nullptr && checker_.freed->any()) {
    if (const std::optional<Stack> posted = sends_.waiting(segments, offset))
      warn_of_freed(segments, offset, size, "sends", posted);
  }
  const Fault fault = below_.gather(who, segments, offset, to, size);
  if (fault == Fault::kNone) {
    if (const std::optional<PostedSends::Change> change = sends_.take(segments, offset, to, size))
      report_change(change->at, ReportedStack{"posted", change->posted});
  } else if (const std::optional<Stack> posted = sends_.waiting(segments, offset)) {
    explain(segments, access(*posted), ToldFailures::kOwnRequest);
  }
  return fault;
}

Fault CheckingMemory::scatter(Accessor who, std::span<const Segment> segments, uint64_t offset, const std::byte* from,
                              size_t size) {
  Probe probe(checker_, Probe::Use::kStores);
  const Fault lent = qp_.context->memory.lend(who, segments, offset, size, true, probe);
  if (lent == Fault::kFailed) {
    Access access = own_access("stores", stored_by(segments, size), poster_of_result(segments));
    set_domain(access, who);
    access.key = probe.key(segments, offset);
    checker_.told.add(qp_.qpn, filled(segments));
    report_unmapped(checker_, access, probe.gone(), probe.size());
    return Fault::kFailed;
  }
  if (lent == Fault::kNone) warn_of_freed(segments, offset, size, "stores", std::nullopt);
  const bool is_message = lent == Fault::kNone && !sends_.with_result(segments);
  if (is_message) note_fill(segments, probe);
  const bool is_withheld = withholds(who, segments, offset, from, size);
  if (is_message && !is_withheld) look_for_lost(who, segments, offset, from, size);
  const Fault fault = is_withheld ? Fault::kNone : below_.scatter(who, segments, offset, from, size);
  probe.stored();
  if (fault == Fault::kAccess) {
    Access access = own_access("stores", stored_by(segments, size), poster_of_result(segments), roce::kLocalWrite);
    set_domain(access, who);
    explain(segments, access, filled(segments));
  }
  return fault;
}

void CheckingMemory::look_for_lost(Accessor who, std::span<const Segment> segments, uint64_t offset,
                                   const std::byte* from, size_t size) {
  // The headers of two datagrams may differ.
  const bool is_header = qp_.init.qp_type == IBV_QPT_UD && offset < roce::kGrhSize;
  if (is_header || !checker_.withheld.may_overwrite() || checker_.counts.load(std::memory_order_relaxed)) return;
  Overwrite overwrite(checker_.withheld, from);
  qp_.context->memory.lend(who, segments, offset, size, true, overwrite);
  if (overwrite.lost()) report_overwritten(checker_, *overwrite.lost());
}

bool CheckingMemory::withholds(Accessor who, std::span<const Segment> segments, uint64_t offset, const std::byte* from,
                               size_t size) {
  if (!checker_.withholds || size == 0) return false;
  Withhold withhold(checker_.withheld, qp_.qpn, from);
  const bool is_stored = qp_.context->memory.lend(who, segments, offset, size, true, withhold) == Fault::kNone;
  if (is_stored && !checker_.counts.load(std::memory_order_relaxed)) return true;
  withhold.give_up();
  return false;
}

// The memory of a shared receive queue's receives has the protection domain of that queue.
void CheckingMemory::set_domain(Access& access, Accessor who) const {
  access.domain = who.domain;
  if (who.domain != qp_.pd->number) access.domain_of = "shared receive queue";
}

Fault CheckingMemory::bind_window(Accessor who, const roce::WindowBind& bind) {
  const BindObstacle obstacle = qp_.context->memory.bind_obstacle(who, bind);
  const Fault fault = below_.bind_window(who, bind);
  if (fault != Fault::kNone) {
    tell_own_failure();
    report_bind(checker_, qp_, bind, obstacle);
  } else if (bind.window_rkey != bind.new_rkey) {
    checker_.keys.end_window(&qp_.context->memory, bind.window_rkey, {"which a later bind has replaced", std::nullopt});
  }
  return fault;
}

Fault CheckingMemory::invalidate_local(Accessor who, uint32_t rkey) {
  const Fault fault = below_.invalidate_local(who, rkey);
  if (fault != Fault::kNone) {
    tell_own_failure();
    report_invalidation(checker_, qp_, rkey, false);
  } else {
    checker_.keys.end_window(&qp_.context->memory, rkey, {"which IBV_WR_LOCAL_INV has invalidated", std::nullopt});
  }
  return fault;
}

Fault CheckingMemory::invalidate_remote(Accessor who, uint32_t rkey) {
  const Fault fault = below_.invalidate_remote(who, rkey);
  if (fault != Fault::kNone) {
    tell_peers_failure();
    report_invalidation(checker_, qp_, rkey, true);
  } else {
    checker_.keys.end_window(&qp_.context->memory, rkey,
                             {"which the peer's IBV_WR_SEND_WITH_INV has invalidated", std::nullopt});
  }
  return fault;
}

void CheckingMemory::report_change(uint64_t at, const ReportedStack& posted) {
  checker_.reporter.show(
      {.kind = "changed-send-buffer",
       .text =
           format("Queue pair 0x%x of %s sends a buffer that the program has changed after the post: byte %llu of the "
                  "message is the first that differs.",
                  qp_.qpn, qp_.context->ibv->device->name, static_cast<unsigned long long>(at)),
       .remedy = "Leave a buffer as it is until the completion of its request, or send with IBV_SEND_INLINE.",
       .places = {posted}});
}

}  // namespace dapple::soft::check
