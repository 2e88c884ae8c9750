// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/links/transport_table.hpp"

#include <string.h>

#include <memory>
#include <thread>
#include <vector>

#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;

namespace {

TransportRow to_slot(uint32_t slot, Transport transport = Transport::kSharedMemory, uint32_t ring = 0) {
  TransportRow row;
  row.slot = static_cast<uint16_t>(slot);
  row.transport = transport;
  row.ring = ring;
  return row;
}

std::vector<TransportRow> read_all(const SlotTransports& shared) {
  std::vector<TransportRow> rows;
  TransportRow row;
  for (const SharedTransportRow& from : shared.rows) {
    if (from.read(row)) rows.push_back(row);
  }
  return rows;
}

struct Table {
  std::unique_ptr<SlotTransports> shared = std::make_unique<SlotTransports>();
  TransportTable table;
  Table() { table.open(*shared); }
};

void take__same_key__counts_queue_pairs(void**) {
  Table all;
  const uint32_t place = all.table.take(to_slot(5));
  assert_int_not_equal(place, 0);
  assert_int_equal(all.table.take(to_slot(5)), place);
  assert_int_not_equal(all.table.take(to_slot(6)), place);
  assert_int_not_equal(all.table.take(to_slot(5, Transport::kNoMemory)), place);
  TransportRow other = to_slot(5);
  other.destination[15] = 1;
  assert_int_not_equal(all.table.take(other), place);
  const auto rows = read_all(*all.shared);
  assert_int_equal(rows.size(), 4);
  assert_int_equal(rows[0].queue_pairs, 2);
  assert_int_equal(rows[3].destination[15], 1);
}

void leave__last_queue_pair__row_is_free(void**) {
  Table all;
  const uint32_t one = all.table.take(to_slot(5));
  const uint32_t other = all.table.take(to_slot(6));
  all.table.take(to_slot(5));
  all.table.leave(one);
  assert_int_equal(read_all(*all.shared).size(), 2);
  all.table.leave(one);
  assert_int_equal(read_all(*all.shared).size(), 1);
  assert_int_equal(all.table.take(to_slot(7)), one);
  all.table.leave(one);
  all.table.leave(other);
  all.table.leave(0);
  assert_true(read_all(*all.shared).empty());
}

void take__table_is_full__counted(void**) {
  Table all;
  for (uint32_t i = 0; i < kMaxTransportRows; i++) all.table.take(to_slot(i));
  const uint32_t place = all.table.take(to_slot(kMaxTransportRows));
  const uint32_t again = all.table.take(to_slot(kMaxTransportRows + 1));
  assert_int_equal(all.shared->unlisted_queue_pairs.value(), 2);
  assert_int_equal(read_all(*all.shared).size(), kMaxTransportRows);
  all.table.leave(place);
  all.table.leave(again);
  assert_int_equal(all.shared->unlisted_queue_pairs.value(), 0);
}

void end_ring__rows_of_that_ring_only(void**) {
  Table all;
  all.table.take(to_slot(5, Transport::kSharedMemory, 1));
  all.table.take(to_slot(5, Transport::kSharedMemory, 2));
  all.table.end_ring(1, Transport::kOverwritten);
  all.table.end_ring(1, Transport::kPeerGone);
  const auto rows = read_all(*all.shared);
  assert_true(rows[0].transport == Transport::kOverwritten);
  assert_true(rows[1].transport == Transport::kSharedMemory);
}

void open__rows_of_a_killed_owner__removed(void**) {
  Table all;
  all.table.take(to_slot(5));
  all.table.take(to_slot(6));
  all.table.set_no_rings(Transport::kFaults);
  all.table.add_ring_bytes(7);
  all.table.set_most_ring_bytes(8);
  // Killed in the middle of write().
  memset(static_cast<void*>(&all.shared->rows[1]), 1, sizeof(uint32_t));
  TransportTable next;
  next.open(*all.shared);
  assert_true(read_all(*all.shared).empty());
  assert_true(all.shared->no_rings.load() == Transport::kNone);
  assert_int_equal(all.shared->ring_bytes.value() + all.shared->most_ring_bytes.value(), 0);
  next.take(to_slot(1));
  next.take(to_slot(2));
  assert_int_equal(read_all(*all.shared).size(), 2);
}

// Pages of rows that nobody has used take no memory.
void open__rows_behind_the_end__not_touched(void**) {
  Table all;
  for (uint32_t i = 0; i < 3; i++) all.table.take(to_slot(i));
  assert_int_equal(end_of_rows(*all.shared), 3);
  memset(static_cast<void*>(&all.shared->rows[3]), 1, sizeof all.shared->rows[3]);
  TransportTable next;
  next.open(*all.shared);
  assert_int_equal(end_of_rows(*all.shared), 0);
  unsigned char bytes[sizeof all.shared->rows[3]];
  memcpy(bytes, static_cast<void*>(&all.shared->rows[3]), sizeof bytes);
  for (const unsigned char byte : bytes) assert_int_equal(byte, 1);
}

void end_of_rows__number_of_a_hostile_owner__bounded(void**) {
  Table all;
  all.shared->end.store(UINT32_MAX);
  assert_int_equal(end_of_rows(*all.shared), kMaxTransportRows);
}

void read__row_that_its_writer_left_half__not_there(void**) {
  Table all;
  all.table.take(to_slot(5));
  memset(static_cast<void*>(&all.shared->rows[0]), 1, sizeof(uint32_t));
  assert_true(read_all(*all.shared).empty());
}

void read__while_it_is_written__whole(void**) {
  Table all;
  SharedTransportRow& shared = all.shared->rows[0];
  std::thread writer([&shared] {
    for (uint32_t i = 1; i < 200'000; i++) {
      TransportRow row = to_slot(i, Transport::kSharedMemory, i);
      row.queue_pairs = i;
      shared.write(row);
    }
  });
  TransportRow row;
  bool whole = true;
  do {
    row = {};
    if (shared.read(row)) whole = whole && row.slot == row.ring % 65536 && row.ring == row.queue_pairs;
  } while (row.ring != 199'999);
  writer.join();
  assert_true(whole);
}

void name_of__number_of_another_release__none(void**) {
  assert_string_equal(name_of(static_cast<Transport>(4711)).key, "none");
  assert_string_equal(name_of(Transport::kPeerGone).key, "peer_gone");
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(take__same_key__counts_queue_pairs),
      cmocka_unit_test(leave__last_queue_pair__row_is_free),
      cmocka_unit_test(take__table_is_full__counted),
      cmocka_unit_test(end_ring__rows_of_that_ring_only),
      cmocka_unit_test(open__rows_of_a_killed_owner__removed),
      cmocka_unit_test(open__rows_behind_the_end__not_touched),
      cmocka_unit_test(end_of_rows__number_of_a_hostile_owner__bounded),
      cmocka_unit_test(read__row_that_its_writer_left_half__not_there),
      cmocka_unit_test(read__while_it_is_written__whole),
      cmocka_unit_test(name_of__number_of_another_release__none),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
