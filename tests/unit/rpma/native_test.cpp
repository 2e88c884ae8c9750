// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Native operations and their replacements: the choice between them, and the posted requests.
#include <cerrno>
#include <cstring>
#include <initializer_list>

#include "rpma/common/native.hpp"
#include "tests/unit/rpma/objects.hpp"

namespace {

using namespace dapple::rpma;

constexpr int kOn = RPMA_F_COMPLETION_ALWAYS;
constexpr uint64_t kAddress = 0x1000;
constexpr size_t kSize = 64;
constexpr uint8_t kEverything = RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |
                                RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
constexpr uint8_t kAllNative = 0xd0 | 7;
const char kBytes[8] = {'t', 'o', 'g', 'e', 't', 'h', 'e', 'r'};

Objects o;

// A region in the form that a peer sends. size: 21 from an original peer, 22 from ours.
void peer_sends(size_t size, uint8_t last, uint64_t length = kSize, uint8_t usage = kEverything,
                uint64_t address = kAddress) {
  uint8_t bytes[22] = {};
  std::memcpy(bytes, &address, 8);
  std::memcpy(bytes + 8, &length, 8);
  bytes[16] = 0x99;
  bytes[20] = usage;
  bytes[21] = last;
  o.take_remote(bytes, size);
}

void says_direct_write() {
  assert_int_equal(rpma_peer_cfg_set_direct_write_to_pmem(o.peer_cfg, true), 0);
  assert_int_equal(rpma_conn_apply_remote_peer_cfg(o.conn, o.peer_cfg), 0);
}

int tear_down(void**) {
  o.free();
  rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_WARNING);
  return 0;
}

int start(void (*prepare)()) {
  fake::reset();
  rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
  if (prepare) prepare();
  o.make();
  o.connect();
  says_direct_write();
  return 0;
}
int set_up_plain(void**) {
  return start(nullptr);
}
int set_up_native(void**) {
  return start(fake::make_native);
}
int set_up_old_library(void**) {
  return start([] {
    fake::make_native();
    fake::state.known_send_ops = native::kQpWithAtomicWrite;
  });
}
int set_up_without_extended(void**) {
  return start([] { fake::state.has_create_qp_ex = false; });
}

fake::Posted atomic_write(size_t offset = 8) {
  assert_int_equal(rpma_atomic_write(o.conn, o.remote, offset, kBytes, kOn, &o), 0);
  return only_posted();
}
fake::Posted flush(rpma_flush_type type, size_t offset = 8, size_t length = 16) {
  assert_int_equal(rpma_flush(o.conn, o.remote, offset, length, type, kOn, &o), 0);
  return only_posted();
}

void is_inline_write(const fake::Posted& posted, uint64_t address) {
  assert_string_equal(posted.what.c_str(), "send");
  assert_int_equal(posted.opcode, IBV_WR_RDMA_WRITE);
  assert_int_equal(posted.flags, IBV_SEND_INLINE | IBV_SEND_FENCE | IBV_SEND_SIGNALED);
  assert_int_equal(posted.segment.length, 8);
  assert_int_equal(posted.remote_address, address);
  assert_memory_equal(&posted.bytes, kBytes, 8);
  assert_int_equal(posted.wr_id, reinterpret_cast<uintptr_t>(&o));
}
void is_read(const fake::Posted& posted, uint64_t address, uint32_t length) {
  assert_string_equal(posted.what.c_str(), "send");
  assert_int_equal(posted.opcode, IBV_WR_RDMA_READ);
  assert_int_equal(posted.flags, IBV_SEND_SIGNALED);
  assert_int_equal(posted.remote_address, address);
  assert_int_equal(posted.segment.length, length);
  assert_int_equal(posted.rkey, 0x99);
}

void without_native_operations_they_are_a_write_and_a_read(void**) {
  peer_sends(22, kAllNative);
  is_inline_write(atomic_write(), kAddress + 8);
  is_read(flush(RPMA_FLUSH_TYPE_VISIBILITY), kAddress + 8, 8);
  is_read(flush(RPMA_FLUSH_TYPE_PERSISTENT), kAddress + 8, 8);
}

