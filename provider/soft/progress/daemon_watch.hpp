// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The watch over dappled: its end, and the changes of devices that it reports. dappled may not answer for seconds, and
// packets must not wait for it, so a thread of its own asks.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "provider/common/mutex.hpp"
#include "provider/member/daemon_link.hpp"
#include "provider/soft/imports/device_file.hpp"
#include "provider/soft/scheduling/wakeup.hpp"
#include "provider/soft/transport/context.hpp"
#include "roce/host/clock.hpp"

namespace dapple::soft {

// Any thread may call a function unless it says otherwise.
class DaemonWatch final : public ChangeWatch {
 public:
  DaemonWatch(std::unique_ptr<DaemonLink> link, const Wakeup& wakeup) : link_(std::move(link)), wakeup_(wakeup) {}

  DaemonLink& link() { return *link_; }

  // From now on until remove(), an open device gets changes of its netdev, and may have objects. False without memory.
  bool add(Context& context);
  void remove(Context& context);
  // The open file with this identity, which has a context more; null if none is open.
  DeviceFile* join(const FileIdentity& identity);

  // If there are changes, another thread looks at them.
  void look_for_changes() override;
  // Tells the open devices of changes.
  void tell_changes();

  // The functions from here on: the background thread's.
  //
  // The descriptor whose events end its sleep; -1 if there is none now.
  int fd_to_poll();
  // When it calls look() although there was no event; kNever if that is not necessary.
  roce::Time next_look() const;
  // Looks after an event, or at the time of next_look().
  void look();
  // Changes are known, and nobody has asked for them yet: call ask() before the next sleep.
  bool is_due() const { return link_->changed() && retry_.load() == 0; }
  void ask();

 private:
  static void* run(void* watch);

  const std::unique_ptr<DaemonLink> link_;
  const Wakeup& wakeup_;
  // When the background thread looks after the link again. 0: when the link has an event. roce::kNever: run() is at
  // work, and sets it.
  std::atomic<roce::Time> retry_{0};

  Mutex contexts_mutex_{LockRank::kContexts};
  Context* first_context_ = nullptr;
};

}  // namespace dapple::soft
