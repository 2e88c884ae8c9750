// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/member/daemon_link.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

#include "provider/common/clock.hpp"
#include "provider/common/settings.hpp"
#include "provider/member/counters_file.hpp"
#include "provider/member/daemon_start.hpp"
#include "provider/member/name_holder.hpp"
#include "provider/member/open_questions.hpp"
#include "provider/member/trust.hpp"
#include "provider/member/xrc_domain_file.hpp"
#include "provider/protocol/identity_text.hpp"
#include "provider/system/process_state.hpp"

namespace dapple::soft {
namespace {

// A dappled that ends at this moment costs one try. On a busy machine several in a row end before their starter runs
// again. More than that are not an accident.
constexpr int kTries = 32;
constexpr timeval kAnswerTime = {10, 0};
// A dappled that has no CPU, or that the kernel or a disk keeps waiting, gets the time so many times again.
constexpr int kMoreWaits = 5;
// A question that kills each dappled is not repeated without limit.
constexpr uint64_t kPatienceMs = 10'000;
constexpr timespec kBusyPause = {0, 20'000'000};
// A channel of rdma_cm that is not handed over is lost, so a lack of memory gets some time to end.
constexpr int kRestoreTries = 10;

constexpr uint16_t kRefusedConnection = static_cast<uint16_t>(MessageKind::kConnection) | kReplyBit;

void silent_holder(Problem& problem) {
  char subject[120];
  name_holder(find_name_holder(kDaemonName, SOCK_SEQPACKET), subject, sizeof subject);
  problem.set(ETIMEDOUT, "%s has the name of dappled and does not answer; end it, or run in another network namespace",
              subject);
}

bool holder_is_kept_waiting() {
  return is_kept_waiting(find_name_holder(kDaemonName, SOCK_SEQPACKET).process);
}

bool lacks_memory(int error) {
  return error == ETOOMANYREFS || error == ENOMEM || error == ENOBUFS;
}

// After a refused connection. Too many connections may be fewer after a pause. A lack of descriptors lasts.
bool may_change_soon(const Problem& problem) {
  if (problem.error != EBUSY) return false;
  nanosleep(&kBusyPause, nullptr);
  return true;
}

}  // namespace

std::unique_ptr<DaemonLink> DaemonLink::open(Problem& problem, Start start) {
  std::unique_ptr<DaemonLink> link(new (std::nothrow) DaemonLink(start));
  if (link == nullptr) {
    problem.set(ENOMEM, "no memory for the connection to dappled");
    return nullptr;
  }
  return link->check(problem) ? std::move(link) : nullptr;
}

bool DaemonLink::connect_once(Problem& problem, bool& nobody) {
  nobody = false;
  OwnedFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket) {
    problem.set(errno, "cannot make a socket to reach dappled: %s%s", strerror(errno), descriptor_remedy(errno));
    return false;
  }
  setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kAnswerTime, sizeof kAnswerTime);
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &kAnswerTime, sizeof kAnswerTime);
  sockaddr_un address;
  const socklen_t size = abstract_address(kDaemonName, address);
  int result;
  int more_waits = kMoreWaits;
  do {
    result = connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size);
  } while (result != 0 && (errno == EINTR || (errno == EAGAIN && more_waits-- > 0 && holder_is_kept_waiting())));
  if (result != 0) {
    nobody = errno == ECONNREFUSED;
    problem.set(errno, nobody ? "dappled does not run" : "dappled cannot be reached: %s", strerror(errno));
    if (problem.error == EAGAIN) note_silence(problem);
    return false;
  }
  // Any process may take an abstract name.
  ucred who = {};
  socklen_t who_size = sizeof who;
  getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &who, &who_size);
  if (!trusted_uid(who.uid)) {
    char process[32] = "";
    if (who.pid != 0) snprintf(process, sizeof process, " (process %d)", who.pid);
    problem.set(EACCES,
                "dappled of user %u%s serves this network namespace; run as that user, in another network namespace, "
                "or set DAPPLE_TRUST_UID for both",
                who.uid, process);
    return false;
  }
  socket_ = std::move(socket);
  socket_.hide();
  fd_.store(socket_.get(), std::memory_order_relaxed);
  return true;
}

void DaemonLink::disconnect() {
  fd_.store(-1, std::memory_order_relaxed);
  // Wakes a thread that polls the descriptor.
  if (socket_) shutdown(socket_.get(), SHUT_RDWR);
  socket_.reset();
}

