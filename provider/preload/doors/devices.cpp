// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/doors/devices.hpp"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <atomic>
#include <memory>

#include "provider/soft/daemon_link.hpp"

namespace dapple::doors {
namespace {

constinit pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
// Never destroyed: programs ask from their last destructors, too.
constinit std::atomic<soft::DaemonLink*> opened = nullptr;

void complain(const soft::Problem& problem) {
  static constinit std::atomic<bool> told = false;
  if (!told.exchange(true)) fprintf(stderr, "dapple: no software device: %s\n", problem.line);
}

void fork_prepare() {
  pthread_mutex_lock(&opening);
  if (soft::DaemonLink* link = opened.load()) link->fork_prepare();
}

void fork_parent() {
  if (soft::DaemonLink* link = opened.load()) link->fork_parent();
  pthread_mutex_unlock(&opening);
}

void fork_child() {
  if (soft::DaemonLink* link = opened.load()) link->fork_child();
  pthread_mutex_unlock(&opening);
}

soft::DaemonLink* connection() {
  soft::DaemonLink* link = opened.load(std::memory_order_acquire);
  if (link != nullptr) return link;
  static constinit bool handles_fork = false;
  pthread_mutex_lock(&opening);
  link = opened.load();
  if (link == nullptr) {
    soft::Problem problem;
    link = soft::DaemonLink::open(problem).release();
    if (link == nullptr) complain(problem);
    opened.store(link, std::memory_order_release);
  }
  const bool first = link != nullptr && !handles_fork;
  if (first) handles_fork = true;
  pthread_mutex_unlock(&opening);
  if (first) pthread_atfork(fork_prepare, fork_parent, fork_child);
  return link;
}

}  // namespace

uint32_t list_devices(uint32_t (&indexes)[soft::kMaxDevices]) {
  soft::DaemonLink* link = connection();
  if (link == nullptr) return 0;
  soft::DeviceList list;
  soft::Problem problem;
  if (!link->devices(list, problem)) {
    complain(problem);
    return 0;
  }
  memcpy(indexes, list.indexes, sizeof list.indexes);
  return list.count;
}

bool get_device(uint32_t index, soft::DeviceInfo& device) {
  soft::Problem problem;
  soft::DaemonLink* link = connection();
  if (link != nullptr && link->device(index, device, problem)) return true;
  errno = ENODEV;
  return false;
}

bool get_device_named(const char* name, size_t size, soft::DeviceInfo& device) {
  uint32_t indexes[soft::kMaxDevices];
  const uint32_t count = list_devices(indexes);
  for (uint32_t i = 0; i < count; ++i) {
    if (get_device(indexes[i], device) && strlen(device.name) == size && memcmp(device.name, name, size) == 0) {
      return true;
    }
  }
  errno = ENODEV;
  return false;
}

}  // namespace dapple::doors
