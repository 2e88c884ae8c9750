// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/plugin/copies.hpp"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "provider/common/loaded_object.hpp"
#include "provider/soft/abi/extended_qp.hpp"

namespace dapple::soft::abi {
namespace {

constexpr size_t kMaxCopies = 16;
// No lock: a constructor holds the loader's lock, and another thread may be about to take that one.
constinit VerbsCopy copies[kMaxCopies];

// A place for a copy that had none. Null if the copy has one, or all are taken; `known` tells which.
VerbsCopy* take_place(void* handle, bool& known) {
  known = false;
  for (VerbsCopy& copy : copies) {
    void* present = nullptr;
    if (copy.handle.compare_exchange_strong(present, handle)) return &copy;
    known = present == handle;
    if (known) break;
  }
  return nullptr;
}

template <typename Function>
bool find(const VerbsCopy& copy, const char* name, Function& function) {
  void* handle = copy.handle.load(std::memory_order_relaxed);
  function = reinterpret_cast<Function>(dlvsym(handle, name, copy.library.layout->symbol_version));
  return function != nullptr;
}

struct Obstacle {
  const char* why = nullptr;  // null: none
  const char* remedy = nullptr;
};

// Says why the driver cannot be registered.
Obstacle register_driver(VerbsCopy& copy, const DeviceOperations& driver) {
  void* handle = copy.handle.load(std::memory_order_relaxed);
  copy.library = provider::examine_verbs_library(handle);
  if (copy.library.layout == nullptr) return {copy.library.why, copy.library.remedy};
  // verbs_register_driver_34 has the version IBVERBS_PRIVATE_34.
  char name[64];
  snprintf(name, sizeof name, "verbs_register_driver_%s", strrchr(copy.library.layout->symbol_version, '_') + 1);
  if (!find(copy, name, copy.functions.register_driver) ||
      !find(copy, "_verbs_init_and_alloc_context", copy.functions.init_and_alloc_context) ||
      !find(copy, "verbs_uninit_context", copy.functions.uninit_context)) {
    return {"its libibverbs lacks a private function of its release"};
  }
  copy.has_wr_flush = has_wr_flush(handle);
  copy.driver = driver;
  copy.functions.register_driver(&copy.driver);
  return {};
}

void complain(void* handle, const Obstacle& obstacle) {
  const link_map* map = nullptr;
  const bool named = handle != nullptr && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0;
  const bool advised = obstacle.remedy != nullptr;
  fprintf(stderr, "dapple: %s has no software device: %s%s%s%s%s\n", program_invocation_short_name, obstacle.why,
          named ? ": " : "", named ? map->l_name : "", advised ? "; " : "", advised ? obstacle.remedy : "");
}

}  // namespace

void register_with(const void* in_verbs_library, const DeviceOperations& driver) {
  void* handle = in_verbs_library != nullptr ? provider::open_verbs_at(in_verbs_library)
                                             : dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return complain(nullptr, {"no libibverbs.so.1 is loaded in this process"});
  bool known;
  VerbsCopy* copy = take_place(handle, known);
  if (copy == nullptr) {
    if (!known) complain(handle, {"this process has too many copies of libibverbs"});
    dlclose(handle);
    return;
  }
  if (const Obstacle obstacle = register_driver(*copy, driver); obstacle.why != nullptr) complain(handle, obstacle);
}

const VerbsCopy& copy_of(const ibv_device* device) {
  const DeviceOperations* driver = reinterpret_cast<const Device*>(device)->ops;
  size_t i = 0;
  while (i + 1 < kMaxCopies && &copies[i].driver != driver) ++i;
  assert(&copies[i].driver == driver && copies[i].library.layout != nullptr);
  return copies[i];
}

}  // namespace dapple::soft::abi
