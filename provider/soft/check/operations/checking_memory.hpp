// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A queue pair's view of memory under dapple-run --check: explains each access that fails, and makes sure that the
// memory is there before it is touched. It changes no byte that the device would not change. Withholds the bytes of
// receives, Reads and atomics until the poll.
#pragma once

#include <atomic>

#include "provider/soft/check/access_findings.hpp"
#include "provider/soft/check/checker.hpp"
#include "provider/soft/check/races/access_history.hpp"
#include "provider/soft/memory/memory_layer.hpp"
#include "provider/soft/objects/objects.hpp"
#include "roce/host/ports.hpp"

namespace dapple::soft::check {

class Probe;

class CheckingMemory final : public MemoryLayer {
 public:
  CheckingMemory(Checker& checker, const Qp& qp, PostedSends& sends, roce::Memory& below)
      : MemoryLayer(below), checker_(checker), qp_(qp), sends_(sends) {}

  roce::Fault check_remote(roce::Accessor who, const roce::RemoteRange& range, uint32_t access) override;
  roce::Fault write(roce::Accessor who, const roce::RemoteRange& range, const std::byte* from) override;
  roce::Fault read(roce::Accessor who, const roce::RemoteRange& range, std::byte* to) override;
  roce::Fault compare_swap(roce::Accessor who, uint32_t rkey, uint64_t address, uint64_t compare, uint64_t swap,
                           uint64_t& original) override;
  roce::Fault fetch_add(roce::Accessor who, uint32_t rkey, uint64_t address, uint64_t add, uint64_t& original) override;
  roce::Fault atomic_write(roce::Accessor who, uint32_t rkey, uint64_t address, uint64_t value) override;
  roce::Fault flush(roce::Accessor who, const roce::RemoteRange& range, uint32_t type) override;
  roce::Fault check_local(roce::Accessor who, std::span<const roce::Segment> segments, bool write) override;
  roce::Fault gather(roce::Accessor who, std::span<const roce::Segment> segments, uint64_t offset, std::byte* to,
                     size_t size) override;
  roce::Fault scatter(roce::Accessor who, std::span<const roce::Segment> segments, uint64_t offset,
                      const std::byte* from, size_t size) override;
  roce::Fault bind_window(roce::Accessor who, const roce::WindowBind& bind) override;
  roce::Fault invalidate_local(roce::Accessor who, uint32_t rkey) override;
  roce::Fault invalidate_remote(roce::Accessor who, uint32_t rkey) override;

  // Whether a Write or an atomic of the peer has come.
  bool was_written() const { return was_written_.load(std::memory_order_relaxed); }

 private:
  Access peers_access(const roce::RemoteRange& range, const char* what, uint32_t rights = 0) const;
  // `size`: of the whole request, where it is known.
  Access own_access(const char* what, uint64_t size, std::optional<ReportedStack> posted, uint32_t rights = 0) const;
  // Reports why a peer's access has failed, if it has. Returns `fault`.
  roce::Fault explain(roce::Fault fault, const roce::RemoteRange& range, const char* what, uint32_t rights);
  void explain(std::span<const roce::Segment> segments, Access access, ToldFailures::What failing);
  // The peer's request fails, or the receive of its message.
  void tell_peers_failure() { checker_.told.add(qp_.qpn, ToldFailures::kPeersRequest); }
  void tell_own_failure() { checker_.told.add(qp_.qpn, ToldFailures::kOwnRequest); }
  // What fails if the device cannot store there: the request whose result it is, or a receive.
  ToldFailures::What filled(std::span<const roce::Segment> segments);
  void set_domain(Access& access, roce::Accessor who) const;
  // False after a report: the memory is gone. `access`: the right that is needed.
  bool there(roce::Accessor who, const roce::RemoteRange& range, uint32_t access, const char* what);
  // Reports freed memory in an access that is about to succeed.
  void warn_of_freed(const roce::RemoteRange& range, const char* what);
  // `posted`: the post of a send; for a result the function finds it.
  void warn_of_freed(std::span<const roce::Segment> segments, uint64_t offset, size_t size, const char* what,
                     const std::optional<Stack>& posted);
  // False: the bytes are to be stored in the memory itself.
  bool withholds(roce::Accessor who, std::span<const roce::Segment> segments, uint64_t offset, const std::byte* from,
                 size_t size);
  // The device is about to store a part of a message there.
  void look_for_lost(roce::Accessor who, std::span<const roce::Segment> segments, uint64_t offset,
                     const std::byte* from, size_t size);
  // A peer's atomic is about to change this word.
  void announce_update(roce::Accessor who, const roce::RemoteRange& word) const;
  // A peer has written there. Reports an earlier Write to the same bytes if there is no completion between the two.
  void note_write(roce::Accessor who, const roce::RemoteRange& range);
  // For --check=races. `right`: that the access needs.
  void note_access(roce::Accessor who, const roce::RemoteRange& range, uint32_t right, NotedAccess::Kind kind);
  void note_answer(roce::Accessor who, const roce::RemoteRange& range, uint32_t right, NotedAccess::Kind kind);
  void note_fill(std::span<const roce::Segment> segments, const Probe& probe);
  uint64_t stored_by(std::span<const roce::Segment> segments, size_t packet);
  std::optional<ReportedStack> poster_of_result(std::span<const roce::Segment> segments);
  void report_change(uint64_t at, const ReportedStack& posted);

  Checker& checker_;
  const Qp& qp_;
  PostedSends& sends_;
  std::atomic<bool> was_written_{false};
};

}  // namespace dapple::soft::check
