// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/server.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "provider/dappled/limits.hpp"
#include "provider/member/trust.hpp"
#include "provider/network/namespace_identity.hpp"
#include "provider/system/random.hpp"

namespace dapple::dappled {
namespace {

constexpr uint64_t kListenerKey = UINT64_MAX;
constexpr uint64_t kNetdevKey = UINT64_MAX - 1;
constexpr uint64_t kCmKey = UINT64_MAX - 2;
constexpr uint64_t kStopKey = UINT64_MAX - 3;
constexpr int kEventsAtOnce = 64;
constexpr Milliseconds kRetry = 20;
// Members of a dappled that died announce themselves within this time.
constexpr Milliseconds kPortPatience = 3000;
constexpr Milliseconds kTidy = 200;
constexpr Milliseconds kFarewell = 6000;

// The same for each dappled of this namespace, or random if the system does not distinguish namespaces.
uint64_t number_of_namespace() {
  uint64_t number = soft::namespace_identity();
  if (number != 0) return number;
  soft::fill_with_random_bytes(&number, sizeof number);
  return number;
}

}  // namespace

Server::Server(soft::OwnedFd listener, const soft::SocketProcess& starter, Milliseconds linger)
    : listener_(std::move(listener)),
      starter_(starter),
      linger_(linger),
      devices_(number_of_namespace(), this),
      gid_orders_(devices_),
      cm_(devices_, gid_orders_) {}

void Server::watch(int fd, uint64_t key, bool on) {
  epoll_event event = {};
  event.events = on ? static_cast<uint32_t>(EPOLLIN) : 0;
  event.data.u64 = key;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) != 0) epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
}

int Server::prepare(soft::OwnedFd stop) {
  stop_ = std::move(stop);
  if (!stop_) return errno;
  epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return errno;
  spare_.keep();
  // The watch begins before the first reading, so that no change is missed.
  const int error_of_watch = netdev_watch_.open();
  if (is_file_shortage(error_of_watch)) return error_of_watch;
  if (error_of_watch == 0) watch(netdev_watch_.fd(), kNetdevKey, true);
  if (const int error = refresh_devices(); is_file_shortage(error)) return error;
  if (const int error = cm_.prepare(); error != 0) return error;
  watch(cm_.fd(), kCmKey, true);
  watch(listener_.get(), kListenerKey, true);
  watch(stop_.get(), kStopKey, true);
  alone_since_ = now();
  return 0;
}

bool Server::run() {
  epoll_event events[kEventsAtOnce];
  bool stops = false;
  while (!stops && !yielded_ && !finished()) {
    const int count = epoll_wait(epoll_.get(), events, kEventsAtOnce, wait_for_cm(wait_time()));
    cm_.begin_pass();
    for (int i = 0; i < count && !yielded_; i++) {
      const uint64_t key = events[i].data.u64;
      if (key == kListenerKey) {
        accept_all();
      } else if (key == kNetdevKey) {
        refresh_devices();
      } else if (key == kCmKey) {
        cm_.serve();
      } else if (key == kStopKey) {
        stops = true;
      } else if (Connection& connection = connections_[key]; connection.socket) {
        // Nobody waits for the answer any more, and the program may have been told that the question failed.
        (events[i].events & EPOLLHUP) != 0 ? drop(connection) : serve(connection);
      }
    }
    // The successor may serve by now. An announcement that both answer makes both look through the bundle at once,
    // which has one position for both. Members repeat their questions to the successor.
    if (yielded_) break;
    cm_.advance();
    soft::Problem problem;
    give_wire(problem);
    retry_waiting();
    if (accepts_later_) {
      accept_later(false);
      accept_all();
    }
    if (slots_left_) slots_left_ = slots_.tidy();
    write_exports();
    assert_consistent();
  }
  remove_trees();
  cm_.drop_wire();
  // Frees the port before the name: a successor that gets the name may take the port at once.
  slots_.close();
  listener_.reset();
  return !stops && !yielded_;
}