void between_two_that_can_they_are_native(void**) {
  peer_sends(22, kAllNative);
  const fake::Posted write = atomic_write();
  assert_string_equal(write.what.c_str(), "atomic write");
  assert_int_equal(write.remote_address, kAddress + 8);
  assert_memory_equal(&write.bytes, kBytes, 8);
  assert_int_equal(write.rkey, 0x99);
  assert_int_equal(write.wr_id, reinterpret_cast<uintptr_t>(&o));
  const fake::Posted visible = flush(RPMA_FLUSH_TYPE_VISIBILITY);
  assert_string_equal(visible.what.c_str(), "flush");
  assert_int_equal(visible.placement, 1);
  assert_int_equal(visible.length, 16);
  assert_int_equal(visible.flags, IBV_SEND_SIGNALED);
  assert_int_equal(flush(RPMA_FLUSH_TYPE_PERSISTENT).placement, 2);
}

// Defect 4 of the original.
void a_native_atomic_write_waits_for_flushes_by_read(void**) {
  peer_sends(22, 0xd0 | 1);
  is_read(flush(RPMA_FLUSH_TYPE_VISIBILITY), kAddress + 8, 8);
  const fake::Posted write = atomic_write();
  assert_string_equal(write.what.c_str(), "atomic write");
  assert_int_equal(write.flags, IBV_SEND_FENCE | IBV_SEND_SIGNALED);
}

// Defect 2 of the original.
void with_a_peer_that_has_not_said_it_can_nothing_is_native(void**) {
  const struct {
    size_t size;
    uint8_t last;
  } peers[] = {{21, kAllNative}, {22, 0}, {22, 1}, {22, 7}, {22, 0xff}, {22, 0xd0}, {22, 0xe7}};
  for (const auto& peer : peers) {
    peer_sends(peer.size, peer.last);
    is_inline_write(atomic_write(), kAddress + 8);
    is_read(flush(RPMA_FLUSH_TYPE_VISIBILITY), kAddress + 8, 8);
    is_read(flush(RPMA_FLUSH_TYPE_PERSISTENT), kAddress + 8, 8);
  }
}

void each_operation_is_decided_for_itself(void**) {
  peer_sends(22, 0xd0 | 2);
  is_inline_write(atomic_write(), kAddress + 8);
  assert_string_equal(flush(RPMA_FLUSH_TYPE_VISIBILITY).what.c_str(), "flush");
  is_read(flush(RPMA_FLUSH_TYPE_PERSISTENT), kAddress + 8, 8);
}

// A native atomic write there would fail.
void an_odd_address_is_written_inline(void**) {
  peer_sends(22, kAllNative, kSize, kEverything, kAddress + 4);
  is_inline_write(atomic_write(), kAddress + 12);
}

void a_library_without_flush_still_writes_atomically(void**) {
  peer_sends(22, kAllNative);
  assert_string_equal(atomic_write().what.c_str(), "atomic write");
  is_read(flush(RPMA_FLUSH_TYPE_VISIBILITY), kAddress + 8, 8);
}

// Defect 3 of the original: siw has no extended call.
void without_native_operations_the_extended_call_is_not_made(void**) {
  assert_int_equal(fake::state.created_extended, 0);
  peer_sends(22, kAllNative);
  is_inline_write(atomic_write(), kAddress + 8);
}

// Defect 6 of the original.
void a_flush_by_read_never_leaves_the_region(void**) {
  peer_sends(21, 0);
  is_read(flush(RPMA_FLUSH_TYPE_VISIBILITY, kSize - 8, 8), kAddress + kSize - 8, 8);
  is_read(flush(RPMA_FLUSH_TYPE_VISIBILITY, kSize - 3, 3), kAddress + kSize - 3, 3);
  is_read(flush(RPMA_FLUSH_TYPE_VISIBILITY, kSize - 1, 1), kAddress + kSize - 1, 1);
  is_read(flush(RPMA_FLUSH_TYPE_VISIBILITY, kSize, 0), kAddress + kSize - 1, 1);
  peer_sends(21, 0, 5);
  is_read(flush(RPMA_FLUSH_TYPE_VISIBILITY, 0, 5), kAddress, 5);
  peer_sends(21, 0, 0);
  is_read(flush(RPMA_FLUSH_TYPE_VISIBILITY, 0, 0), kAddress, 0);
}

