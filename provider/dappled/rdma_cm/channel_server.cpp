// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/rdma_cm/channel_server.hpp"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <new>

#include "provider/dappled/rdma_cm/gid_place.hpp"
#include "provider/dappled/rdma_cm/routes.hpp"

namespace dapple::dappled::rdma_cm {
namespace {

constexpr uint64_t kWireKey = UINT64_MAX;
constexpr int kEventsAtOnce = 64;

Time now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<Time>(time.tv_sec) * 1'000'000'000 + static_cast<Time>(time.tv_nsec);
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

ChannelServer::~ChannelServer() {
  while (Channel* channel = list_.first()) close(static_cast<Place&>(*channel));
}

int ChannelServer::prepare() {
  epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return errno;
  Settings settings;
  ephemeral_ports(settings.first_port, settings.last_port);
  settings.privileged = geteuid() == 0;
  service_ = Service::create(*this, settings);
  places_.reset(new (std::nothrow) std::unique_ptr<Place>[kMostChannels]);
  return service_ != nullptr && places_ != nullptr ? 0 : ENOMEM;
}

void ChannelServer::serve() {
  epoll_event events[kEventsAtOnce];
  const int count = epoll_wait(epoll_.get(), events, kEventsAtOnce, 0);
  for (int i = 0; i < count; i++) {
    const uint64_t key = events[i].data.u64;
    if (key == kWireKey) {
      if (wire_ != nullptr) wire_->receive(*this);
    } else if (Place* place = places_[key].get()) {
      // An error means the same: nobody can have the other end any more.
      if ((events[i].events & (EPOLLHUP | EPOLLERR)) != 0) {
        close(*place);
      } else {
        send_bytes(*place);
      }
    }
  }
  const Time time = now();
  if (service_->deadline() <= time) service_->advance(time);
}

bool ChannelServer::use(PortGroup& group, soft::SlotCounters* counters, soft::Problem& problem) {
  if (const int error = group.open(0); error != 0) {
    problem.set(error, "dappled cannot open QP 1: %s", strerror(error));
    return false;
  }
  wire_ = MadWire::open(group.socket(0), group.dual_stack(), counters, problem);
  if (wire_ == nullptr) return false;
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u64 = kWireKey;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wire_->fd(), &event) == 0) return true;
  problem.set(errno, "dappled cannot wait for packets: %s", strerror(errno));
  wire_.reset();
  return false;
}

int ChannelServer::open(soft::OwnedFd end, soft::CmChannelName& name, int& journal) {
  if (!end || !is_channel(end.get())) return EINVAL;
  if (list_.size() == kMostChannels) return ENFILE;
  while (places_[next_] != nullptr) next_ = (next_ + 1) % kMostChannels;
  std::unique_ptr<Place> place(new (std::nothrow) Place);
  if (place == nullptr) return ENOMEM;
  place->journal.reset(memfd_create("dapple-rdma-cm", MFD_CLOEXEC));
  if (!place->journal) return errno;
  journal = place->journal.get();
  place->place = next_;
  place->key = random();
  place->end = std::move(end);
  epoll_event event = {};
  event.data.u64 = place->place;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, place->end.get(), &event) != 0) return errno;
  name.number = place->place;
  name.key = place->key;
  list_.add(*place);
  places_[next_] = std::move(place);
  next_ = (next_ + 1) % kMostChannels;
  return 0;
}

ChannelServer::Place* ChannelServer::find(const soft::CmChannelName& name) {
  if (name.number >= kMostChannels) return nullptr;
  Place* place = places_[name.number].get();
  return place != nullptr && place->key == name.key ? place : nullptr;
}

void ChannelServer::close(Place& place) {
  service_->close(now(), place);
  list_.remove(place);
  places_[place.place].reset();
}

void ChannelServer::command(const soft::CmCommandRequest& request, soft::CmCommandReply& reply) {
  Place* place = find(request.channel);
  if (place == nullptr || request.length > sizeof request.command) {
    reply.header.error = place == nullptr ? ENODEV : EINVAL;
    return;
  }
  Place* source = find(request.source);
  Service::Answer answer{.response = reply.response};
  const int error = service_->command(now(), *place, source, {request.command, request.length}, answer);
  reply.header.error = static_cast<uint32_t>(error);
  reply.length = static_cast<uint32_t>(answer.length);
  // Of the events that have gone, those came last whose bytes have not been sent.
  Place& reader = source != nullptr ? *source : *place;
  const uint32_t unsent = std::min(answer.removed, reader.owed);
  reader.owed -= unsent;
  reply.removed = answer.removed - unsent;
}

void ChannelServer::wake(Channel& channel) {
  Place& place = static_cast<Place&>(channel);
  if (place.owed++ == 0) send_bytes(place);
}

void ChannelServer::send_bytes(Place& place) {
  const char byte = 0;
  while (place.owed > 0 && ::send(place.end.get(), &byte, sizeof byte, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof byte) {
    place.owed--;
  }
  watch(place, place.owed > 0);
}

void ChannelServer::watch(Place& place, bool writable) {
  if (place.watched == writable) return;
  epoll_event event = {};
  event.events = writable ? static_cast<uint32_t>(EPOLLOUT) : 0;
  event.data.u64 = place.place;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, place.end.get(), &event) == 0) place.watched = writable;
}

void ChannelServer::send(const cm::Path& path, const cm::Mad& mad) {
  if (wire_ == nullptr) return;
  const soft::DeviceInfo* device = devices_.find(path.device);
  wire_->send(path, device != nullptr ? device->netdev_index : 0, mad);
}

uint64_t ChannelServer::random() {
  uint64_t number = 0;
  while (getrandom(&number, sizeof number, 0) < 0 && errno == EINTR) {
  }
  return number;
}

int ChannelServer::route(const Address& destination, Address& source) {
  return find_route(destination, source);
}

void ChannelServer::arrived(const Gid& local, const Gid& remote, uint32_t netdev_index,
                            std::span<const std::byte> mad) {
  const GidPlace place = find_gid(devices_, local, netdev_index);
  if (place.device == nullptr) return;
  const cm::Path path{.device = place.device->index, .ca_guid = place.device->guid, .local = local, .remote = remote};
  service_->receive(now(), path, mad);
}

}  // namespace dapple::dappled::rdma_cm
