// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Both ends of a ring use one mapping, so that ThreadSanitizer sees what orders their accesses.
#include "provider/soft/same_host/ring.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <thread>

#include "tests/unit/provider/cmocka.hpp"

using dapple::soft::kLongestRingPacket;
using dapple::soft::kRingBytes;
using dapple::soft::OwnedFd;
using dapple::soft::RingEntry;
using dapple::soft::RingMemory;
using dapple::soft::RingPacket;
using dapple::soft::RingReader;
using dapple::soft::RingWriter;
using Next = RingReader::Next;

namespace {

constexpr uint8_t kSource[16] = {1, 2, 3};
constexpr uint8_t kDestination[16] = {4, 5, 6};

struct Ring {
  RingMemory memory;
  OwnedFd file;
  RingWriter writer{memory};
  RingReader reader{memory};
  RingPacket packet = {};

  Ring() { assert_int_equal(memory.create(file), 0); }

  bool write(size_t size, uint8_t value) {
    std::byte* to = writer.reserve(size);
    if (to == nullptr) return false;
    memset(to, value, size);
    writer.commit(kSource, kDestination);
    return true;
  }
  bool all_are(uint8_t value) const {
    for (size_t i = 0; i < packet.bytes.size(); i++) {
      if (packet.bytes[i] != std::byte{value}) return false;
    }
    return true;
  }
  // As a writer that follows no rules.
  void overwrite(size_t place, uint32_t size, uint32_t reserved) {
    const uint32_t words[] = {size, reserved};
    memcpy(memory.data() + place, words, sizeof words);
  }
};

void next__empty_ring__nothing(void**) {
  Ring ring;
  assert_true(ring.reader.empty());
  assert_true(ring.reader.next(ring.packet) == Next::kNothing);
}

void next__a_packet__same_bytes_and_addresses(void**) {
  Ring ring;
  assert_true(ring.write(20, 7));
  assert_false(ring.reader.empty());
  assert_true(ring.reader.next(ring.packet) == Next::kPacket);
  assert_int_equal(ring.packet.bytes.size(), 20);
  assert_true(ring.all_are(7));
  assert_memory_equal(ring.packet.source, kSource, 16);
  assert_memory_equal(ring.packet.destination, kDestination, 16);
  assert_true(ring.reader.next(ring.packet) == Next::kNothing);
}

// Around the end of the ring, too.
void peek__a_packet__stays_the_next_one(void**) {
  Ring ring;
  RingPacket peeked;
  assert_true(ring.reader.peek(peeked) == Next::kNothing);
  for (size_t i = 0; i < 100; i++) {
    assert_true(ring.write(4000, static_cast<uint8_t>(i)));
    assert_true(ring.reader.peek(peeked) == Next::kPacket);
    assert_true(ring.reader.next(ring.packet) == Next::kPacket);
    assert_ptr_equal(peeked.bytes.data(), ring.packet.bytes.data());
    assert_true(ring.all_are(static_cast<uint8_t>(i)));
    (void)ring.reader.release();
  }
}

void reserve__not_committed__nothing_to_read(void**) {
  Ring ring;
  assert_non_null(ring.writer.reserve(100));
  assert_true(ring.reader.next(ring.packet) == Next::kNothing);
}

void reserve__full_ring__null_until_the_reader_releases(void**) {
  Ring ring;
  size_t count = 0;
  while (ring.write(1000, static_cast<uint8_t>(count))) count++;
  assert_in_range(count, kRingBytes / 1200, kRingBytes / 1000);
  assert_null(ring.writer.reserve(1000));
  assert_true(ring.reader.next(ring.packet) == Next::kPacket);
  static_cast<void>(ring.reader.release());
  // The reader does not report small amounts.
  assert_null(ring.writer.reserve(1000));
  for (size_t i = 1; i < count; i++) {
    assert_true(ring.reader.next(ring.packet) == Next::kPacket);
    assert_true(ring.all_are(static_cast<uint8_t>(i)));
  }
  static_cast<void>(ring.reader.release());
  assert_non_null(ring.writer.reserve(1000));
}

void next__many_laps_of_all_sizes__every_packet_in_order(void**) {
  Ring ring;
  size_t written = 0, read = 0;
  const auto size_of = [](size_t number) { return 1 + number * 977 % kLongestRingPacket; };
  while (read < 5000) {
    while (ring.write(size_of(written), static_cast<uint8_t>(written))) written++;
    // Some of them stay, so that the ends meet at all places.
    const size_t most = 1 + read % 29;
    for (size_t i = 0; i < most && read < written; i++, read++) {
      assert_true(ring.reader.next(ring.packet) == Next::kPacket);
      assert_int_equal(ring.packet.bytes.size(), size_of(read));
      assert_true(ring.all_are(static_cast<uint8_t>(read)));
    }
    static_cast<void>(ring.reader.release());
  }
}

void two_threads__no_packet_lost_or_changed(void**) {
  Ring ring;
  constexpr uint32_t kPackets = 200'000;
  std::thread writer([&] {
    for (uint32_t i = 0; i < kPackets;) {
      if (ring.write(8 + i % 300, static_cast<uint8_t>(i))) i++;
    }
  });
  uint32_t bad = 0;
  for (uint32_t i = 0; i < kPackets;) {
    const Next next = ring.reader.next(ring.packet);
    if (next == Next::kBroken) break;
    if (next == Next::kNothing) continue;
    if (ring.packet.bytes.size() != 8 + i % 300 || !ring.all_are(static_cast<uint8_t>(i))) bad++;
    i++;
    static_cast<void>(ring.reader.release());
  }
  writer.join();
  assert_int_equal(bad, 0);
  assert_true(ring.reader.empty());
}

void must_wake__reader_sleeps__once(void**) {
  Ring ring;
  assert_true(ring.write(8, 1));
  assert_false(ring.writer.must_wake());
  ring.reader.sleep();
  assert_true(ring.writer.must_wake());
  assert_false(ring.writer.must_wake());
  ring.reader.sleep();
  ring.reader.stay_awake();
  assert_false(ring.writer.must_wake());
}

void wait_for_room__full_ring__release_tells_once(void**) {
  Ring ring;
  assert_false(ring.writer.wait_for_room());
  while (ring.write(1000, 1)) {
  }
  for (int i = 0; i < 10; i++) assert_true(ring.reader.next(ring.packet) == Next::kPacket);
  assert_true(ring.writer.wait_for_room());
  // The amount is too small to report.
  assert_false(ring.reader.release());
  while (ring.reader.next(ring.packet) == Next::kPacket) {
  }
  assert_true(ring.reader.release());
  assert_false(ring.writer.wait_for_room());
}

void next__size_beyond_the_limit__broken(void**) {
  Ring ring;
  ring.overwrite(0, kLongestRingPacket + 1, 0);
  assert_true(ring.reader.next(ring.packet) == Next::kBroken);
  ring.overwrite(0, UINT32_MAX, 0);
  assert_true(ring.reader.next(ring.packet) == Next::kBroken);
}

void next__packet_beyond_the_end__broken(void**) {
  Ring ring;
  // Up to the last lines.
  while (kRingBytes - 4096 > 0 && ring.write(kLongestRingPacket, 1)) {
    assert_true(ring.reader.next(ring.packet) == Next::kPacket);
    static_cast<void>(ring.reader.release());
    static size_t position = 0;
    position += (sizeof(RingEntry) + kLongestRingPacket + 63) / 64 * 64;
    if (kRingBytes - position >= kLongestRingPacket + 64) continue;
    ring.overwrite(position, kLongestRingPacket, 0);
    assert_true(ring.reader.next(ring.packet) == Next::kBroken);
    return;
  }
  fail();
}

void next__nothing_but_wraps__broken(void**) {
  Ring ring;
  ring.overwrite(0, 40, 1);
  assert_true(ring.reader.next(ring.packet) == Next::kBroken);
}

void reserve__reader_that_lies__null(void**) {
  Ring ring;
  while (ring.write(4000, 1)) {
  }
  // A hostile reader claims to have read what was not written, or takes back what it released.
  ring.memory.control().read.store(UINT64_MAX);
  assert_null(ring.writer.reserve(4000));
  ring.memory.control().read.store(kRingBytes / 2);
  assert_non_null(ring.writer.reserve(8));
  ring.writer.commit(kSource, kDestination);
  while (ring.write(4000, 1)) {
  }
  ring.memory.control().read.store(0);
  assert_null(ring.writer.reserve(4000));
}

int map(int file) {
  RingMemory memory;
  return memory.map(file);
}

void map__file_that_is_no_ring__einval(void**) {
  const OwnedFd bare(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  assert_int_equal(map(bare.get()), EINVAL);
  // It could shrink.
  assert_int_equal(fallocate(bare.get(), 0, 0, RingMemory::kFileBytes), 0);
  assert_int_equal(map(bare.get()), EINVAL);
  assert_int_equal(fcntl(bare.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  assert_int_equal(map(bare.get()), 0);
  // It has holes.
  const OwnedFd hollow(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  assert_int_equal(ftruncate(hollow.get(), RingMemory::kFileBytes), 0);
  assert_int_equal(fcntl(hollow.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  assert_int_equal(map(hollow.get()), EINVAL);
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  assert_int_equal(map(ends[0]), EINVAL);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(next__empty_ring__nothing),
      cmocka_unit_test(next__a_packet__same_bytes_and_addresses),
      cmocka_unit_test(peek__a_packet__stays_the_next_one),
      cmocka_unit_test(reserve__not_committed__nothing_to_read),
      cmocka_unit_test(reserve__full_ring__null_until_the_reader_releases),
      cmocka_unit_test(next__many_laps_of_all_sizes__every_packet_in_order),
      cmocka_unit_test(two_threads__no_packet_lost_or_changed),
      cmocka_unit_test(must_wake__reader_sleeps__once),
      cmocka_unit_test(wait_for_room__full_ring__release_tells_once),
      cmocka_unit_test(next__size_beyond_the_limit__broken),
      cmocka_unit_test(next__packet_beyond_the_end__broken),
      cmocka_unit_test(next__nothing_but_wraps__broken),
      cmocka_unit_test(reserve__reader_that_lies__null),
      cmocka_unit_test(map__file_that_is_no_ring__einval),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
