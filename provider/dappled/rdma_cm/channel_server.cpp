// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/rdma_cm/channel_server.hpp"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cassert>
#include <new>
#include <utility>

#include "provider/common/clock.hpp"
#include "provider/dappled/rdma_cm/ids/id_state.hpp"
#include "provider/dappled/rdma_cm/journal.hpp"
#include "provider/dappled/rdma_cm/packets/gid_location.hpp"
#include "provider/dappled/rdma_cm/packets/routes.hpp"
#include "provider/network/gid.hpp"
#include "provider/soft/links/wanted.hpp"
#include "provider/system/random.hpp"

namespace dapple::dappled::rdma_cm {
namespace {

constexpr uint64_t kWireKey = UINT64_MAX;
constexpr uint64_t kNeighboursKey = UINT64_MAX - 1;
constexpr int kEventsAtOnce = 64;
// A new dappled skips this many tickets. The unread events of the last dappled cannot have more.
constexpr uint32_t kNewTickets = 1 << 20;
// Limits for one pass: the rounds of receiving from the wire, and the datagrams to this host that did not leave
// dappled. Without them a pass might not end, because the answer to such a datagram goes to this host again.
constexpr int kOwnAtOnce = 4;
constexpr int kOwnInTurn = 64;

constexpr int kAtOnce = MSG_DONTWAIT | MSG_NOSIGNAL;

bool loopback_is_up(const DeviceTable& devices) {
  for (uint32_t i = 0; i < devices.count(); i++) {
    if (devices.at(i).loopback != 0) return devices.at(i).up != 0;
  }
  return false;
}

uint32_t number_of(const soft::CmCommandRequest& request) {
  rdma_ucm_cmd_hdr header = {};
  if (request.length >= sizeof header) memcpy(&header, request.command, sizeof header);
  return header.cmd;
}

// These three commands only ask.
bool may_change_an_id(uint32_t command) {
  return command != RDMA_USER_CM_CMD_GET_EVENT && command != RDMA_USER_CM_CMD_QUERY_ROUTE &&
         command != RDMA_USER_CM_CMD_INIT_QP_ATTR;
}

bool is_channel(int socket) {
  int type = 0, domain = 0;
  socklen_t size = sizeof type;
  if (getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size) != 0) return false;
  size = sizeof domain;
  if (getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0) return false;
  return type == SOCK_SEQPACKET && domain == AF_UNIX;
}

}  // namespace

Time ChannelServer::time() const {
  if (pass_time_ == 0) pass_time_ = now_ns();
  return pass_time_;
}

ChannelServer::~ChannelServer() {
  while (Channel* channel = list_.first()) close(static_cast<OpenChannel&>(*channel));
}

int ChannelServer::prepare() {
  same_host_ = soft::same_host_wanted();
  epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  return epoll_ ? 0 : errno;
}

int ChannelServer::have_service() {
  if (service_ != nullptr) return 0;
  Settings settings;
  ephemeral_ports(settings.first_port, settings.last_port);
  settings.privileged = geteuid() == 0;
  if (open_channels_ == nullptr) open_channels_.reset(new (std::nothrow) std::unique_ptr<OpenChannel>[kMaxChannels]);
  if (open_channels_ != nullptr) service_ = Service::create(*this, settings);
  if (service_ == nullptr) return ENOMEM;
  service_->expect_channels(others_until_);
  return 0;
}

void ChannelServer::expect_channels() {
  if (others_until_ != 0) return;
  others_until_ = time() + Service::kArrival;
  if (service_ != nullptr) service_->expect_channels(others_until_);
}

void ChannelServer::serve() {
  if (service_ == nullptr && wire_ == nullptr) return;
  epoll_event events[kEventsAtOnce];
  const int count = epoll_wait(epoll_.get(), events, kEventsAtOnce, 0);
  for (int i = 0; i < count; i++) {
    const uint64_t key = events[i].data.u64;
    if (key == kWireKey) {
      if (wire_ != nullptr) wire_->receive(*this);
    } else if (key == kNeighboursKey) {
      hear_neighbours();
    } else if (OpenChannel* opened = open_channels_[key].get()) {
      // Both events mean that no process has the other end any more.
      if ((events[i].events & (EPOLLHUP | EPOLLERR)) != 0) {
        close(*opened);
      } else {
        send_events(*opened);
      }
    }
  }
  send_all_events();
}