DaemonLink::Question::Question(DaemonLink& link) {
  const uint64_t begun = now_ns();
  lock_ = std::unique_lock(link.mutex_);
  link.asked_ = begun;
}

void DaemonLink::note_silence(Problem& problem) {
  silence_ = now_ns();
  silent_holder(problem);
}

bool DaemonLink::connected(Problem& problem) {
  if (socket_) return true;
  // Another thread has found dappled silent while this one waited for the lock.
  if (silence_ > asked_) {
    silent_holder(problem);
    return false;
  }
  const OpenQuestion waits;
  for (int i = 0; i < kTries; i++) {
    bool nobody = false;
    if (connect_once(problem, nobody)) {
      // The last dappled may have died before it could report a change.
      note_change();
      answer_ = Answer::kGood;
      would_yield_ = false;
      const bool accepted =
          identify(problem) && choose_gids(problem) && ((!has_slot_ && known_count_ == 0) || announce(problem));
      if (accepted && reconnected_ != nullptr) reconnected_(*this, problem);
      if (accepted && socket_ && !would_yield_) return true;
      if (died_in_the_middle()) continue;
      disconnect();
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
  if (!std::exchange(would_yield_, false) || start_ == Start::kNever || cannot_replace_) return false;
  cannot_replace_ = !start_daemon(Starting::kReplace, problem);
  return !cannot_replace_;
}

void DaemonLink::note_refusal(const ErrorReply& reply, Problem& problem) {
  problem.set(static_cast<int>(reply.header.error), "%.*s", static_cast<int>(sizeof reply.line - 1), reply.line);
  would_yield_ = reply.limits.open_files != 0 && hard_limits().allow_more_than(reply.limits);
}

// dappled refuses a new connection, and closes it, before it has read anything. Its report is still in the queue.
bool DaemonLink::was_refused(Problem& problem) {
  std::byte room[sizeof(ErrorReply)];
  Descriptors none;
  ErrorReply refused;
  for (int i = 0; i < 2; i++) {  // the first call reports the end of the connection
    const ssize_t size = receive_message(socket_.get(), room, none, MSG_DONTWAIT);
    if (size <= 0 || !well_formed(std::span(room).first(static_cast<size_t>(size)), kRefusedConnection, refused))
      continue;
    note_refusal(refused, problem);
    return true;
  }
  return false;
}

template <class Reply>
DaemonLink::Answer DaemonLink::exchange(std::span<const std::byte> request, uint16_t kind, std::span<const int> sent,
                                        Reply& reply, Descriptors* descriptors, Problem& problem) {
  assert_held(mutex_);
  const OpenQuestion waits;
  answer_ = exchange_once(request, kind, sent, reply, descriptors, problem);
  return answer_;
}

template <class Reply>
DaemonLink::Answer DaemonLink::exchange_once(std::span<const std::byte> request, uint16_t kind,
                                             std::span<const int> sent, Reply& reply, Descriptors* descriptors,
                                             Problem& problem) {
  static_assert(sizeof(Reply) <= kMaxMessageSize && sizeof(ErrorReply) <= kMaxMessageSize);
  assert(socket_);
  would_yield_ = false;
  if (const int error = send_message(socket_.get(), request, sent); error != 0) {
    // EAGAIN: dappled's queue is full, because it does not read any more. A lack of descriptors or memory is our own.
    problem.set(error, "dappled cannot be asked: %s%s", strerror(error), descriptor_remedy(error));
    if (error == EAGAIN) note_silence(problem);
    if (lacks_memory(error)) return Answer::kRefused;
    const bool refused = was_refused(problem);
    disconnect();
    if (refused) return may_change_soon(problem) ? Answer::kGone : Answer::kRefused;
    return error == EAGAIN ? Answer::kRefused : Answer::kGone;
  }
  alignas(8) std::byte room[kMaxMessageSize];
  ssize_t size;
  int more_waits = kMoreWaits;
  do {
    size = descriptors == nullptr ? receive_message(socket_.get(), room)
                                  : receive_message(socket_.get(), room, *descriptors);
  } while (is_change(room, size) || (size == -EAGAIN && more_waits-- > 0 && holder_is_kept_waiting()));
  if (size <= 0) {
    const int error = size == 0 ? EPIPE : static_cast<int>(-size);
    problem.set(error,
                error == EMFILE ? "No file descriptor is left for descriptors from dappled; raise ulimit -n"
                                : "dappled does not answer: %s",
                strerror(error));
    if (error == EAGAIN) note_silence(problem);
    const bool refused = was_refused(problem);
    // An answer that comes later would be taken for the next question's.
    disconnect();
    if (refused) return may_change_soon(problem) ? Answer::kGone : Answer::kRefused;
    return error == EAGAIN || error == EMFILE ? Answer::kRefused : Answer::kGone;
  }
  const std::span<const std::byte> bytes(room, static_cast<size_t>(size));
  kind |= kReplyBit;
  ErrorReply refused;
  if (well_formed(bytes, kRefusedConnection, refused)) {
    note_refusal(refused, problem);
    disconnect();
    return may_change_soon(problem) ? Answer::kGone : Answer::kRefused;
  }
  if (well_formed(bytes, kind, refused) && refused.header.error != 0) {
    note_refusal(refused, problem);
    return Answer::kRefused;
  }
  if (well_formed(bytes, kind, reply)) {
    if (reply.header.error == 0) return Answer::kGood;
    problem.error = static_cast<int>(reply.header.error);
    return Answer::kRefused;
  }
  problem.set(EPROTO, "dappled has another release; end the programs that use dappled and start again");
  disconnect();
  return Answer::kRefused;
}

bool DaemonLink::is_change(std::span<const std::byte> room, ssize_t size) {
  HeaderOnly message;
  const uint16_t kind = static_cast<uint16_t>(MessageKind::kChanged);
  if (size <= 0 || !well_formed(room.first(static_cast<size_t>(size)), kind, message)) return false;
  note_change();
  return true;
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
  const uint16_t kind = static_cast<uint16_t>(MessageKind::kIdentity);
  HeaderOnly reply;
  const std::span<const int> sent(&file, profile_ ? 1 : 0);
  return exchange(seal(request, kind), kind, sent, reply, nullptr, problem) == Answer::kGood;
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
  const uint16_t kind = static_cast<uint16_t>(MessageKind::kGids);
  HeaderOnly request, reply;
  return exchange(seal(request, kind), kind, {&file, 1}, reply, nullptr, problem) == Answer::kGood;
}

bool DaemonLink::announce(Problem& problem) {
  AnnounceRequest request;
  request.slot = has_slot_ ? slot_.number : 0;
  request.device_count = known_count_;
  memcpy(request.devices, known_, sizeof known_);
  HeaderOnly reply;
  const int descriptors[kAnnounceDescriptors] = {slot_.bundle[0], slot_.bundle[1], slot_.counters_file};
  const std::span<const int> sent(descriptors, has_slot_ ? kAnnounceDescriptors : 0);
  const uint16_t kind = static_cast<uint16_t>(MessageKind::kAnnounce);
  Answer answer = exchange(seal(request, kind), kind, sent, reply, nullptr, problem);
  // This program may not pass descriptors on as long as its user has so many in queues. Another one may have done it.
  if (answer == Answer::kRefused && problem.error == ETOOMANYREFS && socket_ && !would_yield_)
    answer = exchange(seal(request, kind), kind, {}, reply, nullptr, problem);
  return answer == Answer::kGood && announce_gids(problem) && announce_xrc(problem);
}

// The members' queue pairs and address handles name GIDs by their indexes.
bool DaemonLink::announce_gids(Problem& problem) {
  const uint16_t kind = static_cast<uint16_t>(MessageKind::kAnnounceGids);
  for (uint32_t i = 0; i < known_count_; i++) {
    HeaderOnly reply;
    if (known_gids_[i] == nullptr) continue;
    if (exchange(seal(*known_gids_[i], kind), kind, {}, reply, nullptr, problem) != Answer::kGood) return false;
  }
  return true;
}

// The others that have the domain pass the same memory. One domain less is no reason to do without dappled.
bool DaemonLink::announce_xrc(Problem& problem) {
  const uint16_t kind = static_cast<uint16_t>(MessageKind::kXrcOpen);
  for (const XrcHold* hold = xrc_; hold != nullptr; hold = hold->next) {
    XrcOpenRequest request;
    request.device = hold->device;
    request.flags = kXrcCreates;
    XrcOpenReply reply;
    const int sent[] = {hold->file, hold->memory.get()};
    if (exchange(seal(request, kind), kind, sent, reply, nullptr, problem) == Answer::kGone || !socket_) return false;
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

template <class Request, class Reply>
bool DaemonLink::ask(MessageKind kind, Request& request, Reply& reply, Descriptors* descriptors, Problem& problem,
                     std::span<const int> sent, bool* again) {
  const uint16_t number = static_cast<uint16_t>(kind);
  // Most questions are answered at once, and the clock may cost as much as a question.
  uint64_t end = 0;
  do {
    if (!connected(problem)) return false;
    problem.clear();
    switch (exchange(seal(request, number), number, sent, reply, descriptors, problem)) {
      case Answer::kGood:
        problem.clear();
        return true;
      case Answer::kRefused:
        if (!would_yield_) return false;
        disconnect();
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

bool DaemonLink::devices(DeviceList& list, Problem& problem) {
  const Question question(*this);
  HeaderOnly request;
  DevicesReply reply;
  if (!ask(MessageKind::kDevices, request, reply, nullptr, problem)) return false;
  list.generation = reply.generation;
  list.count = reply.count < kMaxDevices ? reply.count : kMaxDevices;
  memcpy(list.indexes, reply.indexes, sizeof list.indexes);
  return true;
}

bool DaemonLink::device(uint32_t index, DeviceInfo& info, Problem& problem) {
  const Question question(*this);
  DeviceRequest request;
  request.index = index;
  DeviceReply reply;
  if (!ask(MessageKind::kDevice, request, reply, nullptr, problem)) return false;
  info = reply.device;
  info.name[sizeof info.name - 1] = '\0';
  info.netdev[sizeof info.netdev - 1] = '\0';
  remember(info);
  return true;
}

bool DaemonLink::slot(Slot& slot, Problem& problem) {
  const Question question(*this);
  if (!has_slot_) {
    HeaderOnly request;
    SlotReply reply;
    Descriptors descriptors;
    if (!ask(MessageKind::kSlot, request, reply, &descriptors, problem)) return false;
    if (descriptors.count != kSlotDescriptors || reply.slot == 0 || reply.slot >= kMaxSlots) {
      disconnect();
      problem.set(EPROTO, "dappled handed over an incomplete slot");
      return false;
    }
    SlotPages* pages = map_counters(descriptors.fds[kSlotDescriptors - 1].get(), reply.slot);
    if (pages == nullptr) {
      problem.set(ENOMEM, "the slot's counters cannot be mapped: %s", strerror(errno));
      disconnect();
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
    disconnect();
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

bool DaemonLink::status(StatusReply& status, Problem& problem) {
  const Question question(*this);
  HeaderOnly request;
  return ask(MessageKind::kStatus, request, status, nullptr, problem);
}

bool DaemonLink::transports(uint32_t slot, uint32_t first, TransportsReply& reply, Problem& problem) {
  const Question question(*this);
  TransportsRequest request;
  request.slot = slot;
  request.first = first;
  return ask(MessageKind::kTransports, request, reply, nullptr, problem);
}

bool DaemonLink::tree(OwnedFd& folder, char (&path)[kTreePathSize], Problem& problem) {
  const Question question(*this);
  HeaderOnly request;
  TreeReply reply;
  Descriptors received;
  if (!ask(MessageKind::kTree, request, reply, &received, problem)) return false;
  if (received.count != 1) {
    disconnect();
    problem.set(EPROTO, "dappled handed over no folder");
    return false;
  }
  folder = std::move(received.fds[0]);
  memcpy(path, reply.path, sizeof path);
  path[sizeof path - 1] = '\0';
  return true;
}

bool DaemonLink::refresh_tree(const char* path, bool& unreadable, Problem& problem) {
  RefreshTreeRequest request;
  RefreshTreeReply reply;
  const size_t size = strlen(path);
  if (size >= sizeof request.path) {
    problem.set(ENAMETOOLONG, "the path is too long");
    return false;
  }
  memcpy(request.path, path, size + 1);
  const Question question(*this);
  if (!ask(MessageKind::kRefreshTree, request, reply, nullptr, problem)) return false;
  unreadable = reply.unreadable != 0;
  return true;
}

bool DaemonLink::export_tree(int folder, Problem& problem) {
  const Question question(*this);
  HeaderOnly request, reply;
  return ask(MessageKind::kExportTree, request, reply, nullptr, problem, {&folder, 1});
}

bool DaemonLink::watch_tree(Problem& problem) {
  const Question question(*this);
  HeaderOnly request, reply;
  return ask(MessageKind::kExportTree, request, reply, nullptr, problem);
}

bool DaemonLink::resource_counts(uint32_t device, ResourceCountsReply& reply, Problem& problem) {
  const Question question(*this);
  ResourceCountsRequest request;
  request.device = device;
  return ask(MessageKind::kResourceCounts, request, reply, nullptr, problem);
}

bool DaemonLink::resources(uint32_t device, ResourceKind kind, uint32_t slot, uint32_t first, ResourcesReply& reply,
                           Problem& problem) {
  const Question question(*this);
  ResourcesRequest request;
  request.device = device;
  request.kind = kind;
  request.slot = slot;
  request.first = first;
  return ask(MessageKind::kResources, request, reply, nullptr, problem);
}

bool DaemonLink::cm_ids(uint32_t device, uint64_t after, CmIdsReply& reply, Problem& problem) {
  const Question question(*this);
  CmIdsRequest request;
  request.device = device;
  request.after = after;
  return ask(MessageKind::kCmIds, request, reply, nullptr, problem);
}

bool DaemonLink::hw_counters(uint32_t device, HwCountersReply& reply, Problem& problem) {
  const Question question(*this);
  HwCountersRequest request;
  request.device = device;
  return ask(MessageKind::kHwCounters, request, reply, nullptr, problem);
}

bool DaemonLink::cm_open(int end, CmChannelName& name, OwnedFd& journal, Problem& problem) {
  const Question question(*this);
  HeaderOnly request;
  CmOpenReply reply;
  Descriptors received;
  if (!ask(MessageKind::kCmOpen, request, reply, &received, problem, {&end, 1})) return false;
  if (received.count != 1) {
    disconnect();
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
  if (!socket_) return;  // the next dappled holds nothing
  CmResumeRequest request;
  request.channel = name;
  HeaderOnly reply;
  Problem problem;
  const uint16_t kind = static_cast<uint16_t>(MessageKind::kCmResume);
  exchange(seal(request, kind), kind, {}, reply, nullptr, problem);
}

bool DaemonLink::restore(const CmChannel& channel, Problem& problem, Problem& loss) {
  HeaderOnly request;
  CmRestoreReply reply;
  const uint16_t kind = static_cast<uint16_t>(MessageKind::kCmRestore);
  const int sent[] = {channel.end, channel.journal};
  Answer answer = exchange(seal(request, kind), kind, sent, reply, nullptr, problem);
  // Memory may lack for a moment, here for the message or at dappled.
  for (int tries = 1; tries < kRestoreTries && answer == Answer::kRefused && lacks_memory(problem.error); tries++) {
    nanosleep(&kBusyPause, nullptr);
    answer = exchange(seal(request, kind), kind, sent, reply, nullptr, problem);
  }
  // After a refusal, the program's end reads an end of file, so no thread waits for an event that cannot come.
  // The next dappled may have a descriptor for it.
  if (answer == Answer::kRefused && socket_ && !would_yield_) {
    shutdown(channel.end, SHUT_RDWR);
    loss = problem;
  } else if (answer == Answer::kGood && reply.lost_listeners > 0) {
    loss.set(EADDRINUSE,
             "%u listener%s of this program %s closed, because another program got port %u while dappled was gone "
             "(RDMA_CM_EVENT_DEVICE_REMOVAL)",
             reply.lost_listeners, reply.lost_listeners == 1 ? "" : "s", reply.lost_listeners == 1 ? "was" : "were",
             reply.lost_port);
  }
  return static_cast<bool>(socket_);
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
  const uint16_t kind = static_cast<uint16_t>(MessageKind::kCapture);
  exchange(seal(request, kind), kind, {&file, 1}, reply, nullptr, problem);
  return static_cast<bool>(socket_);
}

void DaemonLink::read_reports() {
  assert_held(mutex_);
  if (!socket_) return;
  std::byte room[sizeof(HeaderOnly)];
  Descriptors none;
  ssize_t size;
  do {
    size = receive_message(socket_.get(), room, none, MSG_DONTWAIT);
  } while (is_change(room, size));
  // Nothing else comes unasked, so there is either nothing or the end.
  if (size != -EAGAIN) disconnect();
}

bool DaemonLink::check(Problem& problem) {
  const Question question(*this);
  read_reports();
  return connected(problem);
}

DaemonLink::State DaemonLink::look() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return State::kBusy;
  read_reports();
  return socket_ ? State::kConnected : State::kGone;
}

void DaemonLink::fork_child() {
  // The parent's connection must not end.
  fd_.store(-1, std::memory_order_relaxed);
  socket_.reset();
  for (OwnedFd& fd : slot_fds_) fd.reset();
  slot_ = {};
  has_slot_ = false;
  for (; xrc_ != nullptr; xrc_ = xrc_->next) xrc_->memory.reset();
  mutex_.unlock();
}

}  // namespace dapple::soft
