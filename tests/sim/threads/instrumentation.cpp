// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The functions that code calls which is compiled with -fsanitize=thread: one for each access to memory. Instead of
// ThreadSanitizer's library, the machine answers them.
#include <cstdint>
#include <cstring>

#include "tests/sim/threads/machine.hpp"

#define SIM_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using dapple::sim::Machine;
using dapple::sim::Order;
using dapple::sim::Site;

// The thread acts as the device, whose accesses nobody checks (provider/soft/memory/tsan_ignore.hpp).
thread_local int unseen = 0;

void plain_read(const void* at, size_t size, Site site) {
  Machine* machine = Machine::current();
  if (machine != nullptr && unseen == 0 && !machine->is_own_stack(at))
    machine->memory.plain_read(machine->self(), at, size, site);
}

void plain_write(void* at, size_t size, Site site) {
  Machine* machine = Machine::current();
  if (machine != nullptr && unseen == 0 && !machine->is_own_stack(at))
    machine->memory.plain_write(machine->self(), at, size, site);
}

template <typename T>
T atomic_load(const volatile T* object, int order, Site site) {
  Machine* machine = Machine::current();
  if (machine == nullptr) return __atomic_load_n(object, __ATOMIC_SEQ_CST);
  machine->point_before(site);
  const Order effective = machine->effective(static_cast<Order>(order), site);
  const void* at = const_cast<const T*>(object);
  const auto loaded = machine->memory.load(machine->self(), at, sizeof(T), effective, site);
  machine->trace_operation("loads", at, effective, loaded.value, loaded.behind, site);
  return static_cast<T>(loaded.value);
}

template <typename T>
void atomic_store(volatile T* object, T value, int order, Site site) {
  Machine* machine = Machine::current();
  if (machine == nullptr) return __atomic_store_n(object, value, __ATOMIC_SEQ_CST);
  machine->point_before(site);
  const Order effective = machine->effective(static_cast<Order>(order), site);
  void* at = const_cast<T*>(object);
  machine->memory.store(machine->self(), at, sizeof(T), value, effective, site);
  machine->trace_operation("stores", at, effective, value, 0, site);
}

template <typename T>
T atomic_modify(volatile T* object, Machine* machine, dapple::sim::MemoryModel::Change change, T operand, T expected,
                int order, int failure, Site site) {
  machine->point_before(site);
  const Order effective = machine->effective(static_cast<Order>(order), site);
  void* at = const_cast<T*>(object);
  const uint64_t old = machine->memory.modify(machine->self(), at, sizeof(T), change, operand, expected, effective,
                                              static_cast<Order>(failure), site);
  T now;
  memcpy(&now, at, sizeof now);
  machine->trace_operation("modifies", at, effective, now, 0, site);
  return static_cast<T>(old);
}

void fence(int order, Site site) {
  Machine* machine = Machine::current();
  if (machine == nullptr) return;
  machine->point_before(site);
  const Order effective = machine->effective(static_cast<Order>(order), site);
  machine->memory.fence(machine->self(), effective);
  machine->trace_operation("fence", nullptr, effective, 0, 0, site);
}

}  // namespace

#define SITE __builtin_return_address(0)

SIM_EXPORT void AnnotateIgnoreReadsBegin(const char*, int) {
  unseen++;
}
SIM_EXPORT void AnnotateIgnoreReadsEnd(const char*, int) {
  unseen--;
}
SIM_EXPORT void AnnotateIgnoreWritesBegin(const char*, int) {}
SIM_EXPORT void AnnotateIgnoreWritesEnd(const char*, int) {}
// memcpy() and the like, from libc.cpp.
SIM_EXPORT int sim_is_unseen() {
  return unseen;
}

SIM_EXPORT void __tsan_init() {}
SIM_EXPORT void __tsan_func_entry(void*) {}
SIM_EXPORT void __tsan_func_exit() {}
SIM_EXPORT void __tsan_vptr_update(void** at, void*) {
  plain_write(at, sizeof(void*), SITE);
}
SIM_EXPORT void __tsan_vptr_read(void** at) {
  plain_read(at, sizeof(void*), SITE);
}
SIM_EXPORT void __tsan_read_range(void* at, size_t size) {
  plain_read(at, size, SITE);
}
SIM_EXPORT void __tsan_write_range(void* at, size_t size) {
  plain_write(at, size, SITE);
}