void Server::assert_consistent() const {
  assert(members_ <= connection_count_ && connection_count_ <= kMaxConnections);
  assert(connection_count_ - members_ <= kMaxStrangers);
  assert(waiting_ <= members_ && exports_ + tree_watchers_ <= members_);
  assert(told_generation_ <= devices_.generation());
  // The wire's socket is slot 0's.
  assert(!cm_.has_wire() || slots_.group().exists());
}

int Server::wait_time() const {
  if (waiting_ > 0 || accepts_later_) return kRetry;
  if (slots_left_) return kTidy;
  if (writes_regularly()) return static_cast<int>(std::max<Milliseconds>(next_export_ - now(), 0)) + 1;
  if (members_ > 0) return -1;
  if (cm_.channels() > 0) return -1;
  const Milliseconds left = alone_since_ + linger() - now();
  return left > 0 ? static_cast<int>(left) + 1 : 0;
}

Milliseconds Server::linger() const {
  // The peers of killed programs still need a DREQ or REJ, which may have to be repeated.
  if (cm_.says_farewell()) return std::max(linger_, kFarewell);
  return gives_way() ? 0 : linger_;
}

// A program of another user waits for a second at most (idle_daemon.hpp). Before the first member has come, a stranger
// could end each dappled that a program starts.
bool Server::gives_way() const {
  const bool has_strangers = connection_count_ > members_;
  return has_strangers && had_members_ && linger_ <= kUsualLinger;
}

bool Server::finished() {
  if (members_ > 0 || slots_left_ || cm_.channels() > 0 || now() - alone_since_ < linger()) return false;
  // A member may have connected at the last moment.
  accept_all();
  return members_ == 0;
}

void Server::accept_all() {
  spare_.keep();
  for (int i = 0; i < 4 * kEventsAtOnce; i++) {
    soft::OwnedFd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket) {
      accept_one(std::move(socket));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EMFILE || errno == ENFILE) {
      // The connection stays in the queue, so the loop must not look there for a while.
      if (!spare_) return accept_later(true);
      const int error = spare_.refuse_one(listener_.get(), [this](const soft::OwnedFd& refused) {
        if (yields_at_once(refused)) return;
        soft::Problem problem;
        problem.set(EMFILE, "dappled has no file descriptor left");
        refuse_connection(refused, problem);
      });
      if (error == EAGAIN || yielded_) return;
      continue;
    }
    return;
  }
}

ucred Server::peer_of(const soft::OwnedFd& socket) {
  ucred who = {};
  socklen_t size = sizeof who;
  getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &who, &size);
  return who;
}

void Server::accept_later(bool later) {
  accepts_later_ = later;
  watch(listener_.get(), kListenerKey, !later);
}

void Server::accept_one(soft::OwnedFd socket) {
  const ucred who = peer_of(socket);
  const bool trusted = soft::trusted_uid(who.uid);
  const uint32_t strangers = connection_count_ - members_;
  if (connection_count_ == kMaxConnections || (!trusted && strangers >= kMaxStrangers)) {
    soft::Problem problem;
    problem.set(EBUSY, "dappled has %u connections, and takes no more%s", connection_count_,
                trusted ? "; end a program, or run in another network namespace" : " of other users");
    return refuse_connection(socket, problem);
  }
  for (uint32_t i = 0; i < kMaxConnections; i++) {
    Connection& connection = connections_[i];
    if (connection.socket) continue;
    connection = {};
    connection.uid = who.uid;
    connection.process = who.pid;
    connection.trusted = trusted;
    assert(connection.slot == 0 && connection.waits_for_port == 0 && connection.held.key == 0);
    connection.socket = std::move(socket);
    watch(connection.socket.get(), i, true);
    connection_count_++;
    if (trusted) members_++;
    had_members_ = had_members_ || trusted;
    return;
  }
}

void Server::wait_for_port(Connection& connection, Milliseconds until) {
  assert(connection.waits_for_port == 0 || waiting_ > 0);
  // A connection that has a slot has nothing to wait for.
  assert(until == 0 || connection.slot == 0);
  waiting_ += until != 0 ? 1U : 0U;
  waiting_ -= connection.waits_for_port != 0 ? 1U : 0U;
  connection.waits_for_port = until;
}