void ChannelServer::advance() {
  if (service_ == nullptr) return;
  // The kernel has delivered datagrams to this host already, so they need not wait for the loop's next pass.
  for (int i = 0; i < kOwnAtOnce && sent_to_own_ && wire_ != nullptr; i++) {
    sent_to_own_ = false;
    wire_->receive(*this);
  }
  receive_own();
  if (service_->deadline() != roce::kNever) {
    if (service_->deadline() <= time()) service_->advance(time());
  }
  send_all_events();
  if (service_->resolving() == 0) neighbours_.close();
}

bool ChannelServer::use(PortGroup& group, soft::SlotCounters* counters, soft::Problem& problem) {
  if (const int error = group.open(0); error != 0) {
    problem.set(error, "dappled cannot open QP 1: %s", strerror(error));
    return false;
  }
  wire_ = MadWire::open(group.socket(0), group.dual_stack(), counters, *this, problem);
  if (wire_ == nullptr) return false;
  counters_ = counters;
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u64 = kWireKey;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wire_->fd(), &event) == 0) return true;
  problem.set(errno, "dappled cannot wait for packets: %s", strerror(errno));
  wire_.reset();
  return false;
}

int ChannelServer::add(std::unique_ptr<OpenChannel> opened, const Program& program) {
  if (!opened->end || !is_channel(opened->end.get())) return EINVAL;
  if (list_.size() == kMaxChannels) return ENFILE;
  while (open_channels_[next_] != nullptr) next_ = (next_ + 1) % kMaxChannels;
  opened->number = next_;
  epoll_event event = {};
  event.data.u64 = opened->number;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, opened->end.get(), &event) != 0) return errno;
  gid_orders_.use(program.gid_order);
  opened->program = program;
  OpenChannel*& bucket = buckets_[opened->name.key % kBuckets];
  opened->same_bucket = bucket;
  bucket = opened.get();
  list_.add(*opened);
  assert(find(opened->name) == opened.get() && open_channels_[next_] == nullptr);
  open_channels_[next_] = std::move(opened);
  next_ = (next_ + 1) % kMaxChannels;
  return 0;
}

int ChannelServer::open(soft::OwnedFd end, const Program& program, soft::CmChannelName& name, int& journal) {
  if (const int error = have_service(); error != 0) return error;
  std::unique_ptr<OpenChannel> opened(new (std::nothrow) OpenChannel);
  if (opened == nullptr) return ENOMEM;
  name = {.key = random(), .number = static_cast<uint32_t>(random())};
  if (const int error = opened->journal.create(name); error != 0) return error;
  opened->name = name;
  opened->end = std::move(end);
  journal = opened->journal.fd();
  return add(std::move(opened), program);
}

int ChannelServer::restore(soft::OwnedFd end, soft::OwnedFd journal, const Program& program,
                           soft::CmRestoreReply& reply) {
  soft::CmChannelName& name = reply.channel;
  expect_channels();
  if (const int error = have_service(); error != 0) return error;
  std::unique_ptr<OpenChannel> opened(new (std::nothrow) OpenChannel);
  if (opened == nullptr) return ENOMEM;
  if (const int error = opened->journal.open(std::move(journal), name); error != 0) return error;
  if (find(name) != nullptr) return 0;
  opened->name = name;
  opened->end = std::move(end);
  // Events that were sent and not taken come again, with new tickets.
  soft::CmFront& front = opened->journal.front();
  const uint64_t word = front.taken.load();
  opened->epoch = static_cast<uint32_t>(word >> 32) + 1;
  const uint64_t last = front.taken.exchange(uint64_t{opened->epoch} << 32 | static_cast<uint32_t>(word));
  opened->taken = static_cast<uint32_t>(last);
  opened->last_ticket = opened->taken + kNewTickets;
  opened->hands_events = front.takes_events.load() != 0;
  if (const int error = add(std::move(opened), program); error != 0) return error;
  OpenChannel& added = *find(name);
  const Restoration outcome = read_journal(added);
  if (outcome.error != 0) {
    // Half a channel would let the program wait for what cannot come.
    close(added);
    return outcome.error;
  }
  send_all_events();
  reply.lost_listeners = outcome.lost_listeners;
  reply.lost_port = outcome.lost_port;
  return 0;
}