#define SIM_PLAIN(bytes)                                             \
  SIM_EXPORT void __tsan_read##bytes(void* at) {                     \
    plain_read(at, bytes, SITE);                                     \
  }                                                                  \
  SIM_EXPORT void __tsan_write##bytes(void* at) {                    \
    plain_write(at, bytes, SITE);                                    \
  }                                                                  \
  SIM_EXPORT void __tsan_unaligned_read##bytes(void* at) {           \
    plain_read(at, bytes, SITE);                                     \
  }                                                                  \
  SIM_EXPORT void __tsan_unaligned_write##bytes(void* at) {          \
    plain_write(at, bytes, SITE);                                    \
  }                                                                  \
  SIM_EXPORT void __tsan_volatile_read##bytes(void* at) {            \
    plain_read(at, bytes, SITE);                                     \
  }                                                                  \
  SIM_EXPORT void __tsan_volatile_write##bytes(void* at) {           \
    plain_write(at, bytes, SITE);                                    \
  }                                                                  \
  SIM_EXPORT void __tsan_unaligned_volatile_read##bytes(void* at) {  \
    plain_read(at, bytes, SITE);                                     \
  }                                                                  \
  SIM_EXPORT void __tsan_unaligned_volatile_write##bytes(void* at) { \
    plain_write(at, bytes, SITE);                                    \
  }
SIM_PLAIN(1)
SIM_PLAIN(2)
SIM_PLAIN(4)
SIM_PLAIN(8)
SIM_PLAIN(16)

#define SIM_MODIFY(bits, name, expression)                                                                             \
  SIM_EXPORT uint##bits##_t __tsan_atomic##bits##_##name(volatile uint##bits##_t* at, uint##bits##_t operand,          \
                                                         int order) {                                                  \
    constexpr auto change = [](uint64_t& value, uint64_t with, uint64_t) {                                             \
      value = expression;                                                                                              \
      return true;                                                                                                     \
    };                                                                                                                 \
    Machine* machine = Machine::current();                                                                             \
    if (machine != nullptr) return atomic_modify<uint##bits##_t>(at, machine, change, operand, 0, order, order, SITE); \
    uint##bits##_t old = __atomic_load_n(at, __ATOMIC_SEQ_CST);                                                        \
    uint64_t value;                                                                                                    \
    do {                                                                                                               \
      value = old;                                                                                                     \
      change(value, operand, 0);                                                                                       \
    } while (!__atomic_compare_exchange_n(at, &old, static_cast<uint##bits##_t>(value), false, __ATOMIC_SEQ_CST,       \
                                          __ATOMIC_SEQ_CST));                                                          \
    return old;                                                                                                        \
  }

#define SIM_COMPARE(bits, name)                                                                                       \
  SIM_EXPORT int __tsan_atomic##bits##_compare_exchange_##name(volatile uint##bits##_t* at, uint##bits##_t* expected, \
                                                               uint##bits##_t wanted, int order, int failure) {       \
    constexpr auto change = [](uint64_t& value, uint64_t with, uint64_t old) {                                        \
      if (value != old) return false;                                                                                 \
      value = with;                                                                                                   \
      return true;                                                                                                    \
    };                                                                                                                \
    Machine* machine = Machine::current();                                                                            \
    if (machine == nullptr)                                                                                           \
      return __atomic_compare_exchange_n(at, expected, wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);            \
    const uint##bits##_t old =                                                                                        \
        atomic_modify<uint##bits##_t>(at, machine, change, wanted, *expected, order, failure, SITE);                  \
    if (old == *expected) return 1;                                                                                   \
    *expected = old;                                                                                                  \
    return 0;                                                                                                         \
  }

#define SIM_ATOMIC(bits)                                                                                      \
  SIM_EXPORT uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t* at, int order) {        \
    return atomic_load(at, order, SITE);                                                                      \
  }                                                                                                           \
  SIM_EXPORT void __tsan_atomic##bits##_store(volatile uint##bits##_t* at, uint##bits##_t value, int order) { \
    atomic_store(at, value, order, SITE);                                                                     \
  }                                                                                                           \
  SIM_MODIFY(bits, exchange, with)                                                                            \
  SIM_MODIFY(bits, fetch_add, value + with)                                                                   \
  SIM_MODIFY(bits, fetch_sub, value - with)                                                                   \
  SIM_MODIFY(bits, fetch_and, value& with)                                                                    \
  SIM_MODIFY(bits, fetch_or, value | with)                                                                    \
  SIM_MODIFY(bits, fetch_xor, value ^ with)                                                                   \
  SIM_COMPARE(bits, strong)                                                                                   \
  SIM_COMPARE(bits, weak)
SIM_ATOMIC(8)
SIM_ATOMIC(16)
SIM_ATOMIC(32)
SIM_ATOMIC(64)

SIM_EXPORT void __tsan_atomic_thread_fence(int order) {
  fence(order, SITE);
}

// A compiler's barrier orders nothing between processors, but another thread may run here.
SIM_EXPORT void __tsan_atomic_signal_fence(int) {
  if (Machine* machine = Machine::current()) machine->point_before(SITE);
}