// The slot becomes free when its owner's lease is gone.
void Server::leave_slot(Connection& connection) {
  if (connection.slot == 0) return;
  slots_.leave(connection.slot);
  slots_left_ = true;
  connection.slot = 0;
}

void Server::drop(Connection& connection) {
  assert(connection.socket && connection_count_ > 0 && (!connection.trusted || members_ > 0));
  wait_for_port(connection, 0);
  cm_.captures().remove(number_of(connection));
  xrc_domains_.leave(number_of(connection));
  resume(connection);
  end_export(connection);
  connection.socket.reset();
  connection_count_--;
  if (connection.trusted && --members_ == 0) alone_since_ = now();
  leave_slot(connection);
  const Sight sight = sight_of(connection);
  connection.view = Views::kDefault;
  connection.gid_order = GidOrders::kOwn;
  leave_sight(sight);
  views_.leave(sight.first);
  gid_orders_.leave(sight.second);
}

void Server::drop_malformed(Connection& connection) {
  malformed_++;
  drop(connection);
}

void Server::serve(Connection& connection) {
  alignas(8) std::byte room[soft::kMaxMessageSize];
  soft::Descriptors descriptors;
  const ssize_t size = soft::receive_message(connection.socket.get(), room, descriptors);
  if (size == -EAGAIN) return;
  if (size == -EMSGSIZE) return drop_malformed(connection);
  if (size <= 0 && size != -EMFILE) return drop(connection);
  // A member asks one question at a time: a second question would have to be stored.
  if (connection.waits_for_port != 0) return drop_malformed(connection);
  if (size == -EMFILE) return refuse_unreceived(connection, room);
  answer(connection, std::span(room, static_cast<size_t>(size)), descriptors);
}

const Server::Answer Server::kAnswers[] = {
    {soft::MessageKind::kDevices, kAnyone, &Server::handle<soft::HeaderOnly, &Server::answer_devices>},
    {soft::MessageKind::kDevice, kAnyone, &Server::handle<soft::DeviceRequest, &Server::answer_device>},
    {soft::MessageKind::kSlot, kTrusted, &Server::handle<soft::HeaderOnly, &Server::answer_slot>},
    {soft::MessageKind::kAnnounce, kTrusted, &Server::handle<soft::AnnounceRequest, &Server::answer_announce>},
    {soft::MessageKind::kStatus, kAnyone, &Server::handle<soft::HeaderOnly, &Server::answer_status>},
    {soft::MessageKind::kCmOpen, kTrusted, &Server::handle<soft::HeaderOnly, &Server::answer_cm_open>},
    {soft::MessageKind::kCmRestore, kTrusted, &Server::handle<soft::HeaderOnly, &Server::answer_cm_restore>},
    {soft::MessageKind::kCmCommand, kTrusted, &Server::handle<soft::CmCommandRequest, &Server::answer_cm_command>},
    {soft::MessageKind::kCapture, kTrusted, &Server::handle<soft::HeaderOnly, &Server::answer_capture>},
    {soft::MessageKind::kCmResume, kTrusted, &Server::handle<soft::CmResumeRequest, &Server::answer_cm_resume>},
    {soft::MessageKind::kTransports, kTrusted, &Server::handle<soft::TransportsRequest, &Server::answer_transports>},
    {soft::MessageKind::kResourceCounts, kTrusted,
     &Server::handle<soft::ResourceCountsRequest, &Server::answer_resource_counts>},
    {soft::MessageKind::kResources, kTrusted, &Server::handle<soft::ResourcesRequest, &Server::answer_resources>},
    {soft::MessageKind::kCmIds, kTrusted, &Server::handle<soft::CmIdsRequest, &Server::answer_cm_ids>},
    {soft::MessageKind::kHwCounters, kTrusted, &Server::handle<soft::HwCountersRequest, &Server::answer_hw_counters>},
    {soft::MessageKind::kYield, kTrusted, &Server::handle<soft::YieldRequest, &Server::answer_yield>},
    {soft::MessageKind::kAnnounceGids, kTrusted,
     &Server::handle<soft::AnnounceGidsRequest, &Server::answer_announce_gids>},
    {soft::MessageKind::kTree, kAnyone, &Server::handle<soft::HeaderOnly, &Server::answer_tree>},
    {soft::MessageKind::kRefreshTree, kAnyone, &Server::handle<soft::RefreshTreeRequest, &Server::answer_refresh_tree>},
    {soft::MessageKind::kExportTree, kTrusted, &Server::handle<soft::HeaderOnly, &Server::answer_export_tree>},
    {soft::MessageKind::kIdentity, kTrusted, &Server::handle<soft::IdentityRequest, &Server::answer_identity>},
    {soft::MessageKind::kGids, kTrusted, &Server::handle<soft::HeaderOnly, &Server::answer_gids>},
    {soft::MessageKind::kXrcOpen, kTrusted, &Server::handle<soft::XrcOpenRequest, &Server::answer_xrc_open>},
    {soft::MessageKind::kXrcClose, kTrusted, &Server::handle<soft::XrcCloseRequest, &Server::answer_xrc_close>},
};