Restoration ChannelServer::read_journal(OpenChannel& opened) {
  // The service writes an entry that it restores to the same place or to an earlier one, so no unread entry is lost.
  std::array<std::byte, kJournalEntrySize> entry;
  Restoration outcome;
  for (uint32_t i = 0; i < opened.journal.room() && outcome.error == 0; i++) {
    if (!opened.journal.read(i, entry)) continue;
    if (entry == std::array<std::byte, kJournalEntrySize>{}) break;
    service_->restore(time(), opened, entry, outcome);
  }
  // An unread entry would be lost.
  assert(outcome.error != 0 || opened.journaled_count <= opened.ids.size());
  opened.journal.cut(opened.journaled_count);
  return outcome;
}

void ChannelServer::write_journal(Channel& channel, uint32_t index, std::span<const std::byte> entry) {
  static_cast<OpenChannel&>(channel).journal.write(index, entry);
}

ChannelServer::OpenChannel* ChannelServer::find(const soft::CmChannelName& name) const {
  OpenChannel* opened = buckets_[name.key % kBuckets];
  while (opened != nullptr && (opened->name.key != name.key || opened->name.number != name.number)) {
    opened = opened->same_bucket;
  }
  return opened;
}

void ChannelServer::close(OpenChannel& opened) {
  assert(open_channels_[opened.number].get() == &opened);
  service_->close(time(), opened);
  send_all_events();
  assert(!opened.due);
  list_.remove(opened);
  OpenChannel** link = &buckets_[opened.name.key % kBuckets];
  while (*link != &opened) {
    assert(*link != nullptr);
    link = &(*link)->same_bucket;
  }
  *link = opened.same_bucket;
  gid_orders_.leave(opened.program.gid_order);
  // The program may have the same open file, which would keep the descriptor in the set.
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, opened.end.get(), nullptr);
  open_channels_[opened.number].reset();
}

// Takes note of the events that processes have read from messages, without a command.
void ChannelServer::take(OpenChannel& opened) {
  const soft::CmFront& front = opened.journal.front();
  opened.hands_events = front.takes_events.load(std::memory_order_relaxed) != 0;
  const uint64_t word = front.taken.load(std::memory_order_acquire);
  if (static_cast<uint32_t>(word >> 32) == opened.epoch) service_->take(opened, static_cast<uint32_t>(word));
}

const char* ChannelServer::command(const soft::CmCommandRequest& request, soft::CmCommandReply& reply) {
  OpenChannel* opened = find(request.channel);
  if (opened == nullptr || request.length > sizeof request.command) {
    reply.header.error = opened == nullptr ? ENODEV : EINVAL;
    return "";
  }
  const uint32_t number = number_of(request);
  OpenChannel* source = number == RDMA_USER_CM_CMD_MIGRATE_ID ? find(request.source) : nullptr;
  take(*opened);
  if (source != nullptr) take(*source);
  if (may_change_an_id(number)) opened->journal.front().commands.fetch_add(1, std::memory_order_release);
  Service::Answer answer{.response = std::span(reply.response).first(soft::kCmCommandSize)};
  const int error =
      service_->command(time(), *opened, source, {request.command, request.length}, answer, request.token);
  reply.header.error = static_cast<uint32_t>(error);
  reply.length = error == 0 ? static_cast<uint32_t>(answer.length) : 0;
  if (error == 0 && answer.ahead != 0) add_answers(*opened, answer.ahead, reply);
  reply.removed = answer.removed.bytes;
  reply.removed_events = answer.removed.events;
  if (reply.removed != 0 || reply.removed_events != 0) (source != nullptr ? source : opened)->held = true;
  send_all_events();
  return answer.reason;
}

// Appends the answers to the next questions about this id.
void ChannelServer::add_answers(OpenChannel& opened, uint32_t id, soft::CmCommandReply& reply) {
  const size_t first_at = soft::cm_aligned(reply.length);
  // The program gets the bytes in between, too.
  memset(reply.response + reply.length, 0, first_at - reply.length);
  const auto room = std::span(reply.response).subspan(first_at);
  reply.ahead = static_cast<uint32_t>(service_->answer_ahead(time(), opened, id, room));
}

