// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/events/notifier.hpp"

#include <poll.h>
#include <sys/epoll.h>

#include <cassert>
#include <cerrno>
#include <utility>

#include "ibverbs-glue/no_cancel.hpp"
#include "udapl/core/clock.hpp"
#include "udapl/core/events/evd.hpp"
#include "udapl/core/events/event_fd.hpp"

namespace dapple::udapl {

Result<std::shared_ptr<Notifier>> Notifier::create() {
  auto notifier = std::make_shared<Notifier>(Private{});
  notifier->set_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  if (!notifier->set_) return fail_errno(errno);
  for (UniqueFd* fd : {&notifier->triggered_fd_, &notifier->pass_fd_, &notifier->agent_fd_}) {
    *fd = make_event_fd();
    if (!*fd) return fail_errno(errno);
  }
  epoll_event watched{};
  watched.events = EPOLLIN;
  if (epoll_ctl(notifier->set_.get(), EPOLL_CTL_ADD, notifier->triggered_fd_.get(), &watched) != 0) {
    return fail_errno(errno);
  }
  return notifier;
}

void Notifier::join(Threads& threads) {
  for (SilentThread& thread : threads) thread.join();
  threads.clear();
}

void Notifier::assert_consistent() const {
  assert(!first_ == !last_ && (!last_ || !last_->notifier_link().next));
  assert(closed_ ? !first_ && !passed_ : stale_ <= waiters_);
  assert(deserted_epoch_ <= epoch_);
}

void Notifier::add_user() {
  std::lock_guard guard(mutex_);
  ++users_;
  told_ = false;
}

void Notifier::drop_user(bool freed) {
  std::lock_guard guard(mutex_);
  assert(users_ > 0);
  if (--users_ != 0 || !freed || closed_) return;
  renew();
  deserted_epoch_ = epoch_;
  tell_deserted_ = agent_.function != nullptr;
  told_ = true;
  raise(agent_fd_);
}

Result<> Notifier::watch(Evd& evd, int channel_fd) {
  std::lock_guard guard(mutex_);
  epoll_event watched{};
  watched.events = EPOLLIN;
  watched.data.ptr = &evd;
  if (channel_fd >= 0 && epoll_ctl(set_.get(), EPOLL_CTL_ADD, channel_fd, &watched) != 0) return fail_errno(errno);
  return {};
}

void Notifier::unwatch(Evd& evd, int channel_fd) {
  std::lock_guard guard(mutex_);
  if (channel_fd >= 0) epoll_ctl(set_.get(), EPOLL_CTL_DEL, channel_fd, nullptr);
  if (std::exchange(evd.notifier_link().passed, false)) {
    Evd** at = &passed_;
    while (*at != &evd) at = &(*at)->notifier_link().next_passed;
    *at = evd.notifier_link().next_passed;
  }
  if (!std::exchange(evd.notifier_link().triggered, false)) return;
  Evd* before = nullptr;
  for (Evd* at = first_; at != &evd; at = at->notifier_link().next) {
    assert(at);
    before = at;
  }
  Evd* next = evd.notifier_link().next;
  (before ? before->notifier_link().next : first_) = next;
  if (last_ == &evd) last_ = before;
  assert_consistent();
  if (!first_ && !closed_) drain(triggered_fd_);
}

void Notifier::trigger(Evd& evd) {
  std::lock_guard guard(mutex_);
  push(evd);
}

void Notifier::push(Evd& evd) {
  NotifierLink& link = evd.notifier_link();
  if (closed_ || std::exchange(link.triggered, true)) return;
  link.next = nullptr;
  (last_ ? last_->notifier_link().next : first_) = &evd;
  if (!last_) raise(triggered_fd_);
  last_ = &evd;
  assert_consistent();
}

Evd* Notifier::pop() {
  Evd* evd = first_;
  if (!evd) return nullptr;
  first_ = evd->notifier_link().next;
  if (!first_) {
    last_ = nullptr;
    drain(triggered_fd_);
  }
  assert(evd->notifier_link().triggered);
  evd->notifier_link().triggered = false;
  return evd;
}

// Each waiter's call returns one EVD, so several may wait here.
void Notifier::pass_on(Evd& evd) {
  raise(pass_fd_);
  if (std::exchange(evd.notifier_link().passed, true)) return;
  Evd** at = &passed_;
  while (*at) at = &(*at)->notifier_link().next_passed;
  evd.notifier_link().next_passed = nullptr;
  *at = &evd;
}

Evd* Notifier::take_passed() {
  Evd* const evd = passed_;
  if (!evd) return nullptr;
  assert(evd->notifier_link().passed);
  passed_ = evd->notifier_link().next_passed;
  evd->notifier_link().passed = false;
  return evd;
}

// Asks the EVDs whose channels are readable. The lock is held, so that none of them can be detached meanwhile.
void Notifier::collect() {
  constexpr int kBatch = 16;
  epoll_event ready[kBatch];
  const int count = epoll_wait(set_.get(), ready, kBatch, 0);
  for (int i = 0; i < count; ++i) {
    auto* evd = static_cast<Evd*>(ready[i].data.ptr);
    if (!evd) continue;
    if (evd->serve_channel()) push(*evd);
    // The channel of a removed device stays readable.
    if (evd->cq_broken()) epoll_ctl(set_.get(), EPOLL_CTL_DEL, evd->channel_fd(), nullptr);
  }
}

// Wakes all waiters after a change that each must see.
void Notifier::renew() {
  ++epoch_;
  stale_ = waiters_;
  if (stale_) raise(pass_fd_);
}

void Notifier::settle() {
  if (!passed_ && stale_ == 0) drain(pass_fd_);
}

Result<Evd*> Notifier::take() {
  const NoCancel until_taken;
  std::lock_guard guard(mutex_);
  if (closed_) return nullptr;
  collect();
  if (Evd* evd = pop()) return evd;
  return fail(Type::kQueueEmpty);
}

Result<Evd*> Notifier::wait(uint32_t timeout_us) {
  const int64_t deadline = timeout_us == Evd::kInfinite ? kNever : now_ns() + int64_t{timeout_us} * 1000;
  std::unique_lock lock(mutex_);
  Waiting waiting(*this, lock);
  for (;;) {
    if (closed_) return nullptr;
    if (waiting.epoch != epoch_) {
      if (deserted_epoch_ > waiting.epoch) return nullptr;
      waiting.epoch = epoch_;
      assert(stale_ > 0);
      --stale_;
      settle();
    }
    {
      const NoCancel until_taken;
      // The agent may be gone since its thread passed this EVD on.
      if (Evd* evd = take_passed()) return evd;
      if (!agent_.function) {
        collect();
        if (Evd* evd = pop()) return evd;
      }
    }
    const int64_t now = now_ns();
    if (now >= deadline) return fail(Type::kQueueEmpty);
    pollfd fds[2] = {{agent_.function ? -1 : set_.get(), POLLIN, 0}, {pass_fd_.get(), POLLIN, 0}};
    timespec left{};
    if (deadline != kNever) left = to_timespec(deadline - now);
    lock.unlock();
    const int ready = ppoll(fds, 2, deadline == kNever ? nullptr : &left, nullptr);
    const int error = errno;
    lock.lock();
    if (fds[1].revents) settle();
    if (ready < 0) return error == EINTR ? fail(Type::kInterruptedCall) : fail(Type::kInternalError);
  }
}

Notifier::Waiting::Waiting(Notifier& on, std::unique_lock<std::mutex>& held)
    : notifier(on), lock(held), epoch(on.epoch_) {
  ++notifier.waiters_;
}

Notifier::Waiting::~Waiting() {
  if (!lock.owns_lock()) lock.lock();
  assert(notifier.waiters_ > 0 && (epoch == notifier.epoch_ || notifier.stale_ > 0));
  if (epoch != notifier.epoch_) --notifier.stale_;
  --notifier.waiters_;
  notifier.settle();
}

WaitAgent Notifier::agent() const {
  std::lock_guard guard(mutex_);
  return agent_;
}

Result<> Notifier::set_agent(const WaitAgent& agent) {
  std::unique_lock lock(mutex_);
  if (closed_) return fail(Type::kInvalidHandle);
  if (agent.function && agent_thread_.empty()) {
    Threads thread(1);  // this comes first: a thread without an entry here could not be ended
    auto started =
        SilentThread::start([self = shared_from_this()] { self->run_agent(); }, "dapple-agent", Subtype::kErrorHandler);
    if (!started) return tl::unexpected(started.error());
    thread.front() = std::move(*started);
    agent_thread_.splice(agent_thread_.end(), thread);
    agent_pid_ = getpid();
  }
  agent_ = agent;
  tell_deserted_ = told_ = false;
  renew();
  raise(agent_fd_);
  if (!in_agent_thread()) {
    called_.wait(lock, [this, former = calls_] { return !calling_ || calls_ != former; });
  }
  return {};
}

void Notifier::run_agent() {
  std::unique_lock lock(mutex_);
  while (!closed_) {
    if (std::exchange(tell_deserted_, false)) {
      call_agent(lock, nullptr);
      continue;
    }
    if (agent_.function) {
      collect();
      if (Evd* evd = pop()) {
        if (waiters_) pass_on(*evd);
        call_agent(lock, evd);
        continue;
      }
    }
    pollfd fds[2] = {{agent_.function ? set_.get() : -1, POLLIN, 0}, {agent_fd_.get(), POLLIN, 0}};
    lock.unlock();
    poll(fds, 2, -1);
    lock.lock();
    if (fds[1].revents) drain(agent_fd_);
  }
  if (tell_closed_ || tell_deserted_) call_agent(lock, nullptr);
}

void Notifier::call_agent(std::unique_lock<std::mutex>& lock, Evd* evd) {
  const WaitAgent agent = agent_;
  if (!agent.function) return;
  // The agent's thread alone calls it.
  assert(!calling_);
  calling_ = true;
  ++calls_;
  lock.unlock();
  agent.function(agent.instance_data, evd);
  lock.lock();
  calling_ = false;
  called_.notify_all();
}

void Notifier::close(bool tell_agent, Threads& threads) {
  std::lock_guard guard(mutex_);
  closed_ = true;
  while (take_passed()) {
  }
  while (pop()) {
  }
  raise(triggered_fd_);
  raise(agent_fd_);
  raise(pass_fd_);
  stale_ = waiters_ + 1;  // pass_fd_ stays readable: no thread will sleep here again
  ++epoch_;
  if (agent_thread_.empty()) return;
  const bool gone = agent_pid_ != getpid();  // in a child of fork(), where there is nothing to join
  const bool self = in_agent_thread();
  tell_closed_ = tell_agent && !self && !told_;
  if (!gone && self) agent_thread_.front().detach();
  if (!gone && !self) threads.splice(threads.end(), agent_thread_);
  agent_thread_.clear();
}

}  // namespace dapple::udapl