void Server::answer(Connection& connection, std::span<const std::byte> message, soft::Descriptors& descriptors) {
  soft::MessageHeader header;
  const bool whole = message.size() >= sizeof header;
  if (whole) memcpy(&header, message.data(), sizeof header);
  if (!whole || header.magic != soft::kMagic || header.size != message.size()) return drop_malformed(connection);
  connection.question = static_cast<soft::MessageKind>(header.kind);
  soft::Problem problem;
  if (header.version != soft::kProtocolVersion) {
    problem.set(EPROTONOSUPPORT,
                "the dappled of this network namespace has protocol %u, but the program needs %u; end the programs "
                "that use dappled and start again",
                soft::kProtocolVersion, header.version);
    return refuse(connection, problem);
  }
  const Answer* answer = std::ranges::find(kAnswers, connection.question, &Answer::question);
  const bool known = answer != std::end(kAnswers);
  if (!connection.trusted && !(known && answer->asker == kAnyone)) {
    problem.set(EACCES,
                "the dappled of this network namespace belongs to user %u and refuses user %u; run as that user, in "
                "another network namespace, or set DAPPLE_TRUST_UID for both",
                geteuid(), connection.uid);
    return refuse(connection, problem);
  }
  if (!known) return drop_malformed(connection);
  (this->*answer->handle)(connection, message, descriptors);
}

void Server::send_reply(Connection& connection, std::span<const std::byte> message, std::span<const int> descriptors) {
  const int error = soft::send_message(connection.socket.get(), message, descriptors, MSG_DONTWAIT);
  if (error == 0) return;
  if (descriptors.empty() || (error != ETOOMANYREFS && error != ENOMEM && error != ENOBUFS)) return drop(connection);
  soft::Problem problem;
  problem.set(error, "dappled cannot hand over descriptors: %s", strerror(error));
  leave_slot(connection);
  refuse(connection, problem);
}

int Server::refresh_devices() {
  // A reading that failed is done again at the next question.
  unread_ = netdev_watch_.changed() || unread_;
  const int error = unread_ ? read_netdevs(netdevs_) : 0;
  if (unread_ && error == 0) {
    unread_ = false;
    devices_.update(netdevs_);
  }
  if (devices_.generation() != told_generation_) tell_changes();
  return error;
}

void Server::refuse_devices(Connection& connection, int error) {
  soft::Problem problem;
  problem.set(error, "dappled cannot read the network interfaces: %s", strerror(error));
  refuse(connection, problem);
}

void Server::tell_changes() {
  told_generation_ = devices_.generation();
  cm_.refresh();
  tell_trees();
  soft::HeaderOnly message;
  for (Connection& connection : connections_) {
    if (!connection.socket || connection.slot == 0 || connection.told) continue;
    // A member that cannot take the message gets the next change.
    const auto bytes = soft::seal(message, static_cast<uint16_t>(soft::MessageKind::kChanged));
    connection.told = soft::send_message(connection.socket.get(), bytes, {}, MSG_DONTWAIT) == 0;
  }
}