void ChannelServer::resume(const soft::CmChannelName& name) {
  OpenChannel* opened = find(name);
  if (opened == nullptr || !opened->held) return;
  opened->held = false;
  send_events(*opened);
}

void ChannelServer::wake(Channel& channel) {
  OpenChannel& opened = static_cast<OpenChannel&>(channel);
  if (opened.due) return;
  opened.due = true;
  opened.next_due = due_;
  due_ = &opened;
}

void ChannelServer::send_all_events() {
  while (due_ != nullptr) {
    OpenChannel& opened = *std::exchange(due_, due_->next_due);
    opened.due = false;
    send_events(opened);
  }
}

bool ChannelServer::send_event(OpenChannel& opened, Event& event) {
  const char byte = 0;
  if (event.ticket == 0) return ::send(opened.end.get(), &byte, sizeof byte, kAtOnce) == sizeof byte;
  soft::CmEvent message;
  message.epoch = opened.epoch;
  message.ticket = event.ticket;
  message.commands = opened.journal.front().commands.load(std::memory_order_relaxed);
  soft::CmCommandReply& reply = message.reply;
  reply.length = sizeof event.response;
  memcpy(reply.response, &event.response, sizeof event.response);
  if (Service::asks_next(static_cast<EventKind>(event.response.event))) add_answers(opened, event.response.id, reply);
  soft::seal(reply, static_cast<uint16_t>(soft::MessageKind::kCmEvent));
  const size_t size = offsetof(soft::CmEvent, reply) + reply.header.size;
  return ::send(opened.end.get(), &message, size, kAtOnce) == static_cast<ssize_t>(size);
}

void ChannelServer::send_events(OpenChannel& opened) {
  if (opened.held) return watch(opened, false);
  assert_consistent(opened);
  Event* event = opened.events.last();
  for (uint32_t i = 1; i < opened.unsent; i++) event = event->older;
  for (; opened.unsent > 0 && send_event(opened, *event); event = event->newer) {
    assert(!event->sent);
    event->sent = true;
    opened.unsent--;
  }
  watch(opened, opened.unsent > 0);
}

void ChannelServer::watch(OpenChannel& opened, bool writable) {
  if (opened.watched == writable) return;
  epoll_event event = {};
  event.events = writable ? static_cast<uint32_t>(EPOLLOUT) : 0;
  event.data.u64 = opened.number;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, opened.end.get(), &event) == 0) opened.watched = writable;
}

void ChannelServer::send(const cm::Path& path, const cm::Mad& mad) {
  if (wire_ == nullptr) return;
  const soft::DeviceInfo* device = devices_.find(path.device);
  const uint32_t netdev_index = device != nullptr ? device->netdev_index : 0;
  const bool own = find_gid(devices_, path.remote, netdev_index).device != nullptr;
  if (own && keep_own(path, mad)) return;
  wire_->send(path, netdev_index, mad);
  if (own) sent_to_own_ = true;
}

// False if the datagram must take its way through the kernel: it is captured there, or lo is down.
bool ChannelServer::keep_own(const cm::Path& path, const cm::Mad& mad) {
  if (own_count_ == kMaxOwn || captures_.count() > 0 || counters_ == nullptr || !same_host_) return false;
  // The receiver finds a link-local address only with its netdev, which own_ does not keep.
  if (soft::is_link_local(path.remote.data()) || !loopback_is_up(devices_)) return false;
  assert(own_count_ < kMaxOwn);
  own_[(own_first_ + own_count_++) % kMaxOwn] = {path.remote, path.local, mad};
  counters_->same_host.sent_packets.add();
  return true;
}

void ChannelServer::receive_own() {
  for (int i = 0; i < kOwnInTurn && own_count_ > 0; i++) {
    const OwnDatagram datagram = own_[own_first_];
    own_first_ = (own_first_ + 1) % kMaxOwn;
    own_count_--;
    counters_->same_host.received_packets.add();
    counters_->same_host.received_bytes.add(datagram.mad.size());
    arrived(datagram.local, datagram.remote, 0, datagram.mad);
  }
}

