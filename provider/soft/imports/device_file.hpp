// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// What the kernel keeps for an open /dev/infiniband/uverbsN. The context that opened it, and those that import it,
// share its keys and may import its protection domains, regions and device memory.
//
// An import is an object of its own, with the handle of its original. Verbs that get an import use its original
// (original_of()), so no object refers to an import. The object ends with the first dealloc of the original or of an
// import. The memory of the original's structure stays until its last import has gone.
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include <atomic>
#include <cassert>
#include <mutex>
#include <tuple>

#include "provider/common/mutex.hpp"
#include "provider/soft/memory/memory_table.hpp"
#include "provider/soft/objects/objects.hpp"
#include "provider/soft/objects/queues/event_pipe.hpp"

namespace dapple::soft {

// An open file. Copies of the descriptor have the same.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FileIdentity&) const = default;
};

inline uint32_t handle_of(const Pd& pd) {
  return pd.ibv.handle;
}
inline uint32_t handle_of(const Mr& mr) {
  return mr.abi.mr.handle;
}
inline uint32_t handle_of(const Dm& dm) {
  return dm.ibv.handle;
}

// Internally locked; the lock is a leaf.
class DeviceFile {
 public:
  // With one context. random: as for MemoryTable. maker: the process that has opened the file.
  DeviceFile(uint32_t random, const FileIdentity& identity, pid_t maker)
      : memory(random), identity_(identity), maker_(maker) {}
  ~DeviceFile();
  DeviceFile(const DeviceFile&) = delete;
  DeviceFile& operator=(const DeviceFile&) = delete;

  MemoryTable memory;
  // Of completion channels: completion queues of all contexts may use one channel.
  EventPipes channels;

  const FileIdentity& identity() const { return identity_; }
  pid_t maker() const { return maker_; }

  // A context imports the file. One that has it stays open meanwhile.
  void join() { contexts_.fetch_add(1, std::memory_order_relaxed); }
  // True: it was the last one, and the caller deletes the file.
  bool leave() { return contexts_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

  // A new object that can be imported, which has its handle.
  template <typename Object>
  void add(Object& original) {
    const std::lock_guard lock(mutex_);
    assert(original.importing.original == nullptr && original.importing.next == nullptr &&
           original.importing.previous == nullptr);
    Object*& first = std::get<Object*>(first_);
    original.importing.next = first;
    if (first != nullptr) first->importing.previous = &original;
    first = &original;
  }
  // The object with this handle has one import more. Null if there is none.
  template <typename Object>
  Object* import(uint32_t handle) {
    const std::lock_guard lock(mutex_);
    Object* found = std::get<Object*>(first_);
    while (found != nullptr && (handle_of(*found) != handle || found->importing.end != ObjectEnd::kNone))
      found = found->importing.next;
    if (found != nullptr) found->importing.imports++;
    return found;
  }
  // The import has gone. True: the caller deletes the original, too.
  template <typename Object>
  bool leave(Object& original) {
    const std::lock_guard lock(mutex_);
    assert(original.importing.imports > 0);
    return --original.importing.imports == 0 && original.importing.end == ObjectEnd::kByOriginal;
  }
  // The object ends, which has not ended before. True: the caller deletes the original. False: imports of it are left,
  // or the program still has the original's structure.
  template <typename Object>
  bool end(Object& original, ObjectEnd end) {
    const std::lock_guard lock(mutex_);
    assert(original.importing.end == ObjectEnd::kNone && end != ObjectEnd::kNone);
    original.importing.end = end;
    if (end == ObjectEnd::kByImport) return false;
    remove(original);
    return original.importing.imports == 0;
  }

  // In a child of fork(), where the lock is of no use: the objects are the parent's.
  void forget_objects() { first_ = {}; }

  // The closed contexts, which objects may refer to; they end with the file. Any thread, also in a child of fork().
  std::atomic<Context*> closed{nullptr};

 private:
  template <typename Object>
  void remove(Object& original) {
    assert_held(mutex_);
    Importing<Object>& part = original.importing;
    (part.previous == nullptr ? std::get<Object*>(first_) : part.previous->importing.next) = part.next;
    if (part.next != nullptr) part.next->importing.previous = part.previous;
    part.next = part.previous = nullptr;
  }
  template <typename Object>
  void delete_ended();

  const FileIdentity identity_;
  const pid_t maker_;
  std::atomic<uint32_t> contexts_{1};
  Mutex mutex_{LockRank::kDeviceFile};
  // Those that have not ended, and those that an import has ended.
  std::tuple<Pd*, Mr*, Dm*> first_ = {};
};

}  // namespace dapple::soft