// The original posted its Read for any length.
void a_flush_by_read_does_not_look_at_the_length(void**) {
  peer_sends(21, 0);
  is_read(flush(RPMA_FLUSH_TYPE_VISIBILITY, 0, kSize + 1), kAddress, 8);
  is_read(flush(RPMA_FLUSH_TYPE_PERSISTENT, kSize - 3, SIZE_MAX), kAddress + kSize - 3, 3);
}

void a_flush_from_outside_of_the_region_is_refused(void**) {
  for (const uint8_t last : {uint8_t{0}, kAllNative}) {
    peer_sends(22, last);
    assert_int_equal(rpma_flush(o.conn, o.remote, kSize + 1, 0, RPMA_FLUSH_TYPE_VISIBILITY, kOn, nullptr),
                     RPMA_E_INVAL);
  }
  assert_true(fake::state.posted.empty());
}

// A flush would end the connection.
void a_native_flush_beyond_the_region_is_refused(void**) {
  peer_sends(22, kAllNative);
  assert_int_equal(rpma_flush(o.conn, o.remote, 1, kSize, RPMA_FLUSH_TYPE_VISIBILITY, kOn, nullptr), RPMA_E_INVAL);
  assert_true(fake::state.posted.empty());
}

// RDMA Flush has 32 bits for the length.
void a_flush_of_four_gibibytes_is_a_read(void**) {
  constexpr uint64_t kLarge = uint64_t{1} << 33;
  peer_sends(22, kAllNative, kLarge);
  const fake::Posted longest = flush(RPMA_FLUSH_TYPE_VISIBILITY, 8, UINT32_MAX);
  assert_string_equal(longest.what.c_str(), "flush");
  assert_int_equal(longest.length, UINT32_MAX);
  is_read(flush(RPMA_FLUSH_TYPE_VISIBILITY, 8, size_t{UINT32_MAX} + 1), kAddress + 8, 8);
  is_read(flush(RPMA_FLUSH_TYPE_PERSISTENT, 0, kLarge), kAddress, 8);
  assert_int_equal(rpma_flush(o.conn, o.remote, 8, kLarge, RPMA_FLUSH_TYPE_VISIBILITY, kOn, nullptr), RPMA_E_INVAL);
}

void neither_type_of_flush_implies_the_other(void**) {
  peer_sends(22, kAllNative, kSize, RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY);
  assert_int_equal(rpma_flush(o.conn, o.remote, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT, kOn, nullptr), RPMA_E_NOSUPP);
  (void)flush(RPMA_FLUSH_TYPE_VISIBILITY);
  peer_sends(22, kAllNative, kSize, RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT);
  assert_int_equal(rpma_flush(o.conn, o.remote, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, kOn, nullptr), RPMA_E_NOSUPP);
  (void)flush(RPMA_FLUSH_TYPE_PERSISTENT);
}

void persistence_takes_the_peers_word(void**) {
  peer_sends(22, kAllNative);
  assert_int_equal(rpma_peer_cfg_set_direct_write_to_pmem(o.peer_cfg, false), 0);
  assert_int_equal(rpma_conn_apply_remote_peer_cfg(o.conn, o.peer_cfg), 0);
  assert_int_equal(rpma_flush(o.conn, o.remote, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT, kOn, nullptr), RPMA_E_NOSUPP);
  (void)flush(RPMA_FLUSH_TYPE_VISIBILITY);
}

void what_cannot_be_posted_is_a_providers_error(void**) {
  fake::state.post_error = ENOMEM;
  for (const uint8_t last : {uint8_t{0}, kAllNative}) {
    peer_sends(22, last);
    assert_int_equal(rpma_atomic_write(o.conn, o.remote, 0, kBytes, kOn, nullptr), RPMA_E_PROVIDER);
    assert_int_equal(rpma_flush(o.conn, o.remote, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, kOn, nullptr), RPMA_E_PROVIDER);
  }
}

// ---- regions ----

struct Registered {
  unsigned access;
  uint8_t last;  // of the descriptor
};

Registered region_for(int usage) {
  rpma_mr_local* mr = nullptr;
  uint8_t bytes[22];
  fake::state.accesses.clear();
  assert_int_equal(rpma_mr_reg(o.peer, o.memory, 64, usage, &mr), 0);
  assert_int_equal(rpma_mr_get_descriptor(mr, bytes), 0);
  assert_int_equal(rpma_mr_dereg(&mr), 0);
  return {fake::state.accesses.back(), bytes[21]};
}