uint64_t ChannelServer::random() {
  // One system call brings many numbers. Each is used once.
  if (random_left_ == 0) {
    soft::fill_with_random_bytes(random_, sizeof random_);
    random_left_ = std::size(random_);
  }
  assert(0 < random_left_ && random_left_ <= std::size(random_));
  return std::exchange(random_[--random_left_], 0);
}

const soft::Rails& ChannelServer::rails(const Channel& channel) {
  return static_cast<const OpenChannel&>(channel).program.rails;
}

int ChannelServer::route(const Channel& channel, const Address& destination, Address& source) {
  // The kernel's local routes lead from a host's own address to itself. Asking for them takes four system calls.
  if (source.is_any() && destination.scope == 0 && !destination.is_link_local()) {
    const soft::DeviceInfo* own = find_gid(devices_, rails(channel), destination.gid, 0).device;
    if (own != nullptr && own->up != 0) {
      source.gid = destination.gid;
      return 0;
    }
  }
  return find_route(destination, source);
}

int ChannelServer::find_neighbour(const Address& source, const Address& destination, Neighbour& neighbour) {
  bool asked = false;
  int error = look_for_neighbour(source, destination, neighbour, asked);
  if (error == ENODATA && !neighbours_.is_open()) {
    // The neighbour may have answered before the watch began.
    watch_neighbours();
    error = look_for_neighbour(source, destination, neighbour, asked);
  }
  return error == ENODATA && !asked ? ask_neighbour(source, neighbour) : error;
}

void ChannelServer::watch_neighbours() {
  // Without the watch, dappled looks from time to time.
  if (neighbours_.open() != 0) return;
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u64 = kNeighboursKey;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, neighbours_.fd(), &event) != 0) neighbours_.close();
}

void ChannelServer::hear_neighbours() {
  if (service_ == nullptr || !neighbours_.is_open()) return;
  Neighbour neighbour;
  for (int i = 0; i < kEventsAtOnce; i++) {
    switch (neighbours_.next(neighbour)) {
      case NeighbourWatch::News::kNone:
        return;
      case NeighbourWatch::News::kAnswer:
        service_->neighbour_answers(time(), neighbour);
        break;
      case NeighbourWatch::News::kOther:
        break;
      case NeighbourWatch::News::kLost:
        service_->missed_answers(time());
        break;
    }
  }
}

int ChannelServer::check_own(const Address& address) {
  return check_own_address(address);
}

bool ChannelServer::separates_families() {
  return ipv6_binds_alone();
}

uint32_t ChannelServer::gid_index(const CmId& id) {
  const soft::DeviceInfo* device = devices_.find(id.device);
  const Program& program = static_cast<const OpenChannel&>(*id.channel).program;
  if (device == nullptr || !program.rails.has(*device)) return id.gid_index;
  if (program.gid_order == GidOrders::kOwn) return id.gid_index;
  soft::DeviceInfo shown = *device;
  devices_.show(program.rails, shown);
  return gid_orders_.index_of(program.gid_order, shown, id.gid_index);
}

bool ChannelServer::uses_gid(uint32_t device, uint32_t gid_index) const {
  for (const Channel* channel = list_.first(); channel != nullptr; channel = channel->newer) {
    for (const CmId* id = channel->ids.first(); id != nullptr; id = id->newer) {
      if (id->device == device && id->gid_index == gid_index) return true;
    }
  }
  return false;
}

void ChannelServer::refresh() {
  if (service_ != nullptr) service_->refresh_devices();
  send_all_events();
}

void ChannelServer::arrived(const Gid& local, const Gid& remote, uint32_t netdev_index,
                            std::span<const std::byte> mad) {
  const GidLocation at = find_gid(devices_, local, netdev_index);
  // A peer may ask before any program here does; it gets an answer all the same.
  if (at.device == nullptr || have_service() != 0) return;
  const cm::Path path{.device = at.device->index, .ca_guid = at.device->guid, .local = local, .remote = remote};
  service_->receive(time(), path, mad);
  send_all_events();
}

}  // namespace dapple::dappled::rdma_cm
