// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/memory/memory_table.hpp"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <vector>

#include "provider/soft/locks/heavy_barrier.hpp"
#include "provider/soft/memory/mapped_range.hpp"
#include "provider/soft/memory/on_demand_pages.hpp"
#include "tests/unit/provider-soft/forbidden_membarrier.hpp"
#include "tests/unit/provider-soft/store_noise.hpp"
#include "tests/unit/provider/refused_call.hpp"
#include "tests/unit/provider/rig.hpp"

using namespace dapple::soft;
using namespace dapple::roce;
using dapple::tests::rig_of;

namespace {

constexpr uint32_t kDomain = 7;
constexpr Accessor kOwner = {kDomain, 0x10011};
constexpr Accessor kStranger = {kDomain + 1, 0x10011};
constexpr uint32_t kAllRights = kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic | kWindowBind;
constexpr uint64_t kIova = 0x700000000000;

struct Rig {
  MemoryTable table{0x12345678};
  alignas(64) std::byte memory[256] = {};
  uint32_t key = 0;

  Rig() { key = add(kAllRights); }
  uint32_t add(uint32_t access) {
    uint32_t added = 0;
    const RegionConfig config = {kDomain, memory, sizeof(memory), kIova, access};
    return table.add_region(config, added) == 0 ? added : 0;
  }
};

void write__last_byte_of_the_region_and_none_beyond(void** state) {
  Rig& rig = rig_of<Rig>(state);
  std::byte bytes[sizeof(rig.memory)];
  memset(bytes, 0x5A, sizeof(bytes));
  for (size_t size = 1; size <= sizeof(bytes); ++size) {
    memset(rig.memory, 0, sizeof(rig.memory));
    const uint64_t address = kIova + sizeof(rig.memory) - size;
    assert_int_equal(rig.table.write(kOwner, {rig.key, address, size}, bytes), Fault::kNone);
    for (size_t i = 0; i < sizeof(rig.memory); ++i)
      assert_int_equal(rig.memory[i], i < sizeof(rig.memory) - size ? 0 : 0x5A);
    assert_int_equal(rig.table.write(kOwner, {rig.key, address + 1, size}, bytes), Fault::kAccess);
  }
  assert_int_equal(rig.table.write(kOwner, {rig.key, kIova - 1, 2}, bytes), Fault::kAccess);
  assert_int_equal(rig.table.write(kOwner, {rig.key, UINT64_MAX, 2}, bytes), Fault::kAccess);
  assert_int_equal(rig.table.write(kOwner, {rig.key, kIova + 1, UINT64_MAX}, bytes), Fault::kAccess);
}

void access__without_the_right_is_refused(void** state) {
  Rig& rig = rig_of<Rig>(state);
  std::byte bytes[8] = {};
  uint64_t original = 0;
  const uint32_t local = rig.add(kLocalWrite);
  assert_int_equal(rig.table.write(kOwner, {local, kIova, 8}, bytes), Fault::kAccess);
  assert_int_equal(rig.table.read(kOwner, {local, kIova, 8}, bytes), Fault::kAccess);
  assert_int_equal(rig.table.fetch_add(kOwner, local, kIova, 1, original), Fault::kAccess);
  assert_int_equal(rig.table.atomic_write(kOwner, local, kIova, 1), Fault::kAccess);
  assert_int_equal(rig.table.flush(kOwner, {rig.key, kIova, 8}, 1), Fault::kAccess);
  const uint32_t read_only = rig.add(kRemoteRead);
  const Segment segment = {kIova, 8, read_only};
  assert_int_equal(rig.table.gather(kOwner, {&segment, 1}, 0, bytes, 8), Fault::kNone);
  assert_int_equal(rig.table.scatter(kOwner, {&segment, 1}, 0, bytes, 8), Fault::kAccess);
  assert_int_equal(rig.table.check_local(kOwner, {&segment, 1}, false), Fault::kNone);
  assert_int_equal(rig.table.check_local(kOwner, {&segment, 1}, true), Fault::kAccess);
  // A peer's writes need the local right in addition to theirs.
  assert_int_equal(rig.add(kRemoteWrite), 0);
  assert_int_equal(rig.add(kRemoteAtomic), 0);
}

void access__other_domain_or_key_is_refused(void** state) {
  Rig& rig = rig_of<Rig>(state);
  std::byte bytes[8] = {};
  assert_int_equal(rig.table.read(kStranger, {rig.key, kIova, 8}, bytes), Fault::kAccess);
  assert_int_equal(rig.table.read(kOwner, {rig.key ^ 1, kIova, 8}, bytes), Fault::kAccess);
  assert_int_equal(rig.table.read(kOwner, {rig.key + 0x100, kIova, 8}, bytes), Fault::kAccess);
  assert_int_equal(rig.table.read(kOwner, {0, kIova, 8}, bytes), Fault::kAccess);
  assert_int_equal(rig.table.read(kStranger, {0, 0, 0}, bytes), Fault::kNone);
  assert_int_equal(rig.table.read(kOwner, {rig.key, kIova, 8}, bytes), Fault::kNone);
}

void holder__is_what_a_valid_key_stands_for(void** state) {
  Rig& rig = rig_of<Rig>(state);
  KeyHolder holder;
  assert_false(rig.table.find_holder(0, holder));
  assert_false(rig.table.find_holder(rig.key ^ 1, holder));
  assert_true(rig.table.find_holder(rig.key, holder));
  assert_false(holder.is_window);
  assert_int_equal(holder.start, kIova);
  assert_int_equal(holder.length, sizeof(rig.memory));
  uint32_t key = 0;
  assert_int_equal(rig.table.add_window(kDomain, WindowType::kType1, key), 0);
  assert_false(rig.table.find_holder(key, holder));
  assert_int_equal(rig.table.bind_window(kOwner, {key, key + 1, rig.key, kRemoteRead, kIova + 8, 16}), Fault::kNone);
  assert_true(rig.table.find_holder(key + 1, holder));
  assert_true(holder.is_window);
  assert_int_equal(holder.start, kIova + 8);
  assert_int_equal(holder.length, 16);
  assert_int_equal(holder.access, kRemoteRead);
  assert_int_equal(rig.table.remove_window(key + 1), 0);
  assert_false(rig.table.find_holder(key + 1, holder));
}

void scatter__pieces_land_where_the_segments_say(void** state) {
  Rig& rig = rig_of<Rig>(state);
  const Segment segments[] = {{kIova + 10, 3, rig.key}, {0, 0, 0}, {kIova + 100, 20, rig.key}, {kIova, 5, rig.key}};
  std::byte bytes[28];
  for (size_t i = 0; i < sizeof(bytes); ++i) bytes[i] = std::byte(i + 1);
  assert_int_equal(rig.table.scatter(kOwner, segments, 0, bytes, 10), Fault::kNone);
  assert_int_equal(rig.table.scatter(kOwner, segments, 10, bytes + 10, 18), Fault::kNone);
  std::byte back[28] = {};
  assert_int_equal(rig.table.gather(kOwner, segments, 0, back, 28), Fault::kNone);
  assert_memory_equal(back, bytes, sizeof(bytes));
  assert_int_equal(rig.memory[10], 1);
  assert_int_equal(rig.memory[100], 4);
  assert_int_equal(rig.memory[4], 28);
  assert_int_equal(rig.table.gather(kOwner, segments, 0, back, 29), Fault::kAccess);
}

void atomics__give_the_original_and_ask_for_alignment(void** state) {
  Rig& rig = rig_of<Rig>(state);
  uint64_t original = 0;
  assert_int_equal(rig.table.fetch_add(kOwner, rig.key, kIova + 8, 5, original), Fault::kNone);
  assert_int_equal(original, 0);
  assert_int_equal(rig.table.compare_swap(kOwner, rig.key, kIova + 8, 4, 9, original), Fault::kNone);
  assert_int_equal(original, 5);
  assert_int_equal(rig.table.compare_swap(kOwner, rig.key, kIova + 8, 5, 9, original), Fault::kNone);
  assert_int_equal(original, 5);
  assert_int_equal(rig.table.fetch_add(kOwner, rig.key, kIova + 8, UINT64_MAX, original), Fault::kNone);
  assert_int_equal(original, 9);
  assert_int_equal(rig.table.fetch_add(kOwner, rig.key, kIova + 4, 1, original), Fault::kUnaligned);
  assert_int_equal(rig.table.fetch_add(kOwner, rig.key, kIova + sizeof(rig.memory), 1, original), Fault::kAccess);
  assert_int_equal(rig.table.atomic_write(kOwner, rig.key, kIova + 16, 0x0102030405060708), Fault::kNone);
  uint64_t written = 0;
  memcpy(&written, rig.memory + 16, sizeof(written));
  assert_int_equal(written, 0x0102030405060708);
}

void region__zero_based_rereg_and_removal(void** state) {
  Rig& rig = rig_of<Rig>(state);
  std::byte bytes[8] = {};
  const RegionConfig config = {kDomain, rig.memory + 8, 16, 0, kRemoteRead | kZeroBased};
  assert_int_equal(rig.table.change_region(rig.key, config), 0);
  rig.memory[8] = std::byte{77};
  assert_int_equal(rig.table.read(kOwner, {rig.key, 0, 8}, bytes), Fault::kNone);
  assert_int_equal(bytes[0], 77);
  assert_int_equal(rig.table.read(kOwner, {rig.key, kIova, 8}, bytes), Fault::kAccess);
  assert_int_equal(rig.table.remove_region(rig.key), 0);
  assert_int_equal(rig.table.read(kOwner, {rig.key, 0, 8}, bytes), Fault::kAccess);
  assert_int_equal(rig.table.remove_region(rig.key), EINVAL);
}

void keys__are_never_zero_and_do_not_come_back_soon(void** state) {
  Rig& rig = rig_of<Rig>(state);
  std::vector<uint32_t> keys;
  for (int i = 0; i < 100000; ++i) {
    const uint32_t key = rig.add(kRemoteRead);
    assert_int_equal(rig.table.remove_region(key), 0);
    assert_int_not_equal(key, 0);
    // The tag beside it is random.
    keys.push_back(key >> 8);
  }
  std::sort(keys.begin(), keys.end());
  assert_true(std::adjacent_find(keys.begin(), keys.end()) == keys.end());
}

// Memory use depends on the present regions, not on earlier ones.
void keys__come_from_few_places_as_long_as_few_are_used(void** state) {
  Rig& rig = rig_of<Rig>(state);
  const auto place_of = [](uint32_t key) { return (key >> 8) % kMaxMemoryEntries; };
  for (int i = 0; i < 20000; ++i) {
    const uint32_t key = rig.add(kRemoteRead);
    assert_true(place_of(key) < 4096);
    assert_int_equal(rig.table.remove_region(key), 0);
  }
  std::vector<uint32_t> keys;
  for (int i = 0; i < 20000; ++i) keys.push_back(rig.add(kRemoteRead));
  std::sort(keys.begin(), keys.end(), [&](uint32_t a, uint32_t b) { return place_of(a) < place_of(b); });
  for (size_t i = 1; i < keys.size(); ++i) assert_true(place_of(keys[i]) != place_of(keys[i - 1]));
  assert_true(place_of(keys.back()) < 65536);
  for (const uint32_t key : keys) assert_int_equal(rig.table.remove_region(key), 0);
}

void windows_type_1__bind_move_unbind(void** state) {
  Rig& rig = rig_of<Rig>(state);
  std::byte bytes[8] = {};
  uint32_t key = 0;
  assert_int_equal(rig.table.add_window(kDomain, WindowType::kType1, key), 0);
  assert_int_equal(rig.table.read(kOwner, {key, kIova, 8}, bytes), Fault::kAccess);
  WindowBind bind = {key, key + 1, rig.key, kRemoteRead, kIova + 8, 16};
  assert_int_equal(rig.table.bind_window(kOwner, bind), Fault::kNone);
  assert_int_equal(rig.table.read(kOwner, {key, kIova + 8, 8}, bytes), Fault::kAccess);
  assert_int_equal(rig.table.read(kOwner, {key + 1, kIova + 8, 8}, bytes), Fault::kNone);
  assert_int_equal(rig.table.read(kOwner, {key + 1, kIova + 7, 8}, bytes), Fault::kAccess);
  assert_int_equal(rig.table.write(kOwner, {key + 1, kIova + 8, 8}, bytes), Fault::kAccess);
  // It has no local key.
  const Segment segment = {kIova + 8, 8, key + 1};
  assert_int_equal(rig.table.check_local(kOwner, {&segment, 1}, false), Fault::kAccess);
  assert_int_equal(rig.table.remove_region(rig.key), EBUSY);
  assert_int_equal(rig.table.invalidate_remote(kOwner, key + 1), Fault::kAccess);
  bind = {key + 1, key + 2, rig.key, 0, kIova, 0};
  assert_int_equal(rig.table.bind_window(kOwner, bind), Fault::kNone);
  assert_int_equal(rig.table.read(kOwner, {key + 1, kIova + 8, 8}, bytes), Fault::kAccess);
  assert_int_equal(rig.table.remove_region(rig.key), 0);
  assert_int_equal(rig.table.remove_window(key), 0);
  assert_int_equal(rig.table.remove_window(key), EINVAL);
}

void windows_type_2__belong_to_a_queue_pair_until_invalidated(void** state) {
  Rig& rig = rig_of<Rig>(state);
  std::byte bytes[8] = {};
  uint32_t key = 0;
  assert_int_equal(rig.table.add_window(kDomain, WindowType::kType2, key), 0);
  WindowBind bind = {key, (key & ~0xFFu) | ((key + 1) & 0xFF), rig.key, kRemoteRead, kIova, 16};
  assert_int_equal(rig.table.bind_obstacle(kStranger, bind), BindObstacle::kWindowOfAnotherDomain);
  assert_int_equal(rig.table.bind_window(kStranger, bind), Fault::kAccess);
  assert_int_equal(rig.table.bind_window(kOwner, bind), Fault::kNone);
  const Accessor neighbour = {kDomain, kOwner.qpn + 1};
  assert_int_equal(rig.table.read(kOwner, {bind.new_rkey, kIova, 8}, bytes), Fault::kNone);
  assert_int_equal(rig.table.read(neighbour, {bind.new_rkey, kIova, 8}, bytes), Fault::kAccess);
  assert_int_equal(rig.table.bind_obstacle(kOwner, bind), BindObstacle::kBound);
  assert_int_equal(rig.table.bind_window(kOwner, bind), Fault::kAccess);
  assert_int_equal(rig.table.invalidate_remote(neighbour, bind.new_rkey), Fault::kAccess);
  assert_int_equal(rig.table.invalidate_remote(kOwner, bind.new_rkey), Fault::kNone);
  assert_int_equal(rig.table.invalidate_local(kOwner, bind.new_rkey), Fault::kAccess);
  assert_int_equal(rig.table.read(kOwner, {bind.new_rkey, kIova, 8}, bytes), Fault::kAccess);
  assert_int_equal(rig.table.remove_region(rig.key), 0);
}

// The program chooses the lowest byte of the key alone, and may choose any.
void windows_type_2__every_lowest_byte_of_a_key_works(void** state) {
  Rig& rig = rig_of<Rig>(state);
  std::byte bytes[8] = {};
  uint32_t key = 0;
  assert_int_equal(rig.table.add_window(kDomain, WindowType::kType2, key), 0);
  uint32_t now = key;
  for (const uint32_t index : {key & ~0xFFu, 0u, 0xFFFFFF00u}) {
    // The first choice is the byte of the present key.
    for (uint32_t i = 0; i < 256; ++i) {
      const uint32_t choice = index | ((now + i) & 0xFF);
      assert_int_equal(rig.table.bind_window(kOwner, {now, choice, rig.key, kRemoteRead, kIova, 16}), Fault::kNone);
      now = (key & ~0xFFu) | (choice & 0xFF);
      assert_int_equal(rig.table.read(kOwner, {now, kIova, 8}, bytes), Fault::kNone);
      assert_int_equal(rig.table.read(kOwner, {now ^ 1, kIova, 8}, bytes), Fault::kAccess);
      assert_int_equal(rig.table.invalidate_local(kOwner, now), Fault::kNone);
    }
  }
  assert_int_equal(rig.table.remove_window(now), 0);
}

void bind__what_is_not_possible_is_named(void** state) {
  Rig& rig = rig_of<Rig>(state);
  uint32_t key = 0;
  assert_int_equal(rig.table.add_window(kDomain, WindowType::kType1, key), 0);
  const auto obstacle = [&](const WindowBind& bind) { return rig.table.bind_obstacle(kOwner, bind); };
  WindowBind bind = {key, key + 1, rig.add(kLocalWrite), kRemoteRead, kIova, 8};
  assert_int_equal(obstacle(bind), BindObstacle::kRegionWithoutBinding);
  bind.region_lkey = rig.add(kWindowBind);
  assert_int_equal(obstacle(bind), BindObstacle::kNone);
  bind.access = kRemoteWrite;
  assert_int_equal(obstacle(bind), BindObstacle::kRegionWithoutWriting);
  bind.region_lkey = rig.key;
  assert_int_equal(obstacle(bind), BindObstacle::kNone);
  bind.access = kRemoteWrite | kLocalWrite;
  assert_int_equal(obstacle(bind), BindObstacle::kNone);
  bind.access = kRemoteWrite | kWindowBind;
  assert_int_equal(obstacle(bind), BindObstacle::kRights);
  bind.access = kRemoteWrite | kZeroBased;
  assert_int_equal(obstacle(bind), BindObstacle::kZeroBased);
  bind.access = kRemoteWrite;
  bind.length = sizeof(rig.memory) + 1;
  assert_int_equal(obstacle(bind), BindObstacle::kOutside);
  bind.region_lkey = key;
  assert_int_equal(obstacle(bind), BindObstacle::kNoRegion);
  bind.window_rkey = rig.key;
  assert_int_equal(obstacle(bind), BindObstacle::kNoWindow);
  assert_int_equal(rig.table.add_window(kDomain, WindowType::kType2, key), 0);
  assert_int_equal(obstacle({key, key, rig.key, kRemoteRead, kIova, 0}), BindObstacle::kNoBytes);
}

struct Writer {
  Rig* rig = nullptr;
  std::atomic<uint32_t> key{0};
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> writes{0};
  StoreNoise noise;
};

void* write_without_end(void* argument) {
  auto* writer = static_cast<Writer*>(argument);
  std::byte bytes[sizeof(writer->rig->memory)];
  memset(bytes, 1, sizeof(bytes));
  while (!writer->stop) {
    writer->noise.make();
    if (writer->rig->table.write(kOwner, {writer->key, kIova, sizeof(bytes)}, bytes) == Fault::kNone) writer->writes++;
  }
  return nullptr;
}

// Revokes the region while the other thread writes to it. Returns what went wrong, or null. No assert may leave this
// function, because the thread uses the caller's objects.
const char* revoke_while_written(Rig& rig, Writer& writer, bool removes) {
  const RegionConfig config = {kDomain, rig.memory, sizeof(rig.memory), kIova, kAllRights};
  const RegionConfig elsewhere = {kDomain, rig.memory, 0, 0, kAllRights};
  const uint64_t writes = writer.writes;
  while (writer.writes == writes) sched_yield();
  writer.noise.make();
  if ((removes ? rig.table.remove_region(rig.key) : rig.table.change_region(rig.key, elsewhere)) != 0)
    return "the region is not revoked";
  memset(rig.memory, 0, sizeof(rig.memory));
  for (int spin = 0; spin < 100; ++spin) {
    for (const volatile std::byte& byte : rig.memory) {
      if (byte != std::byte{0}) return removes ? "a write after remove_region()" : "a write after change_region()";
    }
  }
  if (!removes) return rig.table.change_region(rig.key, config) == 0 ? nullptr : "the region does not come back";
  writer.key = rig.key = rig.add(kAllRights);
  return rig.key != 0 ? nullptr : "no new region";
}

void revoke__no_write_lands_afterwards(void** state) {
  prepare_heavy_barriers();
  Rig& rig = rig_of<Rig>(state);
  Writer writer;
  writer.rig = &rig;
  writer.key = rig.key;
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, nullptr, write_without_end, &writer), 0);
  const char* problem = nullptr;
  for (int i = 0; i < 2000 && problem == nullptr; ++i) problem = revoke_while_written(rig, writer, i % 2 != 0);
  writer.stop = true;
  pthread_join(thread, nullptr);
  if (problem != nullptr) fail_msg("%s", problem);
}

