// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Every allocation of the connection manager fails once: the result reports it, and nothing else is affected.
#include <cstdlib>
#include <new>

#include "tests/unit/roce/cm_pair.hpp"

namespace {

// The number of allocations that succeed before all fail.
int g_left = -1;

void* allocate(size_t size) {
  if (g_left == 0) return nullptr;
  if (g_left > 0) --g_left;
  return std::malloc(size);
}

}  // namespace

void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return allocate(size);
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return allocate(size);
}
void* operator new(size_t size) {
  void* memory = std::malloc(size);
  if (memory == nullptr) std::abort();
  return memory;
}
void* operator new[](size_t size) {
  return operator new(size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, size_t) noexcept {
  std::free(memory);
}

using namespace dapple::roce::cm;
using namespace dapple::roce::cm::test;

namespace {

void create__any_allocation_fails__none(void** state) {
  int needed = 0;
  for (;; ++needed) {
    g_left = needed;
    const Node node(1);
    g_left = -1;
    if (node.cm != nullptr) break;
    assert_true(needed < 100);
  }
  // The manager, the chunks, three indexes and the timers.
  assert_int_equal(needed, 6);
  (void)state;
}

void commands__no_memory__no_room_and_good_again_later(void** state) {
  Pair& pair = pair_of(state);
  ListenParameters parameters;
  parameters.service_id = kService;
  g_left = 0;
  assert_int_equal(pair.server.cm->listen(parameters, pair.listener), Status::kNoRoom);
  assert_int_equal(pair.client.cm->connect(pair.now, 1, pair.client.path_to(2), pair.req(), pair.active),
                   Status::kNoRoom);
  assert_int_equal(pair.client.cm->resolve(pair.now, 1, pair.client.path_to(2), {}, 20, 1, pair.active),
                   Status::kNoRoom);
  g_left = -1;
  pair.listen();
  pair.connect();
  // The server has no memory for the request and sends nothing; the client asks again.
  g_left = 0;
  pair.carry(pair.client, pair.server, Attribute::kReq);
  g_left = -1;
  pair.assert_quiet();
  assert_int_equal(pair.server.cm->counters().over_limit, 1);
  pair.wait();
  pair.carry(pair.client, pair.server, Attribute::kReq);
  pair.expect(pair.server, EventType::kConnectRequest);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      CM_TEST(create__any_allocation_fails__none),
      CM_TEST(commands__no_memory__no_room_and_good_again_later),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
