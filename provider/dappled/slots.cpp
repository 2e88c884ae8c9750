// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/slots.hpp"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <cassert>

#include "provider/dappled/slot_lease.hpp"
#include "provider/member/name_holder.hpp"
#include "provider/member/trust.hpp"
#include "provider/network/port_owner.hpp"

namespace dapple::dappled {
namespace {

// A process that ends, or executes another program, may close its lease before its slot's sockets. It has closed both
// after this time.
constexpr timespec kClosing = {0, 20'000'000};

bool any_slot_in_use() {
  for (uint32_t slot = 1; slot < soft::kMaxSlots; slot++) {
    if (slot_in_use(slot)) return true;
  }
  return false;
}

// dapple-info --ping holds the port while it waits for an answer, for a second at most.
constexpr char kPing[] = "dapple-info";

// True if this process sees the owner, and the owner is not a member, a dappled or a ping.
bool is_stranger(const soft::PortOwner& owner) {
  if (owner.kind != soft::PortOwner::Kind::kProcess || owner.process == 0) return false;
  char own_name[16] = "";
  prctl(PR_GET_NAME, own_name);
  return strcmp(owner.program, own_name) != 0 && strcmp(owner.program, kPing) != 0 && !any_slot_in_use();
}

// True if no member can pass the port on to this dappled.
bool is_lost(const soft::PortOwner& owner) {
  if (owner.kind == soft::PortOwner::Kind::kKernel) return true;
  if (owner.kind != soft::PortOwner::Kind::kProcess) return false;
  if (!soft::trusted_uid(owner.uid)) return true;
  if (!is_stranger(owner)) return false;
  nanosleep(&kClosing, nullptr);
  const soft::PortOwner again = soft::port_owner(soft::kRocePort);
  return again.process == owner.process && is_stranger(again);
}

}  // namespace

bool Slots::have_port(Grant& grant, soft::Problem& problem) {
  if (group_.exists()) return true;
  grant = Grant::kRefused;
  if (group_.create(problem)) {
    // QP 1 has counters, too. If no memory is available, the next program that takes a slot gets the error.
    have_counters({}, 1);
    return true;
  }
  if (problem.error != EADDRINUSE) return false;
  const soft::PortOwner owner = soft::port_owner(soft::kRocePort);
  soft::describe(owner, soft::kRocePort, problem.line, sizeof problem.line);
  if (!is_lost(owner)) grant = Grant::kPortBusy;
  return false;
}

int Slots::have_counters(soft::OwnedFd file, uint32_t slots) {
  if (!counters_file_) {
    if (!file || !soft::is_counters_file(file.get())) file = soft::make_counters_file();
    if (!file) return errno != 0 ? errno : ENOMEM;
    counters_file_ = std::move(file);
  }
  return counters_.cover(counters_file_.get(), slots);
}

Slots::Grant Slots::take_port(soft::Problem& problem) {
  Grant grant = Grant::kGranted;
  return have_port(grant, problem) ? Grant::kGranted : grant;
}

bool Slots::take_free(uint32_t& slot, soft::OwnedFd& lease) {
  errno = 0;  // take() asks for the reason, and without a free slot no system call sets it
  const uint32_t size = group_.size(), large = std::min(size, soft::kLargeSlots);
  if (take_free_of(0, large, last_large_, lease)) {
    slot = last_large_;
    return true;
  }
  if (!take_free_of(large, size, last_small_, lease)) return false;
  slot = last_small_;
  return true;
}

bool Slots::take_free_of(uint32_t first, uint32_t end, uint32_t& last, soft::OwnedFd& lease) {
  const uint32_t count = end - first;
  // Takes the slots in turn, so that the QP numbers of a slot's last owner stay unused as long as possible.
  for (uint32_t i = 1; i <= count; i++) {
    const uint32_t candidate = first + (last - first + i) % count;
    if (states_[candidate] != State::kFree) continue;
    lease = take_lease(candidate);
    // The slot cannot be taken: a process that is not a member holds the name, or no descriptor is left.
    if (!lease) continue;
    // Slot 0 is never free.
    assert(candidate != 0 && group_.socket(candidate) >= 0);
    last = candidate;
    return true;
  }
  return false;
}

// If programs that are not members hold names of slots, the line names one of them.
void Slots::name_squatter(soft::Problem& problem) const {
  for (uint32_t slot = 1; slot < group_.size(); slot++) {
    if (states_[slot] != State::kFree) continue;
    char name[32], holder[120];
    soft::name_holder(soft::find_name_holder(slot_name(slot, name), SOCK_STREAM), holder, sizeof holder);
    problem.set(ENOSPC,
                "%s has the name of slot %u, and no other is free (%u of %u are in use); end it, or run in another "
                "network namespace",
                holder, slot, in_use(), soft::kMaxSlots - 1);
    return;
  }
}

Slots::Grant Slots::take(uint32_t& slot, soft::OwnedFd& lease, soft::Problem& problem) {
  Grant grant = Grant::kGranted;
  if (!have_port(grant, problem)) return grant;
  while (!take_free(slot, lease)) {
    if (errno == EMFILE || errno == ENFILE) {
      problem.set(errno, "dappled has no file descriptor left: %s", strerror(errno));
      return Grant::kRefused;
    }
    if (!group_.grow(problem)) {
      if (problem.error == ENOSPC) name_squatter(problem);
      return Grant::kRefused;
    }
  }
  if (const int error = have_counters({}, slot + 1); error != 0) {
    problem.set(error, "dappled has no memory for counters: %s", strerror(error));
    return Grant::kRefused;
  }
  // Drops packets for the slot's last owner.
  group_.idle(slot);
  if (const int error = group_.open(slot); error != 0) {
    problem.set(error, "dappled cannot open slot %u: %s", slot, strerror(error));
    return Grant::kRefused;
  }
  free_pages(slot);
  states_[slot] = State::kOwned;
  assert(lease);
  assert_consistent();
  return Grant::kGranted;
}

void Slots::assert_consistent() const {
  assert(group_.size() <= soft::kMaxSlots && states_[0] == State::kOwned);
  assert(last_large_ == 0 || last_large_ < std::min(group_.size(), soft::kLargeSlots));
  assert(last_small_ == soft::kLargeSlots - 1 || (soft::kLargeSlots <= last_small_ && last_small_ < group_.size()));
  for (uint32_t slot = 1; slot < soft::kMaxSlots; slot++) assert(slot < group_.size() || states_[slot] == State::kFree);
}

void Slots::find_left() {
  // A slot in use belongs to an owner that has not announced itself yet, or never will.
  for (uint32_t slot = 1; slot < group_.size(); slot++) {
    assert(states_[slot] == State::kFree);
    if (slot_in_use(slot)) {
      states_[slot] = State::kLeft;
      // Its owner has this memory already.
      have_counters({}, slot + 1);
    } else {
      group_.idle(slot);
    }
  }
}

bool Slots::announce(uint32_t slot, soft::Descriptors& handed, soft::Problem& problem) {
  const bool complete = handed.count == soft::kAnnounceDescriptors || (handed.count == 0 && group_.exists());
  if (!complete || slot == 0 || slot >= soft::kMaxSlots) {
    problem.set(EINVAL, "the announcement lacks a slot, the bundle or the counters");
    return false;
  }
  if (!group_.exists()) {
    if (!group_.take_over(std::move(handed.fds[0]), std::move(handed.fds[1]), problem)) return false;
    takeovers_++;
    have_counters(std::move(handed.fds[2]), 1);
    find_left();
  }
  if (slot >= group_.size() || states_[slot] == State::kOwned || !slot_in_use(slot)) {
    problem.set(EBUSY, "slot %u of UDP port %u has another owner; start the program again", slot, soft::kRocePort);
    return false;
  }
  if (const int error = group_.open(slot); error != 0) {
    problem.set(error, "dappled cannot open slot %u: %s", slot, strerror(error));
    return false;
  }
  states_[slot] = State::kOwned;
  assert_consistent();
  return true;
}

void Slots::leave(uint32_t slot) {
  assert(slot < group_.size() && states_[slot] == State::kOwned);
  assert(slot != 0);
  states_[slot] = State::kLeft;
  tidy();
}

void Slots::free_pages(uint32_t slot) {
  soft::SlotPages* pages = counters_.at(slot);
  if (pages == nullptr) return;
  soft::clear(pages->gid_uses);
  soft::clear(pages->resources);
}

bool Slots::uses_gid(uint32_t device, uint32_t gid_index) const {
  for (uint32_t slot = 1; slot < group_.size(); slot++) {
    if (states_[slot] == State::kFree) continue;
    const soft::SlotPages* pages = counters_.at(slot);
    if (pages != nullptr && soft::uses_gid_entry(pages->gid_uses, device, gid_index)) return true;
  }
  return false;
}

void Slots::gids_removed() {
  for (uint32_t slot = 1; slot < group_.size(); slot++) {
    if (soft::SlotPages* pages = counters_.at(slot); pages != nullptr) pages->gid_uses.removals.fetch_add(1);
  }
}

bool Slots::tidy() {
  bool any = false;
  for (uint32_t slot = 1; slot < group_.size(); slot++) {
    if (states_[slot] != State::kLeft) continue;
    if (slot_in_use(slot)) {
      any = true;
    } else {
      group_.idle(slot);
      free_pages(slot);
      states_[slot] = State::kFree;
    }
  }
  assert_consistent();
  return any;
}

uint32_t Slots::in_use() const {
  uint32_t count = 0;
  for (uint32_t slot = 1; slot < group_.size(); slot++) count += states_[slot] != State::kFree ? 1 : 0;
  return count;
}

}  // namespace dapple::dappled
