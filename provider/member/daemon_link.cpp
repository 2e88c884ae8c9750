// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/member/daemon_link.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

#include "provider/common/clock.hpp"
#include "provider/common/settings.hpp"
#include "provider/member/counters_file.hpp"
#include "provider/member/daemon_start.hpp"
#include "provider/member/open_questions.hpp"
#include "provider/member/xrc_domain_file.hpp"
#include "provider/protocol/identity_text.hpp"

namespace dapple::soft {
namespace {

// A dappled that ends at this moment costs one try. On a busy machine several in a row end before their starter runs
// again. More than that are not an accident.
constexpr int kTries = 32;
// A question that kills each dappled is not repeated without limit.
constexpr uint64_t kPatienceMs = 10'000;
// A channel of rdma_cm that is not handed over is lost, so a lack of memory gets some time to end.
constexpr int kRestoreTries = 10;

}  // namespace

std::unique_ptr<DaemonLink> DaemonLink::open(Problem& problem, Start start) {
  std::unique_ptr<DaemonLink> link(new (std::nothrow) DaemonLink(start));
  if (link == nullptr) {
    problem.set(ENOMEM, "no memory for the connection to dappled");
    return nullptr;
  }
  return link->check(problem) ? std::move(link) : nullptr;
}

DaemonLink::Question::Question(DaemonLink& link) {
  const uint64_t begun = now_ns();
  lock_ = std::unique_lock(link.mutex_);
  link.asked_ = begun;
}

bool DaemonLink::connected(Problem& problem) {
  if (connection_) return true;
  // Another thread has found dappled silent while this one waited for the lock.
  if (connection_.is_silent_since(asked_, problem)) return false;
  const OpenQuestion waits;
  for (int i = 0; i < kTries; i++) {
    bool nobody = false;
    if (connection_.open(problem, nobody)) {
      const bool accepted =
          identify(problem) && choose_gids(problem) && ((!has_slot_ && known_count_ == 0) || announce(problem));
      if (accepted && reconnected_ != nullptr) reconnected_(*this, problem);
      if (accepted && connection_ && !connection_.would_yield()) return true;
      if (died_in_the_middle()) continue;
      connection_.close();
      if (replace_daemon()) continue;
      return false;
    }
    if (!nobody || start_ == Start::kNever) return false;
    if (!start_daemon(Starting::kFirst, problem) && problem.error != ESRCH) return false;
  }
  return false;
}

// Starts a dappled that is less limited than the present one, which lacks descriptors or memory.
bool DaemonLink::replace_daemon() {
  Problem problem;
  if (!connection_.would_yield() || start_ == Start::kNever || cannot_replace_) return false;
  cannot_replace_ = !start_daemon(Starting::kReplace, problem);
  return !cannot_replace_;
}

// dappled may see other files than the program, which may also change its root folder later.
bool DaemonLink::open_profile(const char* identity, Problem& problem) {
  char path[kIdentitySize];
  const size_t size = identity_name(identity).profile.copy(path, sizeof path - 1);
  path[size] = '\0';
  if (profile_ || strchr(path, '/') == nullptr) return true;
  profile_.reset(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!profile_) {
    problem.set(errno, "the profile %.150s of DAPPLE_AS cannot be read: %s%s", path, strerror(errno),
                descriptor_remedy(errno));
    return false;
  }
  profile_.hide();
  return true;
}

bool DaemonLink::identify(Problem& problem) {
  const char* const identity = provider::settings().as;
  if (identity == nullptr) return true;
  IdentityRequest request;
  if (strlen(identity) >= sizeof request.text) {
    problem.set(EINVAL, "DAPPLE_AS has more than %zu characters", sizeof request.text - 1);
    return false;
  }
  strcpy(request.text, identity);
  if (!open_profile(identity, problem)) return false;
  const int file = profile_.get();
  HeaderOnly reply;
  const std::span<const int> sent(&file, profile_ ? 1 : 0);
  return exchange(MessageKind::kIdentity, request, reply, problem, sent) == Answer::kGood;
}

bool DaemonLink::choose_gids(Problem& problem) {
  const char* const path = provider::settings().gids;
  if (path == nullptr) return true;
  if (!gids_) {
    // dappled may see other files than the program, which may also change its root folder later.
    gids_.reset(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!gids_) {
      problem.set(errno, "the file %.150s of DAPPLE_GIDS cannot be read: %s%s", path, strerror(errno),
                  descriptor_remedy(errno));
      return false;
    }
    gids_.hide();
  }
  const int file = gids_.get();
  HeaderOnly request, reply;
  return exchange(MessageKind::kGids, request, reply, problem, {&file, 1}) == Answer::kGood;
}

bool DaemonLink::announce(Problem& problem) {
  AnnounceRequest request;
  request.slot = has_slot_ ? slot_.number : 0;
  request.device_count = known_count_;
  memcpy(request.devices, known_, sizeof known_);
  HeaderOnly reply;
  const int descriptors[kAnnounceDescriptors] = {slot_.bundle[0], slot_.bundle[1], slot_.counters_file};
  const std::span<const int> sent(descriptors, has_slot_ ? kAnnounceDescriptors : 0);
  Answer answer = exchange(MessageKind::kAnnounce, request, reply, problem, sent);
  // This program may not pass descriptors on as long as its user has so many in queues. Another one may have done it.
  if (answer == Answer::kRefused && problem.error == ETOOMANYREFS && connection_ && !connection_.would_yield())
    answer = exchange(MessageKind::kAnnounce, request, reply, problem);
  return answer == Answer::kGood && announce_gids(problem) && announce_xrc(problem);
}

// The members' queue pairs and address handles name GIDs by their indexes.
bool DaemonLink::announce_gids(Problem& problem) {
  for (uint32_t i = 0; i < known_count_; i++) {
    HeaderOnly reply;
    if (known_gids_[i] == nullptr) continue;
    if (exchange(MessageKind::kAnnounceGids, *known_gids_[i], reply, problem) != Answer::kGood) return false;
  }
  return true;
}

// The others that have the domain pass the same memory. One domain less is no reason to do without dappled.
bool DaemonLink::announce_xrc(Problem& problem) {
  for (const XrcHold* hold = xrc_; hold != nullptr; hold = hold->next) {
    XrcOpenRequest request;
    request.device = hold->device;
    request.flags = kXrcCreates;
    XrcOpenReply reply;
    const int sent[] = {hold->file, hold->memory.get()};
    if (exchange(MessageKind::kXrcOpen, request, reply, problem, sent) == Answer::kGone || !connection_) return false;
  }
  return true;
}

void DaemonLink::remember(const DeviceInfo& info) {
  AnnouncedDevice* known = known_;
  while (known != known_ + known_count_ && known->index != info.index) known++;
  if (known == known_ + kMaxDevices) known = known_;
  if (known == known_ + known_count_) known_count_++;
  assert(known_count_ <= kMaxDevices);
  memcpy(known->netdev, info.netdev, sizeof known->netdev);
  known->index = info.index;
  known->netdev_index = info.netdev_index;
  known->guid = info.guid;
  known->rail = info.rail;
  std::unique_ptr<AnnounceGidsRequest>& gids = known_gids_[known - known_];
  if (gids == nullptr) gids.reset(new (std::nothrow) AnnounceGidsRequest);
  if (gids == nullptr) return;
  gids->guid = info.guid;
  gids->index = info.index;
  gids->generation = info.generation;
  std::copy_n(info.gids, kMaxGids, gids->gids);
}

bool DaemonLink::ask_sealed(MessageKind kind, std::span<const std::byte> request, const ReplyRoom& reply,
                            Descriptors* descriptors, Problem& problem, std::span<const int> sent, bool* again) {
  assert_held(mutex_);
  // Most questions are answered at once, and the clock may cost as much as a question.
  uint64_t end = 0;
  do {
    if (!connected(problem)) return false;
    problem.clear();
    switch (connection_.exchange(kind, request, sent, reply, descriptors, problem)) {
      case Answer::kGood:
        problem.clear();
        return true;
      case Answer::kRefused:
        if (!connection_.would_yield()) return false;
        connection_.close();
        if (!replace_daemon()) return false;
        break;
      case Answer::kGone:
        if (again != nullptr) *again = true;
        break;
    }
    if (end == 0) end = now_ms() + kPatienceMs;
  } while (now_ms() <= end);
  return false;
}

bool DaemonLink::slot(Slot& slot, Problem& problem) {
  const Question question(*this);
  if (!has_slot_) {
    HeaderOnly request;
    SlotReply reply;
    Descriptors descriptors;
    if (!ask(MessageKind::kSlot, request, reply, &descriptors, problem)) return false;
    if (descriptors.count != kSlotDescriptors || reply.slot == 0 || reply.slot >= kMaxSlots) {
      connection_.close();
      problem.set(EPROTO, "dappled handed over an incomplete slot");
      return false;
    }
    SlotPages* pages = map_counters(descriptors.fds[kSlotDescriptors - 1].get(), reply.slot);
    if (pages == nullptr) {
      problem.set(ENOMEM, "the slot's counters cannot be mapped: %s", strerror(errno));
      connection_.close();
      return false;
    }
    for (size_t i = 0; i < kSlotDescriptors; i++) {
      slot_fds_[i] = std::move(descriptors.fds[i]);
      slot_fds_[i].hide();
    }
    slot_.number = reply.slot;
    slot_.dual_stack = reply.dual_stack != 0;
    slot_.receive_socket = slot_fds_[0].get();
    slot_.bundle[0] = slot_fds_[1].get();
    slot_.bundle[1] = slot_fds_[2].get();
    slot_.lease = slot_fds_[3].get();
    slot_.counters_file = slot_fds_[4].get();
    slot_.counters = &pages->counters;
    slot_.devices = &pages->devices;
    slot_.transports = &pages->transports;
    slot_.gid_uses = &pages->gid_uses;
    slot_.resources = &pages->resources;
    has_slot_ = true;
  }
  assert(slot_.number != 0 && slot_.number < kMaxSlots && slot_.counters != nullptr);
  slot = slot_;
  return true;
}

bool DaemonLink::open_xrc(XrcHold& hold, uint32_t flags, XrcOutcome& outcome, Problem& problem) {
  const Question question(*this);
  XrcOpenRequest request;
  request.device = hold.device;
  request.flags = flags;
  XrcOpenReply reply;
  Descriptors received;
  if (!ask(MessageKind::kXrcOpen, request, reply, &received, problem, {&hold.file, 1})) return false;
  outcome = reply.outcome;
  if (outcome == XrcOutcome::kMissing || outcome == XrcOutcome::kExists) return true;
  if (outcome != XrcOutcome::kOpen || received.count != 1 || !is_xrc_domain_file(received.fds[0].get())) {
    connection_.close();
    problem.set(EPROTO, "dappled handed over no memory of an XRC domain");
    return false;
  }
  hold.memory = std::move(received.fds[0]);
  hold.memory.hide();
  hold.next = xrc_;
  xrc_ = &hold;
  return true;
}

void DaemonLink::close_xrc(XrcHold& hold) {
  const Question question(*this);
  XrcHold** at = &xrc_;
  while (*at != &hold) at = &(*at)->next;
  *at = hold.next;
  XrcCloseRequest request;
  request.device = hold.device;
  request.file_device = hold.inode.device;
  request.file_inode = hold.inode.number;
  HeaderOnly reply;
  Problem problem;
  ask(MessageKind::kXrcClose, request, reply, nullptr, problem);
}

bool DaemonLink::cm_open(int end, CmChannelName& name, OwnedFd& journal, Problem& problem) {
  const Question question(*this);
  HeaderOnly request;
  CmOpenReply reply;
  Descriptors received;
  if (!ask(MessageKind::kCmOpen, request, reply, &received, problem, {&end, 1})) return false;
  if (received.count != 1) {
    connection_.close();
    problem.set(EPROTO, "dappled handed over an incomplete channel");
    return false;
  }
  name = reply.channel;
  journal = std::move(received.fds[0]);
  return true;
}

int DaemonLink::cm_command(CmCommandRequest& request, CmCommandReply& reply, bool& again, Problem& problem) {
  const Question question(*this);
  again = false;
  if (ask(MessageKind::kCmCommand, request, reply, nullptr, problem, {}, &again)) return 0;
  return problem.error != 0 ? problem.error : EIO;
}

void DaemonLink::cm_resume(const CmChannelName& name) {
  const Question question(*this);
  if (!connection_) return;  // the next dappled holds nothing
  CmResumeRequest request;
  request.channel = name;
  HeaderOnly reply;
  Problem problem;
  exchange(MessageKind::kCmResume, request, reply, problem);
}

bool DaemonLink::restore(const CmChannel& channel, Problem& problem, Problem& loss) {
  HeaderOnly request;
  CmRestoreReply reply;
  const int sent[] = {channel.end, channel.journal};
  Answer answer = exchange(MessageKind::kCmRestore, request, reply, problem, sent);
  // Memory may lack for a moment, here for the message or at dappled.
  for (int tries = 1; tries < kRestoreTries && answer == Answer::kRefused && lacks_memory(problem.error); tries++) {
    nanosleep(&kBusyPause, nullptr);
    answer = exchange(MessageKind::kCmRestore, request, reply, problem, sent);
  }
  // After a refusal, the program's end reads an end of file, so no thread waits for an event that cannot come.
  // The next dappled may have a descriptor for it.
  if (answer == Answer::kRefused && connection_ && !connection_.would_yield()) {
    shutdown(channel.end, SHUT_RDWR);
    loss = problem;
  } else if (answer == Answer::kGood && reply.lost_listeners > 0) {
    loss.set(EADDRINUSE,
             "%u listener%s of this program %s closed, because another program got port %u while dappled was gone "
             "(RDMA_CM_EVENT_DEVICE_REMOVAL)",
             reply.lost_listeners, reply.lost_listeners == 1 ? "" : "s", reply.lost_listeners == 1 ? "was" : "were",
             reply.lost_port);
  }
  return static_cast<bool>(connection_);
}

bool DaemonLink::restore_late(const CmChannel& channel, Problem& problem, Problem& loss) {
  const Question question(*this);
  return connected(problem) && restore(channel, problem, loss);
}

bool DaemonLink::capture(int file, Problem& problem) {
  const Question question(*this);
  HeaderOnly request, reply;
  return ask(MessageKind::kCapture, request, reply, nullptr, problem, {&file, 1});
}

bool DaemonLink::capture_again(int file, Problem& problem) {
  HeaderOnly request, reply;
  exchange(MessageKind::kCapture, request, reply, problem, {&file, 1});
  return static_cast<bool>(connection_);
}

bool DaemonLink::check(Problem& problem) {
  const Question question(*this);
  connection_.read_reports();
  return connected(problem);
}

DaemonLink::State DaemonLink::look() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return State::kBusy;
  connection_.read_reports();
  return connection_ ? State::kConnected : State::kGone;
}

void DaemonLink::fork_child() {
  connection_.leave_to_parent();
  for (OwnedFd& fd : slot_fds_) fd.reset();
  slot_ = {};
  has_slot_ = false;
  for (; xrc_ != nullptr; xrc_ = xrc_->next) xrc_->memory.reset();
  mutex_.unlock();
}

}  // namespace dapple::soft
