// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
// Handles of 1.2, where an IA's handle is a pointer: an open IA's reaches its provider, and no other value is read, in
// every function that takes an IA.
#include <dat/dat_registry.h>
#include <dat/udat.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "tests/unit/udapl-registry/checks.hpp"

namespace {

constexpr DAT_RETURN kReached = DAT_CLASS_ERROR | DAT_LENGTH_ERROR;
constexpr DAT_RETURN kNoIa = DAT_CLASS_ERROR | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_IA;
char kIaName[] = "fake12";

struct Object {
  const DAT_PROVIDER* provider;
};

template <class Slot>
struct Reached;
template <class... Args>
struct Reached<DAT_RETURN (*)(Args...)> {
  static DAT_RETURN call(Args...) { return kReached; }
};

DAT_PROVIDER table;

DAT_RETURN open_object(const DAT_NAME_PTR, DAT_COUNT, DAT_EVD_HANDLE* async_evd, DAT_IA_HANDLE* ia, DAT_BOOLEAN) {
  *ia = new Object{&table};
  *async_evd = *ia;
  return DAT_SUCCESS;
}
DAT_RETURN close_object(DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS) {
  delete static_cast<Object*>(ia);
  return DAT_SUCCESS;
}

int add_provider(void**) {
  table.device_name = kIaName;
#define SLOT(SUBTYPE, NAME) table.NAME##_func = Reached<decltype(table.NAME##_func)>::call;
#include "udapl/api/functions.def"
  table.ia_open_func = open_object;
  table.ia_close_func = close_object;
  const DAT_PROVIDER_INFO info = {"fake12", 1, 2, DAT_FALSE};
  return dat_registry_add_provider(&table, &info) == DAT_SUCCESS ? 0 : 1;
}

DAT_IA_HANDLE open_ia() {
  DAT_EVD_HANDLE evd = nullptr;
  DAT_IA_HANDLE ia = nullptr;
  CHECK_EQUAL(dat_ia_open(kIaName, 1, &evd, &ia), DAT_RETURN{DAT_SUCCESS});
  return ia;
}

void close_ia(DAT_IA_HANDLE ia) {
  CHECK_EQUAL(dat_ia_close(ia, DAT_CLOSE_DEFAULT), DAT_RETURN{DAT_SUCCESS});
}

template <class... Args>
DAT_RETURN call(DAT_RETURN (*function)(DAT_HANDLE, Args...), const void* handle) {
  return function(const_cast<DAT_HANDLE>(handle), Args{}...);
}

// Calls use(name, function, subtype) for each function of 1.2 that goes through the provider's table.
template <class Use>
void for_each_function(Use use) {
  use("dat_ia_close", dat_ia_close, DAT_INVALID_HANDLE_IA);
#define SLOT(SUBTYPE, NAME)
#define FUNCTION(SUBTYPE, NAME, ...) use("dat_" #NAME, dat_##NAME, SUBTYPE);
#include "udapl/api/functions.def"
}

void ia_handle__open() {
  const DAT_IA_HANDLE ia = open_ia();
  for_each_function([&](const char* name, auto function, DAT_RETURN_SUBTYPE subtype) {
    if (subtype != DAT_INVALID_HANDLE_IA || std::strcmp(name, "dat_ia_close") == 0) return;
    check_equal(call(function, ia), kReached, name, __FILE__, __LINE__);
  });
  close_ia(ia);
}

void ia_handle__never_given_out() {
  const DAT_IA_HANDLE ia = open_ia();
  const auto open = reinterpret_cast<std::uintptr_t>(ia);
  // Three pages: one without access, one of garbage, one that ends in front of the mapping's end.
  constexpr std::size_t kPage = 4096;
  auto* const pages =
      static_cast<unsigned char*>(mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  CHECK(static_cast<void*>(pages) != MAP_FAILED);
  std::memset(pages, 0xa5, 3 * kPage);
  mprotect(pages, kPage, PROT_NONE);
  munmap(pages + 2 * kPage, kPage);
  const Object other = {&table};  // an object of another kind, with the provider's table
  const std::uintptr_t garbage = reinterpret_cast<std::uintptr_t>(pages) + kPage;
  const std::uintptr_t wild[] = {0,
                                 1,
                                 7,
                                 4095,
                                 4096,
                                 0x12345678,
                                 reinterpret_cast<std::uintptr_t>(pages),  // no access
                                 garbage,                                  // mapped
                                 garbage + 1,                              // not aligned
                                 garbage + kPage - 1,                      // its first word leaves the mapping
                                 garbage + kPage,                          // unmapped
                                 open + 1,
                                 open - 8,
                                 open + 8,
                                 reinterpret_cast<std::uintptr_t>(&table),
                                 reinterpret_cast<std::uintptr_t>(&other),
                                 reinterpret_cast<std::uintptr_t>(&dat_ia_close),
                                 std::uintptr_t{1} << 62,  // no address of x86-64
                                 UINTPTR_MAX - 7,
                                 UINTPTR_MAX};
  for_each_function([&](const char* name, auto function, DAT_RETURN_SUBTYPE subtype) {
    if (subtype != DAT_INVALID_HANDLE_IA) return;
    for (const std::uintptr_t handle : wild) {
      check_equal(call(function, reinterpret_cast<const void*>(handle)), kNoIa, name, __FILE__, __LINE__);
    }
  });
  munmap(pages, 2 * kPage);
  close_ia(ia);
}

void ia_handle__closed() {
  const DAT_IA_HANDLE ia = open_ia();
  close_ia(ia);
  for_each_function([&](const char* name, auto function, DAT_RETURN_SUBTYPE subtype) {
    if (subtype == DAT_INVALID_HANDLE_IA) check_equal(call(function, ia), kNoIa, name, __FILE__, __LINE__);
  });
}

void other_handle__impossible() {
  Object object = {&table};
  for_each_function([&](const char* name, auto function, DAT_RETURN_SUBTYPE subtype) {
    if (subtype == DAT_INVALID_HANDLE_IA) return;
    check_equal(call(function, &object), kReached, name, __FILE__, __LINE__);
    for (const std::uintptr_t handle : {0, 1, 4095}) {
      check_equal(call(function, reinterpret_cast<const void*>(handle)), DAT_CLASS_ERROR | DAT_INVALID_HANDLE | subtype,
                  name, __FILE__, __LINE__);
    }
  });
}

// Each open IA is found, and only those, while IAs are opened and closed in another order than they were opened.
void ia_handle__many_opened_and_closed() {
  std::vector<DAT_IA_HANDLE> open;
  std::uint32_t random = 1;
  const auto next = [&random] { return random = random * 1664525 + 1013904223, random >> 16; };
  DAT_PZ_HANDLE pz = nullptr;
  for (int round = 0; round < 20000; ++round) {
    const bool opens = open.size() < 3000 && (round < 6000 ? next() % 4 != 0 : next() % 4 == 0);
    if (opens || open.empty()) {
      open.push_back(open_ia());
    } else {
      std::swap(open[next() % open.size()], open.back());
      CHECK_EQUAL(dat_pz_create(open.back(), &pz), kReached);
      close_ia(open.back());
      CHECK_EQUAL(dat_pz_create(open.back(), &pz), kNoIa);
      open.pop_back();
    }
    if (round % 1000 != 0) continue;
    for (const DAT_IA_HANDLE ia : open) CHECK_EQUAL(dat_pz_create(ia, &pz), kReached);
  }
  for (const DAT_IA_HANDLE ia : open) close_ia(ia);
}

void ia_handle__as_many_as_there_is_room_for() {
  constexpr std::size_t kMax = 4096;
  std::vector<DAT_IA_HANDLE> open;
  while (open.size() < kMax) open.push_back(open_ia());
  DAT_EVD_HANDLE evd = nullptr;
  DAT_IA_HANDLE more = nullptr;
  CHECK_EQUAL(dat_ia_open(kIaName, 1, &evd, &more), (DAT_RETURN{DAT_CLASS_ERROR} | DAT_INSUFFICIENT_RESOURCES));
  DAT_PZ_HANDLE pz = nullptr;
  CHECK_EQUAL(dat_pz_create(&table, &pz), kNoIa);
  close_ia(open.back());
  open.back() = open_ia();
  for (const DAT_IA_HANDLE ia : open) {
    CHECK_EQUAL(dat_pz_create(ia, &pz), kReached);
    close_ia(ia);
  }
  CHECK_EQUAL(dat_pz_create(&table, &pz), kNoIa);
}

}  // namespace

int main() {
  ::setenv("DAT_OVERRIDE", "/dev/null", 1);
  const CMUnitTest tests[] = {
      TEST(ia_handle__open),
      TEST(ia_handle__never_given_out),
      TEST(ia_handle__closed),
      TEST(other_handle__impossible),
      TEST(ia_handle__many_opened_and_closed),
      TEST(ia_handle__as_many_as_there_is_room_for),
  };
  return cmocka_run_group_tests(tests, add_provider, nullptr);
}