void probe__holes_and_rights_are_seen(void**) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  auto* memory =
      static_cast<char*>(mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  assert_true(memory != MAP_FAILED);
  assert_int_equal(probe_mapped_range(memory, 4 * page, true), 0);
  assert_int_equal(probe_mapped_range(memory + 1, 4 * page - 1, true), 0);
  assert_int_equal(mprotect(memory + 3 * page, page, PROT_READ), 0);
  assert_int_equal(probe_mapped_range(memory, 4 * page, true), EFAULT);
  assert_int_equal(probe_mapped_range(memory, 4 * page, false), 0);
  assert_int_equal(munmap(memory + page, page), 0);
  assert_int_equal(probe_mapped_range(memory, 4 * page, false), EFAULT);
  assert_int_equal(probe_mapped_range(memory, page, false), 0);
  assert_int_equal(probe_mapped_range(nullptr, 0, true), 0);
  assert_int_equal(probe_mapped_range(memory, SIZE_MAX, false), EINVAL);
  assert_int_equal(probe_mapped_range(memory, size_t{1} << 62, false), EINVAL);
  munmap(memory, 4 * page);
}

void null_region__reads_give_zeros_and_writes_are_dropped(void** state) {
  Rig& rig = rig_of<Rig>(state);
  uint32_t key = 0;
  const RegionConfig config = {
      .domain = kDomain, .length = UINT64_MAX, .access = kLocalWrite, .kind = RegionKind::kNull};
  assert_int_equal(rig.table.add_region(config, key), 0);
  std::vector<std::byte> bytes(200'000, std::byte{0x5A});
  // Before and behind a piece of real memory, at any address.
  memset(rig.memory, 0x77, 100);
  const Segment list[] = {{0, 150'000, key}, {kIova, 100, rig.key}, {UINT64_MAX - 60'000, 49'900, key}};
  assert_int_equal(rig.table.check_local(kOwner, list, true), Fault::kNone);
  assert_int_equal(rig.table.scatter(kOwner, list, 0, bytes.data(), bytes.size()), Fault::kNone);
  for (size_t i = 0; i < 100; ++i) assert_int_equal(rig.memory[i], 0x5A);
  memset(rig.memory, 0x77, 100);
  assert_int_equal(rig.table.gather(kOwner, list, 0, bytes.data(), bytes.size()), Fault::kNone);
  for (size_t i = 0; i < bytes.size(); ++i) assert_int_equal(bytes[i], i >= 150'000 && i < 150'100 ? 0x77 : 0);
  // Its key is local, and of its domain.
  assert_int_equal(rig.table.gather(kStranger, list, 0, bytes.data(), 8), Fault::kAccess);
  assert_int_equal(rig.table.read(kOwner, {key, 0, 8}, bytes.data()), Fault::kAccess);
  assert_int_equal(rig.table.write(kOwner, {key, 0, 8}, bytes.data()), Fault::kAccess);
  assert_int_equal(rig.table.check_remote(kOwner, {key, 0, 8}, kRemoteRead), Fault::kAccess);
  assert_int_equal(rig.table.remove_region(key), 0);
  assert_int_equal(rig.table.gather(kOwner, list, 0, bytes.data(), 8), Fault::kAccess);
}

// Three pages under on-demand paging: the first stays as it is.
struct OnDemand {
  size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::byte* memory =
      static_cast<std::byte*>(mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  uint64_t at(size_t number) const { return reinterpret_cast<uintptr_t>(memory) + number * page; }
};

void on_demand__memory_that_is_gone_or_protected_is_a_fault(void** state) {
  Rig& rig = rig_of<Rig>(state);
  OnDemand pages;
  assert_ptr_not_equal(pages.memory, MAP_FAILED);
  if (madvise(pages.memory, pages.page, 22 /* MADV_POPULATE_READ */) != 0) skip();
  uint32_t key = 0;
  RegionConfig config = {.domain = kDomain,
                         .memory = pages.memory,
                         .length = 3 * pages.page,
                         .iova = pages.at(0),
                         .access = kAllRights,
                         .kind = RegionKind::kOnDemand};
  assert_int_equal(rig.table.add_region(config, key), 0);
  assert_int_equal(mprotect(pages.memory + pages.page, pages.page, PROT_READ), 0);
  assert_int_equal(munmap(pages.memory + 2 * pages.page, pages.page), 0);
  uint64_t word = 0x1122334455667788, original = 0;
  auto* bytes = reinterpret_cast<std::byte*>(&word);
  const auto segment = [&](size_t number) { return Segment{pages.at(number), 8, key}; };
  for (size_t number = 0; number < 3; ++number) {
    const Fault writing = number == 0 ? Fault::kNone : Fault::kAccess;
    const Fault reading = number < 2 ? Fault::kNone : Fault::kAccess;
    const Segment local = segment(number);
    assert_int_equal(rig.table.write(kOwner, {key, pages.at(number), 8}, bytes), writing);
    assert_int_equal(rig.table.fetch_add(kOwner, key, pages.at(number), 1, original), writing);
    assert_int_equal(rig.table.atomic_write(kOwner, key, pages.at(number), word), writing);
    assert_int_equal(rig.table.scatter(kOwner, {&local, 1}, 0, bytes, 8), writing);
    assert_int_equal(rig.table.read(kOwner, {key, pages.at(number), 8}, bytes), reading);
    assert_int_equal(rig.table.gather(kOwner, {&local, 1}, 0, bytes, 8), reading);
  }
  // Rights and bounds count whether or not the memory is there.
  assert_int_equal(rig.table.check_remote(kOwner, {key, pages.at(2), 8}, kRemoteWrite), Fault::kNone);
  assert_int_equal(rig.table.check_remote(kOwner, {key, pages.at(3), 8}, kRemoteWrite), Fault::kAccess);
  assert_int_equal(rig.table.check_remote(kStranger, {key, pages.at(0), 8}, kRemoteWrite), Fault::kAccess);
  // New memory at the same place is the region's.
  assert_ptr_equal(mmap(pages.memory + 2 * pages.page, pages.page, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
                   pages.memory + 2 * pages.page);
  word = 0x99;
  assert_int_equal(rig.table.write(kOwner, {key, pages.at(2), 8}, bytes), Fault::kNone);
  assert_memory_equal(pages.memory + 2 * pages.page, bytes, 8);
  // A window looks at the memory, too.
  uint32_t window = 0;
  assert_int_equal(rig.table.add_window(kDomain, WindowType::kType1, window), 0);
  assert_int_equal(rig.table.bind_window(kOwner, {window, window + 1, key, kRemoteWrite, pages.at(0), 3 * pages.page}),
                   Fault::kNone);
  const uint32_t rkey = (window & ~0xFFu) | ((window + 1) & 0xFF);
  assert_int_equal(rig.table.write(kOwner, {rkey, pages.at(0), 8}, bytes), Fault::kNone);
  assert_int_equal(rig.table.write(kOwner, {rkey, pages.at(1), 8}, bytes), Fault::kAccess);
  assert_int_equal(rig.table.write(kStranger, {rkey, pages.at(0), 8}, bytes), Fault::kAccess);
  assert_int_equal(rig.table.remove_region(key), EBUSY);
  assert_int_equal(rig.table.remove_window(window), 0);
  // It becomes a plain region, and again one of this kind.
  config.kind = RegionKind::kPlain;
  config.length = pages.page;
  assert_int_equal(rig.table.change_region(key, config), 0);
  assert_int_equal(rig.table.write(kOwner, {key, pages.at(0), 8}, bytes), Fault::kNone);
  assert_int_equal(rig.table.remove_region(key), 0);
  munmap(pages.memory, 3 * pages.page);
}

// A region of these pages; 0 on failure.
uint32_t add_on_demand(Rig& rig, const OnDemand& pages) {
  uint32_t key = 0;
  const RegionConfig config = {.domain = kDomain,
                               .memory = pages.memory,
                               .length = 3 * pages.page,
                               .iova = pages.at(0),
                               .access = kAllRights,
                               .kind = RegionKind::kOnDemand};
  return rig.table.add_region(config, key) == 0 ? key : 0;
}

// A thread takes the memory away and gives it back. No other thread can get the addresses meanwhile.
struct Remapping {
  static constexpr int kRounds = 20'000;
  OnDemand pages;
  std::atomic<bool> ended{false};

  static void* run(void* self) {
    auto& remapping = *static_cast<Remapping*>(self);
    for (int i = 0; i < kRounds; ++i) {
      for (const int rights : {PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE}) {
        mmap(remapping.pages.memory, 3 * remapping.pages.page, rights, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
      }
    }
    remapping.ended.store(true);
    return nullptr;
  }
};

void on_demand__memory_that_goes_away_during_an_access_is_a_fault(void** state) {
  Rig& rig = rig_of<Rig>(state);
  Remapping remapping;
  const OnDemand& pages = remapping.pages;
  assert_ptr_not_equal(pages.memory, MAP_FAILED);
  const uint32_t key = add_on_demand(rig, pages);
  assert_int_not_equal(key, 0);
  const size_t size = 2 * pages.page;
  std::vector<std::byte> bytes(size);
  const RemoteRange range = {key, pages.at(0) + 100, size};
  const Segment segment = {pages.at(0) + 100, static_cast<uint32_t>(size), key};
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, nullptr, Remapping::run, &remapping), 0);
  int wrong = 0;
  while (!remapping.ended.load()) {
    for (const Fault fault : {rig.table.write(kOwner, range, bytes.data()), rig.table.read(kOwner, range, bytes.data()),
                              rig.table.scatter(kOwner, {&segment, 1}, 0, bytes.data(), size),
                              rig.table.gather(kOwner, {&segment, 1}, 0, bytes.data(), size)}) {
      if (fault != Fault::kNone && fault != Fault::kAccess) ++wrong;
    }
  }
  pthread_join(thread, nullptr);
  assert_int_equal(wrong, 0);
  assert_int_equal(rig.table.write(kOwner, range, bytes.data()), Fault::kNone);
  assert_int_equal(rig.table.remove_region(key), 0);
  munmap(pages.memory, 3 * pages.page);
}

// The exit code.
int use_without_the_kernels_copies(Rig& rig, const OnDemand& pages, uint32_t key) {
  if (!dapple::tests::refuse_call(SYS_process_vm_readv, EPERM)) return 77;
  if (!dapple::tests::refuse_call(SYS_process_vm_writev, EPERM)) return 77;
  uint64_t word = 0x1122334455667788;
  const uint64_t written = word;
  auto* bytes = reinterpret_cast<std::byte*>(&word);
  errno = 0;
  if (rig.table.write(kOwner, {key, pages.at(0), 8}, bytes) != Fault::kNone) return 1;
  if (memcmp(pages.memory, &written, sizeof written) != 0) return 2;
  word = 0;
  if (rig.table.read(kOwner, {key, pages.at(0), 8}, bytes) != Fault::kNone || word != written) return 3;
  munmap(pages.memory + pages.page, pages.page);
  if (rig.table.write(kOwner, {key, pages.at(1), 8}, bytes) != Fault::kAccess) return 4;
  if (rig.table.read(kOwner, {key, pages.at(1), 8}, bytes) != Fault::kAccess) return 5;
  return errno == 0 ? 0 : 6;
}

void on_demand__a_filter_of_system_calls_forbids_the_kernels_copies(void** state) {
  Rig& rig = rig_of<Rig>(state);
  OnDemand pages;
  assert_ptr_not_equal(pages.memory, MAP_FAILED);
  const uint32_t key = add_on_demand(rig, pages);
  assert_int_not_equal(key, 0);
  const pid_t child = fork();
  if (child == 0) _exit(use_without_the_kernels_copies(rig, pages, key));
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) skip();
  assert_int_equal(status, 0);
  assert_int_equal(rig.table.remove_region(key), 0);
  munmap(pages.memory, 3 * pages.page);
}

void on_demand__the_whole_address_space(void** state) {
  Rig& rig = rig_of<Rig>(state);
  uint32_t key = 0;
  const auto pages = OnDemandPages::make(nullptr, UINT64_MAX);
  assert_non_null(pages.get());
  const RegionConfig config = {.domain = kDomain,
                               .length = UINT64_MAX,
                               .access = kAllRights | kFlushGlobal,
                               .kind = RegionKind::kOnDemand,
                               .pages = pages.get()};
  assert_int_equal(rig.table.add_region(config, key), 0);
  std::byte bytes[8] = {std::byte{1}};
  // A Flush of the whole region needs none of its pages, and a part of it not those that are not there.
  constexpr uint32_t kToMemory = 1, kWholeRegion = 16;
  assert_int_equal(rig.table.flush(kOwner, {key, 0, 0}, kToMemory | kWholeRegion), Fault::kNone);
  assert_int_equal(rig.table.flush(kOwner, {key, 0, uint64_t{1} << 40}, kToMemory), Fault::kNone);
  assert_int_equal(rig.table.flush(kStranger, {key, 0, 0}, kToMemory | kWholeRegion), Fault::kAccess);
  const uint64_t here = reinterpret_cast<uintptr_t>(rig.memory);
  assert_int_equal(rig.table.write(kOwner, {key, here, 8}, bytes), Fault::kNone);
  assert_memory_equal(rig.memory, bytes, 8);
  assert_int_equal(rig.table.write(kOwner, {key, 0, 8}, bytes), Fault::kAccess);
  assert_int_equal(rig.table.read(kOwner, {key, UINT64_MAX - 8, 8}, bytes), Fault::kAccess);
  assert_int_equal(rig.table.remove_region(key), 0);
}

}  // namespace

int main() {
  if (!forbid_membarrier_if_wanted()) return 1;
  const CMUnitTest tests[] = {
      rig_test(write__last_byte_of_the_region_and_none_beyond, Rig),
      rig_test(access__without_the_right_is_refused, Rig),
      rig_test(access__other_domain_or_key_is_refused, Rig),
      rig_test(holder__is_what_a_valid_key_stands_for, Rig),
      rig_test(scatter__pieces_land_where_the_segments_say, Rig),
      rig_test(atomics__give_the_original_and_ask_for_alignment, Rig),
      rig_test(region__zero_based_rereg_and_removal, Rig),
      rig_test(keys__are_never_zero_and_do_not_come_back_soon, Rig),
      rig_test(keys__come_from_few_places_as_long_as_few_are_used, Rig),
      rig_test(windows_type_1__bind_move_unbind, Rig),
      rig_test(windows_type_2__belong_to_a_queue_pair_until_invalidated, Rig),
      rig_test(windows_type_2__every_lowest_byte_of_a_key_works, Rig),
      rig_test(bind__what_is_not_possible_is_named, Rig),
      rig_test(revoke__no_write_lands_afterwards, Rig),
      cmocka_unit_test(probe__holes_and_rights_are_seen),
      rig_test(null_region__reads_give_zeros_and_writes_are_dropped, Rig),
      rig_test(on_demand__memory_that_is_gone_or_protected_is_a_fault, Rig),
      rig_test(on_demand__memory_that_goes_away_during_an_access_is_a_fault, Rig),
      rig_test(on_demand__a_filter_of_system_calls_forbids_the_kernels_copies, Rig),
      rig_test(on_demand__the_whole_address_space, Rig),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