void access_follows_the_usage(void**) {
  const struct {
    int usage;
    unsigned access;
  } rows[] = {
      {RPMA_MR_USAGE_READ_SRC, IBV_ACCESS_REMOTE_READ},
      {RPMA_MR_USAGE_READ_DST, IBV_ACCESS_LOCAL_WRITE},
      {RPMA_MR_USAGE_WRITE_SRC, IBV_ACCESS_LOCAL_WRITE},
      {RPMA_MR_USAGE_WRITE_DST, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE},
      {RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY, IBV_ACCESS_REMOTE_READ},
      {RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT, IBV_ACCESS_REMOTE_READ},
      {RPMA_MR_USAGE_SEND, 0},
      {RPMA_MR_USAGE_RECV, IBV_ACCESS_LOCAL_WRITE},
  };
  for (const auto& row : rows) {
    assert_int_equal(region_for(row.usage).access, row.access);
    assert_int_equal(region_for(row.usage).last, 0xd0);
  }
}

// Defect 1 of the original: a peer may still flush by reading.
void a_region_to_be_flushed_can_be_read_too(void**) {
  const Registered visible = region_for(RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY);
  assert_int_equal(visible.access, IBV_ACCESS_REMOTE_READ | native::kAccessFlushGlobal);
  assert_int_equal(visible.last, 0xd0 | native::kFlushVisibility);
  const Registered both = region_for(kEverything);
  assert_int_equal(both.access, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE |
                                    native::kAccessFlushGlobal | native::kAccessFlushPersistent);
  assert_int_equal(both.last, kAllNative);
}

// Defect 9 of the original.
void ordinary_memory_can_be_registered_for_persistence(void**) {
  fake::state.refused_access = native::kAccessFlushPersistent;
  const Registered both = region_for(kEverything);
  assert_int_equal(both.access & (native::kAccessFlushGlobal | native::kAccessFlushPersistent),
                   native::kAccessFlushGlobal);
  assert_int_equal(both.last, 0xd0 | native::kAtomicWrite | native::kFlushVisibility);
  assert_int_equal(region_for(RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT).access, IBV_ACCESS_REMOTE_READ);
  fake::state.refused_access |= native::kAccessFlushGlobal;
  assert_int_equal(region_for(kEverything).last, 0xd0 | native::kAtomicWrite);
}

int set_up_odp(void**) {
  fake::reset();
  rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
  fake::state.device.odp_caps.general_caps = IBV_ODP_SUPPORT;
  fake::state.device.odp_caps.per_transport_caps.rc_odp_caps = IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_WRITE;
  o.make();
  return 0;
}

void memory_that_cannot_be_pinned_is_paged_on_demand(void**) {
  rpma_mr_local* mr = nullptr;
  fake::state.accesses.clear();
  fake::state.refused_error = EOPNOTSUPP;
  fake::state.fails_at = static_cast<int>(fake::state.calls.size()) + 2;  // after the call that allocates
  fake::state.error = EOPNOTSUPP;
  assert_int_equal(rpma_mr_reg(o.peer, o.memory, 64, RPMA_MR_USAGE_READ_SRC, &mr), 0);
  assert_int_equal(fake::state.accesses.size(), 1);
  assert_int_equal(fake::state.accesses[0], IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND);
  assert_int_equal(rpma_mr_dereg(&mr), 0);
}

// The region of kEverything on a native device that pins nothing, and supports these operations on memory that is not
// pinned.
Registered region_on_demand(uint32_t rc_caps) {
  o.free();
  fake::reset();
  fake::make_native();
  fake::state.device.odp_caps.general_caps = IBV_ODP_SUPPORT;
  fake::state.device.odp_caps.per_transport_caps.rc_odp_caps = IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_WRITE | rc_caps;
  fake::state.unpinned_only = true;
  o.make();
  return region_for(kEverything);
}

void paged_on_demand_it_is_native_only_where_the_device_can(void**) {
  constexpr unsigned kBothFlushes = native::kAccessFlushGlobal | native::kAccessFlushPersistent;
  const Registered nothing = region_on_demand(0);
  assert_int_equal(nothing.last, 0xd0);
  assert_true(nothing.access & IBV_ACCESS_ON_DEMAND);
  assert_false(nothing.access & kBothFlushes);
  assert_int_equal(region_on_demand(native::kOdpAtomicWrite).last, 0xd0 | native::kAtomicWrite);
  const Registered flushes = region_on_demand(native::kOdpFlush);
  assert_int_equal(flushes.last, 0xd0 | native::kFlushAny);
  assert_int_equal(flushes.access & kBothFlushes, kBothFlushes);
  assert_int_equal(region_on_demand(native::kOdpFlush | native::kOdpAtomicWrite).last, kAllNative);
}

