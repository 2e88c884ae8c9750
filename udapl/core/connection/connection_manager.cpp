// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/connection/connection_manager.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>

#include "udapl/core/clock.hpp"
#include "udapl/core/connection/cr.hpp"
#include "udapl/core/connection/service_point.hpp"
#include "udapl/core/connection/ud_connection.hpp"
#include "udapl/core/endpoint/ep.hpp"
#include "udapl/core/endpoint/srq.hpp"
#include "udapl/core/events/evd.hpp"
#include "udapl/core/events/event_fd.hpp"
#include "udapl/core/ia/ia.hpp"
#include "udapl/core/lock.hpp"
#include "udapl/core/log.hpp"

namespace dapple::udapl {

ConnectionManager& ConnectionManager::instance() {
  static ConnectionManager& manager = *new ConnectionManager;  // the thread may outlive static destruction
  return manager;
}

Result<> ConnectionManager::acquire() {
  if (users_ == 0) {
    if (auto started = start(); !started) {
      channel_.reset();
      wake_fd_ = {};
      return started;
    }
  }
  if (pid_ != getpid()) {
    log_error(
        "the parent of this process had an open IA at the fork: without the parent's threads and queues no IA can be "
        "opened here");
    return fail(Type::kInvalidState);
  }
  ++users_;
  in_use_.store(true, std::memory_order_relaxed);
  return {};
}

Result<> ConnectionManager::start() {
  channel_.reset(rdma_create_event_channel());
  if (!channel_) {
    const int error = errno;
    if (is_shortage(error)) return fail_errno(error);
    log_error(
        "cannot reach the kernel's RDMA connection manager: %s; 'modprobe rdma_ucm' loads it where there is an RDMA "
        "device, and dapple-run runs a program with a software one",
        strerror(error));
    return fail(Type::kInvalidAddress, Subtype::kAddressUnsupported);
  }
  wake_fd_ = make_event_fd();
  if (!wake_fd_ || !make_non_blocking(channel_->fd)) return fail_errno(errno);
  auto started = SilentThread::start([this, generation = generation_] { run(generation); }, "dapple-cm", Subtype::kTep);
  if (!started) return tl::unexpected(started.error());
  thread_ = std::move(*started);
  pid_ = getpid();
  return {};
}

void ConnectionManager::release(std::unique_lock<std::mutex>& control) {
  assert(users_ > 0);
  if (--users_ != 0) {
    control.unlock();
    return;
  }
  in_use_.store(false, std::memory_order_relaxed);
  ++generation_;
  wake();
  // The members are moved out, so that an IA opened during the join starts its own thread and channel.
  SilentThread thread = std::move(thread_);
  verbs::EventChannel channel = std::move(channel_);
  UniqueFd wake_fd = std::move(wake_fd_);
  const bool ours = pid_ == getpid();  // a child of fork() has no such thread
  control.unlock();
  if (ours) thread.join();
}

Result<> ConnectionManager::watch(ibv_context* context) {
  if (watched_.size() == kMaxContexts && !watched_.contains(context)) {
    return fail(Type::kInsufficientResources, Subtype::kDevice);
  }
  if (!make_non_blocking(context->async_fd)) return fail_errno(errno);
  ++watched_[context].users;
  wake();
  return {};
}

void ConnectionManager::unwatch(ibv_context* context) {
  const auto found = watched_.find(context);
  assert(found == watched_.end() || found->second.users > 0);
  if (found != watched_.end() && --found->second.users == 0) watched_.erase(found);
}

Result<ibv_comp_channel*> ConnectionManager::shared_channel(ibv_context* context) {
  assert(watched_.contains(context));
  verbs::CompChannel& shared = watched_.find(context)->second.completions;
  if (!shared) {
    verbs::CompChannel made(ibv_create_comp_channel(context));
    if (!made || !make_non_blocking(made->fd)) return fail_errno(errno);
    shared = std::move(made);
    wake();
  }
  return shared.get();
}

ConnectionManager::Client::Client(Object& owner) : owner_(owner) {
  Deadlines one{{kNever, this}};
  deadline_ = one.extract(one.begin());
}

void ConnectionManager::Client::leave() {
  set_deadline(kNever);
  ConnectionManager& manager = instance();
  std::lock_guard guard(manager.attention_mutex_);
  if (!std::exchange(wants_attention_, false)) return;
  Client** link = &manager.attention_;
  while (*link != this) {
    assert(*link);
    link = &(*link)->next_;
  }
  *link = next_;
}

void ConnectionManager::Client::set_deadline(int64_t deadline_ns) {
  ConnectionManager& manager = instance();
  if (deadline_ns_ != kNever) deadline_ = manager.deadlines_.extract({deadline_ns_, this});
  // The set and this client have the node in turn.
  assert(deadline_);
  deadline_ns_ = deadline_ns;
  if (deadline_ns == kNever) return;
  deadline_.value().first = deadline_ns;
  manager.deadlines_.insert(std::move(deadline_));
  manager.wake();
}

void ConnectionManager::Client::notify() {
  ConnectionManager& manager = instance();
  {
    std::lock_guard guard(manager.attention_mutex_);
    if (std::exchange(wants_attention_, true)) return;
    next_ = std::exchange(manager.attention_, this);
  }
  manager.wake();
}

void ConnectionManager::wake() {
  raise(wake_fd_);
}

void ConnectionManager::run(uint32_t generation) {
  std::array<pollfd, 2 + 2 * kMaxContexts> fds;
  std::unique_lock control(control_mutex());
  while (generation_ == generation) {
    fds[0] = {wake_fd_.get(), POLLIN, 0};
    fds[1] = {channel_->fd, POLLIN, 0};
    nfds_t used = 2;
    for (const auto& [context, watch] : watched_) {
      if (watch.broken) continue;
      fds[used++] = {context->async_fd, POLLIN, 0};
      if (watch.completions && !watch.lost) fds[used++] = {watch.completions->fd, POLLIN, 0};
    }
    timespec left{};
    const bool limited = !deadlines_.empty();
    if (limited) left = to_timespec(std::max<int64_t>(0, deadlines_.begin()->first - now_ns()));
    control.unlock();
    ppoll(fds.data(), used, limited ? &left : nullptr, nullptr);
    control.lock();
    // After the last IA was closed, a new first IA may have a thread, a channel and a wake_fd_ of its own.
    if (generation_ != generation) break;
    if (fds[0].revents) drain(wake_fd_);
    // The result of poll() may be stale by now; each of these functions works without an event.
    serve_connection_events();
    serve_device_events();
    serve_shared_channels();
    serve_attention();
    serve_deadlines();
  }
}

// The thread takes, acknowledges and serves an event while it holds the control mutex, so it never serves an event of
// an object that was destroyed meanwhile.
void ConnectionManager::serve_connection_events() {
  verbs::CmEvent event;
  while (verbs::CmEvent::take(channel_.get(), event)) {
    auto* owner = static_cast<Object*>(event.context);
    switch (owner->kind()) {
      case Kind::kPsp:
      case Kind::kRsp:
      case Kind::kCsp:
        if (event.request) static_cast<ServicePoint*>(owner)->on_request(event);
        break;
      case Kind::kEp:
        static_cast<Ep*>(owner)->connection().on_connection_event(event);
        break;
      case Kind::kUdConnection:
        static_cast<UdConnection*>(owner)->on_connection_event(event);
        break;
      case Kind::kCr:
        static_cast<Cr*>(owner)->on_connection_event(event);
        break;
      case Kind::kIa:
        if (event.type == RDMA_CM_EVENT_DEVICE_REMOVAL) {
          owner->ia().report_async(EventKind::kAsyncIaCatastrophic, *owner, event.status);
        }
        break;
      default:
        break;
    }
  }
}

void ConnectionManager::serve_device_events() {
  for (auto& [context, watch] : watched_) {
    ibv_async_event event;
    if (watch.broken) continue;
    while (ibv_get_async_event(context, &event) == 0) serve_device_event(context, event);
    watch.broken = !found_nothing(errno) && !is_shortage(errno);
    if (watch.broken) report_catastrophe(context, IBV_EVENT_DEVICE_FATAL);
  }
}

// No EVD can be destroyed between the two steps: destroying one takes the control mutex.
void ConnectionManager::serve_shared_channels() {
  for (auto& [context, watch] : watched_) {
    if (!watch.completions || watch.lost) continue;
    ibv_cq* cq = nullptr;
    void* evd = nullptr;
    while (ibv_get_cq_event(watch.completions.get(), &cq, &evd) == 0) {
      ibv_ack_cq_events(cq, 1);
      static_cast<Evd*>(evd)->on_notification();
    }
    watch.lost = !found_nothing(errno) && !is_shortage(errno);
    if (!watch.lost) continue;
    arena<Evd>().for_each([of = context](Evd& told) {
      if (told.ia().context() == of) told.on_lost_channel();
    });
  }
}

void ConnectionManager::report_catastrophe(ibv_context* context, int reason) {
  if (std::exchange(watched_.find(context)->second.told, true)) return;
  log_error("device %s reports a fatal error", ibv_get_device_name(context->device));
  arena<Ia>().for_each([&](Ia& ia) {
    if (ia.context() == context) ia.report_async(EventKind::kAsyncIaCatastrophic, ia, reason);
  });
}

// librdmacm shares one verbs context in a process; objects of its other users do not carry our context pointer.
void ConnectionManager::serve_device_event(ibv_context* context, ibv_async_event& event) {
  const ibv_event_type type = event.event_type;
  Ep* ep = nullptr;
  Evd* evd = nullptr;
  Srq* srq = nullptr;
  switch (type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_COMM_EST:
      ep = arena<Ep>().find(event.element.qp->qp_context);
      break;
    case IBV_EVENT_CQ_ERR:
      evd = arena<Evd>().find(event.element.cq->cq_context);
      break;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      srq = arena<Srq>().find(event.element.srq->srq_context);
      break;
    default:
      break;
  }
  ibv_ack_async_event(&event);
  if (ep) ep->connection().on_device_event(type);
  if (evd) evd->ia().report_evd_overflow(*evd);
  if (srq) srq->on_device_event(type);
  if (type == IBV_EVENT_DEVICE_FATAL) report_catastrophe(context, type);
}

void ConnectionManager::serve_attention() {
  for (;;) {
    Client* client = nullptr;
    {
      std::lock_guard guard(attention_mutex_);
      if (!attention_) return;
      client = std::exchange(attention_, attention_->next_);
      assert(client->wants_attention_);
      client->wants_attention_ = false;
    }
    static_cast<Ep&>(client->owner_).connection().on_attention();
  }
}

void ConnectionManager::serve_deadlines() {
  const int64_t now = now_ns();
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    Object& owner = deadlines_.begin()->second->owner_;
    // Each call sets a new deadline or none.
    if (owner.kind() == Kind::kEp) {
      static_cast<Ep&>(owner).connection().on_deadline();
    } else {
      static_cast<UdConnection&>(owner).on_deadline();
    }
  }
}

}  // namespace dapple::udapl