void Server::answer_devices(Connection& connection, const soft::HeaderOnly&, soft::Descriptors&) {
  // The answer includes every change that came before the question.
  if (const int error = refresh_devices(); error != 0) return refuse_devices(connection, error);
  connection.told = false;
  soft::DevicesReply message;
  message.generation = devices_.generation();
  const soft::Rails& rails = views_.rails(connection.view);
  for (uint32_t i = 0; i < devices_.count(); i++) {
    const soft::DeviceInfo& device = devices_.at(i);
    if (!rails.has(device)) continue;
    assert(message.count < soft::kMaxDevices);
    message.indexes[rails.count != 0 ? device.rail : message.count] = device.index;
    message.count++;
  }
  reply(connection, message);
}

void Server::answer_slot(Connection& connection, const soft::HeaderOnly&, soft::Descriptors&) {
  grant_slot(connection);
}

void Server::grant_slot(Connection& connection) {
  soft::Problem problem;
  soft::OwnedFd lease;
  uint32_t slot = 0;
  if (connection.slot != 0) {
    problem.set(EEXIST, "this connection already owns slot %u", connection.slot);
    return refuse(connection, problem);
  }
  const Slots::Grant grant = slots_.take(slot, lease, problem);
  if (grant == Slots::Grant::kPortBusy) {
    if (connection.waits_for_port == 0) wait_for_port(connection, now() + kPortPatience);
    if (now() < connection.waits_for_port) return;
  }
  wait_for_port(connection, 0);
  if (grant != Slots::Grant::kGranted) return refuse(connection, problem);
  assert(slot != 0 && slot < slots_.group().size() && lease);
  connection.slot = slot;
  // A program that has a slot can be reached, so its peers may ask for services from now on.
  give_wire(problem);
  soft::SlotReply message;
  message.slot = slot;
  message.dual_stack = slots_.group().dual_stack();
  const Bundle& bundle = slots_.group().bundle();
  const int descriptors[] = {slots_.group().socket(slot), bundle.writer(), bundle.queue(), lease.get(),
                             slots_.counters_file()};
  static_assert(sizeof descriptors / sizeof descriptors[0] == soft::kSlotDescriptors);
  reply(connection, message, descriptors);
}

void Server::retry_waiting() {
  for (uint32_t i = 0; i < kMaxConnections && waiting_ > 0; i++) {
    if (connections_[i].socket && connections_[i].waits_for_port != 0) grant_slot(connections_[i]);
  }
}

void Server::answer_announce(Connection& connection, const soft::AnnounceRequest& request,
                             soft::Descriptors& descriptors) {
  if (request.device_count > soft::kMaxDevices || connection.slot != 0) return drop_malformed(connection);
  soft::Problem problem;
  if (request.slot != 0) {
    if (!slots_.announce(request.slot, descriptors, problem)) return refuse(connection, problem);
    connection.slot = request.slot;
    slots_left_ = true;  // others may have died together with the last dappled
    cm_.expect_channels();
  }
  for (uint32_t i = 0; i < request.device_count; i++) devices_.restore(request.devices[i]);
  soft::HeaderOnly message;
  reply(connection, message);
}

void Server::answer_status(Connection& connection, const soft::HeaderOnly&, soft::Descriptors&) {
  soft::StatusReply message;
  message.process = static_cast<uint32_t>(getpid());
  message.uid = geteuid();
  message.members = members_;
  message.slots = slots_.group().size();
  message.slots_in_use = slots_.in_use();
  message.dual_stack = slots_.group().dual_stack();
  message.refused_requests = refused_requests_;
  message.malformed_messages = malformed_;
  message.refused_connections = refused_connections_;
  message.takeovers = slots_.takeovers();
  slots_.counters().add_to(message.counters);
  cm_.tell(message.connection_management);
  reply(connection, message);
}

}  // namespace dapple::dappled