void another_refusal_is_not_tried_again(void**) {
  rpma_mr_local* mr = nullptr;
  fake::state.accesses.clear();
  fake::state.refused_access = IBV_ACCESS_REMOTE_READ;
  assert_int_equal(rpma_mr_reg(o.peer, o.memory, 64, RPMA_MR_USAGE_READ_SRC, &mr), RPMA_E_PROVIDER);
  assert_int_equal(fake::state.accesses.size(), 1);
  assert_null(mr);
}

void odp_is_asked_of_the_device(void**) {
  int capable = 2;
  assert_int_equal(rpma_utils_ibv_context_is_odp_capable(fake::context(), &capable), 0);
  assert_int_equal(capable, 0);
  fake::state.device.odp_caps.general_caps = IBV_ODP_SUPPORT;
  fake::state.device.odp_caps.per_transport_caps.rc_odp_caps = IBV_ODP_SUPPORT_READ;
  assert_int_equal(rpma_utils_ibv_context_is_odp_capable(fake::context(), &capable), 0);
  assert_int_equal(capable, 0);
  fake::state.device.odp_caps.per_transport_caps.rc_odp_caps |= IBV_ODP_SUPPORT_WRITE;
  assert_int_equal(rpma_utils_ibv_context_is_odp_capable(fake::context(), &capable), 0);
  assert_int_equal(capable, 1);
}

int set_up_iwarp(void**) {
  fake::reset();
  fake::context()->device->transport_type = IBV_TRANSPORT_IWARP;
  o.make();
  return 0;
}

void on_iwarp_what_is_read_to_can_be_written(void**) {
  assert_int_equal(region_for(RPMA_MR_USAGE_READ_DST).access, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  fake::state.accesses.clear();
  o.connect();
  assert_int_equal(fake::state.accesses.back(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  peer_sends(21, 0);
  is_read(flush(RPMA_FLUSH_TYPE_VISIBILITY), kAddress + 8, 8);
}

}  // namespace

#define WITH(test, set_up) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main() {
  const CMUnitTest tests[] = {
      WITH(without_native_operations_they_are_a_write_and_a_read, set_up_plain),
      WITH(between_two_that_can_they_are_native, set_up_native),
      WITH(a_native_atomic_write_waits_for_flushes_by_read, set_up_native),
      WITH(with_a_peer_that_has_not_said_it_can_nothing_is_native, set_up_native),
      WITH(each_operation_is_decided_for_itself, set_up_native),
      WITH(an_odd_address_is_written_inline, set_up_native),
      WITH(a_library_without_flush_still_writes_atomically, set_up_old_library),
      WITH(without_native_operations_the_extended_call_is_not_made, set_up_without_extended),
      WITH(a_flush_by_read_never_leaves_the_region, set_up_native),
      WITH(a_flush_by_read_does_not_look_at_the_length, set_up_native),
      WITH(a_flush_from_outside_of_the_region_is_refused, set_up_native),
      WITH(a_native_flush_beyond_the_region_is_refused, set_up_native),
      WITH(a_flush_of_four_gibibytes_is_a_read, set_up_native),
      WITH(neither_type_of_flush_implies_the_other, set_up_native),
      WITH(persistence_takes_the_peers_word, set_up_native),
      WITH(what_cannot_be_posted_is_a_providers_error, set_up_native),
      WITH(access_follows_the_usage, set_up_plain),
      WITH(a_region_to_be_flushed_can_be_read_too, set_up_native),
      WITH(ordinary_memory_can_be_registered_for_persistence, set_up_native),
      WITH(memory_that_cannot_be_pinned_is_paged_on_demand, set_up_odp),
      WITH(paged_on_demand_it_is_native_only_where_the_device_can, set_up_odp),
      WITH(another_refusal_is_not_tried_again, set_up_odp),
      WITH(odp_is_asked_of_the_device, set_up_plain),
      WITH(on_iwarp_what_is_read_to_can_be_written, set_up_iwarp),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
