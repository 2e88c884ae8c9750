// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/memory/disordered_writes.hpp"

#include <string.h>

#include <vector>

#include "provider/soft/memory/memory_table.hpp"
#include "tests/unit/provider/rig.hpp"

using namespace dapple::soft;
using namespace dapple::roce;
using dapple::tests::rig_of;

namespace {

constexpr Accessor kOwner = {7, 0x10011};
constexpr uint64_t kIova = 0x700000000000;

struct Piece {
  uint64_t begin, end;
};

// Notes the pieces on their way to the table.
class Recorder final : public MemoryLayer {
 public:
  explicit Recorder(Memory& below) : MemoryLayer(below) {}
  Fault write(Accessor who, const RemoteRange& range, const std::byte* from) override {
    pieces.push_back({range.address, range.address + range.length});
    return MemoryLayer::write(who, range, from);
  }
  std::vector<Piece> pieces;
};

struct Rig {
  alignas(64) std::byte memory[256] = {};
  MemoryTable table{1};
  Recorder recorder{table};
  DisorderedWrites writes{recorder, 9};
  uint32_t key = 0;

  Rig() { table.add_region({kOwner.domain, memory, sizeof memory, kIova, kLocalWrite | kRemoteWrite}, key); }
};

// The number of words, whole or not, that the range touches.
uint64_t words_of(uint64_t offset, uint64_t size) {
  return (offset + size - 1) / 8 - offset / 8 + 1;
}

void write__of_any_place_and_size__all_bytes_once_and_the_last_ones_not_last(void** state) {
  Rig& rig = rig_of<Rig>(state);
  for (uint64_t offset = 0; offset < 9; offset++) {
    for (uint64_t size = 1; size < 70; size += 3) {
      std::byte bytes[70];
      memset(bytes, static_cast<int>(size), sizeof bytes);
      memset(rig.memory, 0, sizeof rig.memory);
      rig.recorder.pieces.clear();
      assert_true(rig.writes.write(kOwner, {rig.key, kIova + offset, size}, bytes) == Fault::kNone);
      assert_memory_equal(rig.memory + offset, bytes, size);
      assert_true(rig.memory[offset + size] == std::byte{0});
      uint64_t sum = 0;
      for (const Piece& piece : rig.recorder.pieces) {
        sum += piece.end - piece.begin;
        assert_true(piece.begin == kIova + offset || piece.begin % 8 == 0);
      }
      assert_int_equal(sum, size);
      const bool several = words_of(offset, size) > 1;
      assert_int_equal(rig.recorder.pieces.size() > 1, several);
      assert_int_equal(rig.recorder.pieces.back().end == kIova + offset + size, !several);
    }
  }
}

void write__same_seed__same_pieces(void** state) {
  Rig& rig = rig_of<Rig>(state);
  std::byte bytes[200] = {};
  std::vector<Piece> seen[3];
  const uint64_t seeds[3] = {4, 4, 5};
  for (int i = 0; i < 3; i++) {
    DisorderedWrites writes(rig.recorder, seeds[i]);
    rig.recorder.pieces.clear();
    for (int j = 0; j < 10; j++) writes.write(kOwner, {rig.key, kIova, sizeof bytes}, bytes);
    seen[i] = rig.recorder.pieces;
  }
  const auto same = [](const std::vector<Piece>& a, const std::vector<Piece>& b) {
    return a.size() == b.size() && memcmp(a.data(), b.data(), a.size() * sizeof(Piece)) == 0;
  };
  assert_true(same(seen[0], seen[1]));
  assert_false(same(seen[0], seen[2]));
}

void write__beyond_the_region__refused_as_a_whole(void** state) {
  Rig& rig = rig_of<Rig>(state);
  std::byte bytes[64];
  memset(bytes, 1, sizeof bytes);
  const uint64_t at = sizeof rig.memory - sizeof bytes + 1;
  assert_true(rig.writes.write(kOwner, {rig.key, kIova + at, sizeof bytes}, bytes) == Fault::kAccess);
  for (const std::byte byte : rig.memory) assert_true(byte == std::byte{0});
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      rig_test(write__of_any_place_and_size__all_bytes_once_and_the_last_ones_not_last, Rig),
      rig_test(write__same_seed__same_pieces, Rig),
      rig_test(write__beyond_the_region__refused_as_a_whole, Rig),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
