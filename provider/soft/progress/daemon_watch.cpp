// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/progress/daemon_watch.hpp"

#include <sys/prctl.h>

#include <cassert>
#include <mutex>
#include <new>

#include "provider/common/clock.hpp"
#include "provider/soft/scheduling/turn_clock.hpp"
#include "provider/system/doors.hpp"
#include "provider/system/own_thread.hpp"

namespace dapple::soft {
namespace {

constexpr roce::Time kMillisecond = 1'000'000;
constexpr roce::Time kRetry = 1000 * kMillisecond;
constexpr roce::Time kBusy = 1 * kMillisecond;

}  // namespace

bool DaemonWatch::add(Context& context) {
  const std::lock_guard lock(contexts_mutex_);
  DeviceObjects* objects = nullptr;
  for (Context* other = first_context_; other != nullptr && objects == nullptr; other = other->next) {
    if (other->node_guid == context.node_guid) objects = &other->objects.device();
  }
  if (objects == nullptr) {
    objects =
        new (std::nothrow) DeviceObjects(context.attributes(), context.resources().counts_of(context.device_index));
  }
  if (objects == nullptr) return false;
  assert(context.next == nullptr && first_context_ != &context);
  context.objects.join(*objects);
  context.next = first_context_;
  first_context_ = &context;
  return true;
}

void DaemonWatch::remove(Context& context) {
  const std::lock_guard lock(contexts_mutex_);
  for (Context** at = &first_context_; *at != nullptr; at = &(*at)->next) {
    if (*at != &context) continue;
    *at = context.next;
    if (DeviceObjects& objects = context.objects.leave(); objects.contexts() == 0) delete &objects;
    return;
  }
}

DeviceFile* DaemonWatch::join(const FileIdentity& identity) {
  const std::lock_guard lock(contexts_mutex_);
  for (Context* context = first_context_; context != nullptr; context = context->next) {
    if (context->file.identity() != identity) continue;
    context->file.join();
    return &context->file;
  }
  return nullptr;
}

void DaemonWatch::look_for_changes() {
  if (link_->changed()) wakeup_.wake();
}

void DaemonWatch::tell_changes() {
  link_->take_changed();
  const std::lock_guard lock(contexts_mutex_);
  for (Context* context = first_context_; context != nullptr; context = context->next) context->tell_changes();
}

int DaemonWatch::fd_to_poll() {
  if (retry_.load() != 0) return -1;
  const int fd = link_->fd();
  // A thread that got no answer has closed the connection.
  if (fd < 0) retry_.store(now_ns() + kRetry);
  return fd;
}

roce::Time DaemonWatch::next_look() const {
  const roce::Time retry = retry_.load();
  return retry == 0 ? roce::kNever : retry;
}

void DaemonWatch::look() {
  const DaemonLink::State state = link_->look();
  if (state == DaemonLink::State::kGone) return ask();
  retry_.store(state == DaemonLink::State::kBusy ? now_ns() + kBusy : 0);
}

void DaemonWatch::ask() {
  // Another such thread is at work otherwise.
  assert(retry_.load() != roce::kNever);
  retry_.store(roce::kNever);
  // If there can be no such thread, packets wait.
  if (start_own_thread(run, this) != 0) run(this);
}

// If dappled is gone, the next one must learn this process' slot.
void* DaemonWatch::run(void* argument) {
  if (!Wakeup::is_background()) prctl(PR_SET_NAME, "dapple-link");
  const InsidePlugin inside;
  auto& watch = *static_cast<DaemonWatch*>(argument);
  assert(watch.retry_.load() == roce::kNever);
  Problem problem;
  const bool connected = watch.link_->check(problem);
  if (connected && watch.link_->changed()) watch.tell_changes();
  watch.retry_.store(connected ? 0 : now_ns() + kRetry);
  watch.wakeup_.wake();
  return nullptr;
}

}  // namespace dapple::soft
