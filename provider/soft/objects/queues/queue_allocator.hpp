// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The memory of queues: ours, or that of a parent domain whose program has allocators of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>

#include "provider/soft/abi/structures.hpp"
#include "roce/host/send_memory.hpp"

namespace dapple::soft {

// The program's allocators get this number: it names the purpose of the memory. The upper half is ours, as other
// providers use their driver's number.
enum class QueueMemory : uint64_t {
  kCompletions = uint64_t{0xDA} << 32 | 1,
  kReceives,
  kReceiveSegments,
  kSends,
  kSendSegments,
};

struct QueueAllocator {
  ibv_pd* pd = nullptr;  // the parent domain
  void* (*alloc)(ibv_pd* pd, void* context, size_t size, size_t alignment, uint64_t type) = nullptr;
  void (*free)(ibv_pd* pd, void* context, void* memory, uint64_t type) = nullptr;
  void* context = nullptr;
};

// Ends the memory of a queue's array, where it came from.
class QueueDeleter {
 public:
  QueueDeleter() = default;
  QueueDeleter(const QueueAllocator* programs, QueueMemory type) : programs_(programs), type_(type) {}

  template <typename Element>
  void operator()(Element* array) const {
    if (programs_ == nullptr) {
      ::operator delete (array, std::align_val_t{kAlignment});
    } else {
      programs_->free(programs_->pd, programs_->context, array, static_cast<uint64_t>(type_));
    }
  }
  static constexpr size_t kAlignment = 64;

 private:
  const QueueAllocator* programs_ = nullptr;  // null: the memory is ours
  QueueMemory type_ = QueueMemory::kCompletions;
};

template <typename Element>
using QueueArray = std::unique_ptr<Element[], QueueDeleter>;

// `count` elements, each as Element{} is. Null without memory. `programs`: the parent domain's, which lives longer than
// the array; null, or without functions: none.
template <typename Element>
QueueArray<Element> make_queue_array(size_t count, QueueMemory type, const QueueAllocator* programs) {
  static_assert(std::is_trivially_destructible_v<Element> && alignof(Element) <= QueueDeleter::kAlignment);
  const size_t size = count * sizeof(Element);
  if (programs != nullptr && (programs->alloc == nullptr || size == 0)) programs = nullptr;
  void* memory = nullptr;
  if (programs != nullptr) {
    memory =
        programs->alloc(programs->pd, programs->context, size, QueueDeleter::kAlignment, static_cast<uint64_t>(type));
    if (memory == IBV_ALLOCATOR_USE_DEFAULT) programs = nullptr;
  }
  if (programs == nullptr) memory = ::operator new (size, std::align_val_t{QueueDeleter::kAlignment}, std::nothrow);
  if (memory == nullptr) return {};
  std::uninitialized_value_construct_n(static_cast<Element*>(memory), count);
  return QueueArray<Element>(static_cast<Element*>(memory), QueueDeleter(programs, type));
}

// The send queue of one queue pair of such a parent domain. Confined.
class SendAllocator final : public roce::SendMemory {
 public:
  // `programs` has functions, and lives longer.
  explicit SendAllocator(const QueueAllocator& programs) : programs_(programs) {}

  void* take(Part part, size_t size) override {
    void* memory = programs_.alloc(programs_.pd, programs_.context, size, kAlignment, type_of(part));
    is_ours_[static_cast<size_t>(part)] = memory == IBV_ALLOCATOR_USE_DEFAULT;
    if (memory != IBV_ALLOCATOR_USE_DEFAULT) return memory;
    return ::operator new (size, std::align_val_t{kAlignment}, std::nothrow);
  }
  void give(Part part, void* memory) override {
    if (is_ours_[static_cast<size_t>(part)]) {
      ::operator delete (memory, std::align_val_t{kAlignment});
    } else {
      programs_.free(programs_.pd, programs_.context, memory, type_of(part));
    }
  }

 private:
  static uint64_t type_of(Part part) {
    return static_cast<uint64_t>(part == Part::kRequests ? QueueMemory::kSends : QueueMemory::kSendSegments);
  }

  const QueueAllocator& programs_;
  bool is_ours_[2] = {};
};

}  // namespace dapple::soft
