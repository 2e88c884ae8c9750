// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Descriptors, byte by byte, as the original writes and reads them.
#include <cstring>
#include <initializer_list>

#include "rpma/memory/descriptor.hpp"
#include "tests/unit/rpma/objects.hpp"

namespace {

using dapple::rpma::Descriptor;

const uint8_t kWire[] = {0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0xa8, 0xa7, 0xa6, 0xa5,
                         0xa4, 0xa3, 0xa2, 0xa1, 0xef, 0xbe, 0xad, 0xde, 0x28, 0xd5, 0xff, 0xff};

int set_up(void**) {
  fake::reset();
  return rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
}

void a_region_is_written_as_the_original_writes_it(void**) {
  const Descriptor region = {0x1122334455667788, 0xa1a2a3a4a5a6a7a8, 0xdeadbeef, 0x28, 5};
  uint8_t bytes[22];
  dapple::rpma::encode(region, bytes);
  assert_memory_equal(bytes, kWire, sizeof bytes);
}

void a_region_is_read_with_and_without_our_byte(void**) {
  for (size_t size = 21; size <= sizeof kWire; ++size) {
    const auto region = dapple::rpma::decode(kWire, size);
    assert_true(region.has_value());
    assert_true(region->address == 0x1122334455667788 && region->size == 0xa1a2a3a4a5a6a7a8);
    assert_int_equal(region->rkey, 0xdeadbeef);
    assert_int_equal(region->usage, 0x28);
    assert_int_equal(region->native, size == 21 ? 0 : 5);
  }
}

void whatever_stands_in_our_byte_of_another_is_ignored(void**) {
  uint8_t bytes[22];
  std::memcpy(bytes, kWire, sizeof bytes);
  for (int last = 0; last < 256; ++last) {
    bytes[21] = static_cast<uint8_t>(last);
    assert_int_equal(dapple::rpma::decode(bytes, sizeof bytes)->native, (last & 0xf0) == 0xd0 ? last & 7 : 0);
  }
}

void what_is_registered_comes_back(void**) {
  Objects o;
  uint8_t bytes[22];
  size_t size = 0;
  int types = 0;
  rpma_mr_remote* remote = nullptr;
  assert_int_equal(rpma_peer_new(fake::context(), &o.peer), 0);
  assert_int_equal(rpma_mr_reg(o.peer, o.memory, 100, 0x2d, &o.mr), 0);
  assert_int_equal(rpma_mr_get_descriptor_size(o.mr, &size), 0);
  assert_int_equal(size, 22);
  assert_int_equal(rpma_mr_get_descriptor(o.mr, bytes), 0);
  assert_int_equal(bytes[20], 0x2d);
  assert_int_equal(rpma_mr_remote_from_descriptor(bytes, size, &remote), 0);
  assert_int_equal(rpma_mr_remote_get_size(remote, &size), 0);
  assert_int_equal(size, 100);
  assert_int_equal(rpma_mr_remote_get_flush_type(remote, &types), 0);
  assert_int_equal(types, RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT);
  assert_int_equal(rpma_mr_remote_delete(&remote), 0);
  o.free();
}

void a_region_beyond_the_last_address_is_none(void**) {
  const struct {
    uint64_t address;
    uint64_t size;
    int result;
  } rows[] = {
      {UINT64_MAX, 1, 0}, {UINT64_MAX - 1, 2, 0},         {UINT64_MAX, 0, 0},
      {0, UINT64_MAX, 0}, {UINT64_MAX, 2, RPMA_E_NOSUPP}, {2, UINT64_MAX, RPMA_E_NOSUPP},
  };
  for (const auto& row : rows) {
    rpma_mr_remote* remote = nullptr;
    uint8_t bytes[22];
    dapple::rpma::encode({row.address, row.size, 1, 1, 0}, bytes);
    assert_int_equal(rpma_mr_remote_from_descriptor(bytes, sizeof bytes, &remote), row.result);
    assert_int_equal(rpma_mr_remote_delete(&remote), 0);
  }
}

void a_peers_configuration_is_one_byte(void**) {
  rpma_peer_cfg* cfg = nullptr;
  size_t size = 0;
  uint8_t bytes[2] = {0xee, 0xee};
  assert_int_equal(rpma_peer_cfg_new(&cfg), 0);
  assert_int_equal(rpma_peer_cfg_get_descriptor_size(cfg, &size), 0);
  assert_int_equal(size, 1);
  for (const bool supported : {false, true}) {
    assert_int_equal(rpma_peer_cfg_set_direct_write_to_pmem(cfg, supported), 0);
    assert_int_equal(rpma_peer_cfg_get_descriptor(cfg, bytes), 0);
    assert_int_equal(bytes[0], supported ? 1 : 0);
    assert_int_equal(bytes[1], 0xee);
  }
  assert_int_equal(rpma_peer_cfg_delete(&cfg), 0);
  for (int value = 0; value < 256; ++value) {
    bool supported = value == 0;
    bytes[0] = static_cast<uint8_t>(value);
    assert_int_equal(rpma_peer_cfg_from_descriptor(bytes, 1 + static_cast<size_t>(value) % 2, &cfg), 0);
    assert_int_equal(rpma_peer_cfg_get_direct_write_to_pmem(cfg, &supported), 0);
    assert_int_equal(supported, value != 0);
    assert_int_equal(rpma_peer_cfg_delete(&cfg), 0);
  }
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(a_region_is_written_as_the_original_writes_it),
      cmocka_unit_test(a_region_is_read_with_and_without_our_byte),
      cmocka_unit_test(whatever_stands_in_our_byte_of_another_is_ignored),
      cmocka_unit_test_setup(what_is_registered_comes_back, set_up),
      cmocka_unit_test_setup(a_region_beyond_the_last_address_is_none, set_up),
      cmocka_unit_test_setup(a_peers_configuration_is_one_byte, set_up),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
