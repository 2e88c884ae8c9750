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

#include <algorithm>
#include <thread>

#include "tests/unit/provider/cmocka.hpp"

using dapple::soft::Addresses;
using dapple::soft::EntryKind;
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

constexpr Addresses kAddresses = {{1, 2, 3}, {4, 5, 6}};
constexpr Addresses kOtherSource = {{1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, {4, 5, 6}};
constexpr Addresses kOtherDestination = {{1, 2, 3}, {4, 5, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
constexpr size_t kLine = 64;

struct Ring {
  RingMemory memory;
  OwnedFd file;
  RingWriter writer{memory};
  RingReader reader{memory};
  RingPacket packet = {};

  Ring() { assert_int_equal(memory.create(file), 0); }

  // As part of some packets that are published together.
  bool add(size_t size, uint8_t value, const Addresses& addresses = kAddresses, EntryKind kind = EntryKind::kPacket) {
    std::byte* to = writer.reserve(size, addresses, kind);
    if (to == nullptr) return false;
    memset(to, value, size);
    writer.commit();
    return true;
  }
  bool write(size_t size, uint8_t value, const Addresses& addresses = kAddresses) {
    const bool added = add(size, value, addresses);
    writer.publish();
    return added;
  }
  // As a packet whose bytes turn out to be missing.
  void abandon(size_t size, const Addresses& addresses = kAddresses) {
    std::byte* to = writer.reserve(size, addresses);
    assert_non_null(to);
    memset(to, 1, size);
  }
  bool write_one(size_t size, uint8_t value, const Addresses& addresses = kAddresses) {
    std::byte* to = writer.reserve(size, addresses);
    if (to == nullptr) return false;
    memset(to, value, size);
    writer.publish_one();
    return true;
  }
  void expect(size_t size, uint8_t value, const Addresses& addresses = kAddresses) {
    assert_true(reader.next(packet) == Next::kPacket);
    assert_int_equal(packet.bytes.size(), size);
    assert_true(all_are(value));
    assert_memory_equal(packet.addresses, &addresses, sizeof addresses);
  }
  bool all_are(uint8_t value) const {
    for (size_t i = 0; i < packet.bytes.size(); i++) {
      if (packet.bytes[i] != std::byte{value}) return false;
    }
    return true;
  }
  // As a writer that follows no rules.
  void overwrite(size_t place, const RingEntry& entry) const { memcpy(memory.data() + place, &entry, sizeof entry); }
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
  ring.expect(20, 7);
  assert_true(ring.reader.next(ring.packet) == Next::kNothing);
}

void next__addresses_change__those_of_each_packet(void**) {
  Ring ring;
  RingPacket peeked;
  assert_true(ring.write(20, 1) && ring.write(20, 2) && ring.write(20, 3, kOtherSource));
  assert_true(ring.write(20, 4, kOtherSource) && ring.write(20, 5) && ring.write(20, 6, kOtherDestination));
  ring.expect(20, 1);
  ring.expect(20, 2);
  assert_true(ring.reader.peek(peeked) == Next::kPacket);
  assert_memory_equal(peeked.addresses, &kOtherSource, sizeof kOtherSource);
  ring.expect(20, 3, kOtherSource);
  assert_true(ring.reader.peek(peeked) == Next::kPacket);
  assert_memory_equal(peeked.addresses, &kOtherSource, sizeof kOtherSource);
  ring.expect(20, 4, kOtherSource);
  ring.expect(20, 5);
  ring.expect(20, 6, kOtherDestination);
}

void next__reference_between_packets__each_has_its_kind(void**) {
  Ring ring;
  assert_true(ring.add(20, 1) && ring.add(20, 2, kAddresses, EntryKind::kReference) && ring.add(20, 3));
  ring.writer.publish();
  ring.expect(20, 1);
  assert_true(ring.packet.kind == EntryKind::kPacket);
  ring.expect(20, 2);
  assert_true(ring.packet.kind == EntryKind::kReference);
  ring.expect(20, 3);
  assert_true(ring.packet.kind == EntryKind::kPacket);
}

// The room of an abandoned packet goes to the next one, with its addresses.
void reserve__never_committed__addresses_of_the_next_packet(void**) {
  Ring ring;
  assert_true(ring.write(20, 1));
  ring.abandon(20, kOtherSource);
  assert_true(ring.write(20, 2, kOtherSource));
  ring.abandon(4000);
  assert_true(ring.write(20, 3, kOtherSource));
  ring.expect(20, 1);
  ring.expect(20, 2, kOtherSource);
  ring.expect(20, 3, kOtherSource);
}

// Also if it would not have fitted before the end of the ring.
void reserve__never_committed_at_the_end__nothing_to_read(void**) {
  for (const bool behind_another : {false, true}) {
    Ring ring;
    for (size_t position = 0; kRingBytes - position > kLongestRingPacket; position += 4032) {
      assert_true(ring.write(4000, 1));
      ring.expect(4000, 1);
      (void)ring.reader.release();
    }
    if (behind_another) assert_true(ring.add(20, 2));
    ring.abandon(kLongestRingPacket);
    ring.writer.publish();
    if (behind_another) ring.expect(20, 2);
    assert_true(ring.reader.next(ring.packet) == Next::kNothing);
    assert_true(ring.reader.empty());
    assert_true(ring.write(20, 3));
    ring.expect(20, 3);
    assert_true(ring.packet.bytes.data() < ring.memory.data() + kLine);
  }
}

// A packet that ends where the ring ends needs no wrap.
void reserve__packet_that_fits_before_the_end__no_wrap(void**) {
  Ring ring;
  constexpr size_t kBytes = 4096;
  constexpr size_t kSize = kBytes - sizeof(RingEntry);
  for (size_t position = 0; position < kRingBytes; position += kBytes) {
    const size_t size = position == 0 ? kSize - sizeof(Addresses) : kSize;
    assert_true(ring.write_one(size, 1));
    ring.expect(size, 1);
    assert_ptr_equal(ring.packet.bytes.data() + size, ring.memory.data() + position + kBytes);
    (void)ring.reader.release();
  }
  assert_true(ring.write_one(kSize, 2));
  ring.expect(kSize, 2);
  assert_ptr_equal(ring.packet.bytes.data(), ring.memory.data() + sizeof(RingEntry));
}

void commit__short_packets__nothing_to_read_until_published(void**) {
  Ring ring;
  assert_true(ring.add(12, 1) && ring.add(20, 2));
  assert_true(ring.reader.empty());
  assert_true(ring.reader.next(ring.packet) == Next::kNothing);
  ring.writer.publish();
  ring.expect(12, 1);
  ring.expect(20, 2);
  assert_true(ring.reader.empty());
}

void commit__long_packets__published_at_once(void**) {
  Ring ring;
  assert_true(ring.add(12, 1) && ring.add(4096, 2));
  ring.expect(12, 1);
  ring.expect(4096, 2);
  assert_true(ring.reader.empty());
}

// A writer that writes to a line that its reader looks at would wait for the line.
void publish__two_short_packets__one_line_that_no_other_packet_shares(void**) {
  Ring ring;
  const auto line = [&](const std::byte* at) { return (at - ring.memory.data()) / static_cast<ptrdiff_t>(kLine); };
  assert_true(ring.write(20, 1));
  ring.expect(20, 1);
  for (int i = 0; i < 10; i++) {
    assert_true(ring.add(16, 2) && ring.add(20, 3));
    ring.writer.publish();
    ring.expect(16, 2);
    const ptrdiff_t first = line(ring.packet.bytes.data());
    ring.expect(20, 3);
    assert_int_equal(line(ring.packet.bytes.data() + 19), first);
    assert_true(ring.write(20, 4));
    ring.expect(20, 4);
    assert_int_equal(line(ring.packet.bytes.data()), first + 1);
  }
}

// Of several at a time, around the end of the ring, too.
void publish__many_laps_of_groups__every_packet_in_order(void**) {
  Ring ring;
  size_t written = 0, read = 0;
  const auto size_of = [](size_t number) { return 1 + number * number % 211; };
  const auto addresses_of = [](size_t number) { return number % 5 == 0 ? kOtherDestination : kAddresses; };
  while (read < 20'000) {
    const size_t most = 1 + written % 17;
    for (size_t i = 0; i < most; i++, written++)
      assert_true(ring.add(size_of(written), static_cast<uint8_t>(written), addresses_of(written)));
    ring.writer.publish();
    for (; read < written; read++) ring.expect(size_of(read), static_cast<uint8_t>(read), addresses_of(read));
    assert_true(ring.reader.empty());
    (void)ring.reader.release();
  }
}

// Alone and between groups, around the end of the ring, too. Each begins a line.
void publish_one__many_laps__every_packet_in_order(void**) {
  Ring ring;
  const auto size_of = [](size_t number) { return 1 + number * number % 1511; };
  const auto addresses_of = [](size_t number) { return number % 5 == 0 ? kOtherDestination : kAddresses; };
  size_t before_the_end = 0;
  for (size_t number = 0; number < 20'000; number++) {
    const auto value = static_cast<uint8_t>(number);
    const Addresses addresses = addresses_of(number);
    const bool in_group = number % 3 == 0;
    if (in_group) assert_true(ring.add(30, 1));
    if (in_group) ring.writer.publish();
    assert_true(ring.write_one(size_of(number), value, addresses));
    if (in_group) ring.expect(30, 1);
    const std::byte* last = ring.packet.bytes.data();
    ring.expect(size_of(number), value, addresses);
    if (ring.packet.bytes.data() < last) before_the_end++;
    const size_t place = static_cast<size_t>(ring.packet.bytes.data() - ring.memory.data());
    assert_in_range(place % kLine, sizeof(RingEntry), sizeof(RingEntry) + sizeof(Addresses));
    assert_true(ring.reader.empty());
    (void)ring.reader.release();
  }
  assert_true(before_the_end > 10);
}

void publish_one__after_an_abandoned_packet__only_it(void**) {
  Ring ring;
  ring.abandon(4000, kOtherSource);
  for (uint8_t value = 1; value < 100; value++) {
    assert_true(ring.write_one(20, value));
    ring.expect(20, value);
    assert_true(ring.reader.empty());
  }
}

// The group ends with the last packet that the ring has taken. From all places, and with all sizes.
void publish__group_that_fills_the_ring__those_that_it_took(void**) {
  Ring ring;
  for (size_t size = 1; size <= 300; size++) {
    size_t written = 0;
    while (ring.add(size, static_cast<uint8_t>(written))) written++;
    ring.writer.publish();
    assert_true(ring.writer.wait_for_room());
    for (size_t i = 0; i < written; i++) ring.expect(size, static_cast<uint8_t>(i));
    assert_true(ring.reader.empty());
    assert_true(ring.reader.release());
    assert_false(ring.writer.wait_for_room());
  }
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
  ring.abandon(100);
  assert_true(ring.reader.next(ring.packet) == Next::kNothing);
}

void reserve__full_ring__null_until_the_reader_releases(void**) {
  Ring ring;
  size_t count = 0;
  while (ring.write(1000, static_cast<uint8_t>(count))) count++;
  assert_in_range(count, kRingBytes / 1100, kRingBytes / 1000);
  assert_null(ring.writer.reserve(1000, kAddresses));
  assert_true(ring.reader.next(ring.packet) == Next::kPacket);
  static_cast<void>(ring.reader.release());
  // The reader does not report small amounts.
  assert_null(ring.writer.reserve(1000, kAddresses));
  for (size_t i = 1; i < count; i++) {
    assert_true(ring.reader.next(ring.packet) == Next::kPacket);
    assert_true(ring.all_are(static_cast<uint8_t>(i)));
  }
  static_cast<void>(ring.reader.release());
  assert_non_null(ring.writer.reserve(1000, kAddresses));
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
  constexpr uint32_t kPatience = 1'000'000'000;
  const auto size_of = [](uint32_t number) { return 8 + number % 300; };
  const auto addresses_of = [](uint32_t number) { return number % 7 == 0 ? kOtherSource : kAddresses; };
  std::thread writer([&] {
    for (uint32_t i = 0; i < kPackets;) {
      const uint32_t group = i % 9;
      if (group == 0 && ring.write_one(size_of(i), static_cast<uint8_t>(i), addresses_of(i))) i++;
      for (uint32_t j = 0; j < group && i < kPackets; j++) {
        if (!ring.add(size_of(i), static_cast<uint8_t>(i), addresses_of(i))) break;
        i++;
      }
      ring.writer.publish();
    }
  });
  uint32_t bad = 0, received = 0;
  for (uint32_t tries = 0; received < kPackets && tries < kPatience; tries++) {
    const Next next = ring.reader.next(ring.packet);
    if (next == Next::kBroken) break;
    if (next == Next::kNothing) continue;
    const Addresses addresses = addresses_of(received);
    const bool good = ring.packet.bytes.size() == size_of(received) && ring.all_are(static_cast<uint8_t>(received)) &&
                      memcmp(ring.packet.addresses, &addresses, sizeof addresses) == 0;
    if (!good) bad++;
    received++;
    static_cast<void>(ring.reader.release());
  }
  assert_int_equal(received, kPackets);
  writer.join();
  assert_int_equal(bad, 0);
  assert_true(ring.reader.empty());
}

void next__acknowledgement__comes_with_its_packet_only(void**) {
  Ring ring;
  constexpr dapple::roce::Acknowledgement kAcknowledgement = {.psn = 0xABCDEF, .syndrome = 0x1F};
  for (const Addresses& addresses : {kAddresses, kOtherSource, kOtherSource}) {
    std::byte* to = ring.writer.reserve(24, addresses, EntryKind::kPacket, &kAcknowledgement);
    assert_non_null(to);
    memset(to, 5, 24);
    ring.writer.commit();
    assert_true(ring.write(24, 6, addresses));
    ring.expect(24, 5, addresses);
    assert_true(ring.packet.has_acknowledgement);
    assert_int_equal(ring.packet.acknowledgement.psn, kAcknowledgement.psn);
    assert_int_equal(ring.packet.acknowledgement.syndrome, kAcknowledgement.syndrome);
    ring.expect(24, 6, addresses);
    assert_false(ring.packet.has_acknowledgement);
  }
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

constexpr uint16_t kMuchSpace = 600;

void next__size_beyond_the_limit__broken(void**) {
  Ring ring;
  ring.overwrite(0, {kLongestRingPacket + 1, EntryKind::kPacket, 0, kMuchSpace});
  assert_true(ring.reader.next(ring.packet) == Next::kBroken);
  ring.overwrite(0, {UINT32_MAX, EntryKind::kPacket, 0, UINT16_MAX});
  assert_true(ring.reader.next(ring.packet) == Next::kBroken);
  ring.overwrite(0, {kLongestRingPacket, EntryKind::kPacket, 0, kMuchSpace});
  assert_true(ring.reader.next(ring.packet) == Next::kPacket);
}

void next__packet_beyond_its_space__broken(void**) {
  Ring ring;
  ring.overwrite(0, {24, EntryKind::kPacket, 0, 0});
  assert_true(ring.reader.next(ring.packet) == Next::kBroken);
  ring.overwrite(0, {24, EntryKind::kPacket, 0, 3});
  assert_true(ring.reader.next(ring.packet) == Next::kBroken);
  // The addresses take four units.
  ring.overwrite(0, {24, EntryKind::kPacket, 1, 7});
  assert_true(ring.reader.next(ring.packet) == Next::kBroken);
  // The acknowledgement takes another one.
  ring.overwrite(0, {24, EntryKind::kPacket, 0xFF, 8});
  assert_true(ring.reader.next(ring.packet) == Next::kBroken);
  ring.overwrite(0, {24, EntryKind::kPacket, 0xFF, 9});
  assert_true(ring.reader.next(ring.packet) == Next::kPacket);
}

void next__first_packet_without_addresses__zeros(void**) {
  Ring ring;
  constexpr Addresses kZeros = {};
  ring.overwrite(0, {1, EntryKind::kPacket, 0, 2});
  ring.expect(1, 0, kZeros);
}

void next__packet_beyond_the_end__broken(void**) {
  Ring ring;
  const size_t left = 4096;
  size_t position = 0;
  while (kRingBytes - position > left) {
    const size_t space = std::min<size_t>(kRingBytes - position - left, kMuchSpace * sizeof(RingEntry));
    ring.overwrite(position, {8, EntryKind::kPacket, 0, static_cast<uint16_t>(space / sizeof(RingEntry))});
    assert_true(ring.reader.next(ring.packet) == Next::kPacket);
    position += space;
  }
  constexpr auto kUnits = static_cast<uint16_t>(left / sizeof(RingEntry));
  ring.overwrite(position, {kLongestRingPacket, EntryKind::kPacket, 0, kMuchSpace});
  assert_true(ring.reader.next(ring.packet) == Next::kBroken);
  ring.overwrite(position, {8, EntryKind::kPacket, 0, kUnits + 1});
  assert_true(ring.reader.next(ring.packet) == Next::kBroken);
  ring.overwrite(position, {8, EntryKind::kPacket, 0, kUnits});
  assert_true(ring.reader.next(ring.packet) == Next::kPacket);
}

void next__wrap_behind_a_wrap__broken(void**) {
  Ring ring;
  ring.overwrite(0, {8, EntryKind::kPacket, 0, 2});
  ring.overwrite(16, {8, EntryKind::kWrap, 0, 1});
  assert_true(ring.reader.next(ring.packet) == Next::kPacket);
  ring.overwrite(0, {8, EntryKind::kWrap, 0, 1});
  assert_true(ring.reader.next(ring.packet) == Next::kBroken);
}

// A line that begins in a packet may begin the entry of a later lap, and the other way round.
void next__lines_of_all_kinds__nothing_behind_the_last_packet(void**) {
  Ring ring;
  for (size_t number = 0; number < 30'000; number++) {
    const auto value = static_cast<uint8_t>(1 + number % 255);
    const size_t size = number / 700 % 2 == 0 ? 20 : 1 + number * number % 700;
    if (number % 11 == 3) ring.abandon(1 + number * number % 3000);
    assert_true(number % 3 == 0 ? ring.write_one(size, value) : ring.write(size, value));
    ring.expect(size, value);
    assert_true(ring.reader.next(ring.packet) == Next::kNothing);
    (void)ring.reader.release();
  }
}

void reserve__reader_that_lies__null(void**) {
  Ring ring;
  while (ring.write(4000, 1)) {
  }
  // A hostile reader claims to have read what was not written, or takes back what it released.
  ring.memory.control().read.store(UINT64_MAX);
  assert_null(ring.writer.reserve(4000, kAddresses));
  ring.memory.control().read.store(kRingBytes / 2);
  assert_true(ring.write(8, 1));
  while (ring.write(4000, 1)) {
  }
  ring.memory.control().read.store(0);
  assert_null(ring.writer.reserve(4000, kAddresses));
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
      cmocka_unit_test(next__addresses_change__those_of_each_packet),
      cmocka_unit_test(next__reference_between_packets__each_has_its_kind),
      cmocka_unit_test(reserve__never_committed__addresses_of_the_next_packet),
      cmocka_unit_test(reserve__never_committed_at_the_end__nothing_to_read),
      cmocka_unit_test(reserve__packet_that_fits_before_the_end__no_wrap),
      cmocka_unit_test(commit__short_packets__nothing_to_read_until_published),
      cmocka_unit_test(commit__long_packets__published_at_once),
      cmocka_unit_test(publish__two_short_packets__one_line_that_no_other_packet_shares),
      cmocka_unit_test(publish__many_laps_of_groups__every_packet_in_order),
      cmocka_unit_test(publish_one__many_laps__every_packet_in_order),
      cmocka_unit_test(publish_one__after_an_abandoned_packet__only_it),
      cmocka_unit_test(publish__group_that_fills_the_ring__those_that_it_took),
      cmocka_unit_test(peek__a_packet__stays_the_next_one),
      cmocka_unit_test(reserve__not_committed__nothing_to_read),
      cmocka_unit_test(reserve__full_ring__null_until_the_reader_releases),
      cmocka_unit_test(next__many_laps_of_all_sizes__every_packet_in_order),
      cmocka_unit_test(two_threads__no_packet_lost_or_changed),
      cmocka_unit_test(next__acknowledgement__comes_with_its_packet_only),
      cmocka_unit_test(must_wake__reader_sleeps__once),
      cmocka_unit_test(wait_for_room__full_ring__release_tells_once),
      cmocka_unit_test(next__size_beyond_the_limit__broken),
      cmocka_unit_test(next__packet_beyond_its_space__broken),
      cmocka_unit_test(next__first_packet_without_addresses__zeros),
      cmocka_unit_test(next__packet_beyond_the_end__broken),
      cmocka_unit_test(next__wrap_behind_a_wrap__broken),
      cmocka_unit_test(next__lines_of_all_kinds__nothing_behind_the_last_packet),
      cmocka_unit_test(reserve__reader_that_lies__null),
      cmocka_unit_test(map__file_that_is_no_ring__einval),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
