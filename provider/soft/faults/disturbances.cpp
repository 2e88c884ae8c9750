// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/faults/disturbances.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <iterator>

#include "provider/common/settings.hpp"
#include "provider/soft/faults/fault_points.hpp"
#include "provider/system/owned_fd.hpp"

namespace dapple::soft {
namespace {

constexpr std::string_view kNames[] = {"arm", "drop", "dup", "reorder", "corrupt", "delay", "order"};
static_assert(std::size(kNames) == static_cast<size_t>(Disturbance::kCount));
static_assert(std::size(kNames) == kDisturbances);

FaultNotes* map_notes() {
  const char* name = provider::settings().fault_points;
  if (name == nullptr) return nullptr;
  const OwnedFd file(open(name, O_RDWR | O_CLOEXEC));
  if (!file) return nullptr;
  void* memory = mmap(nullptr, sizeof(FaultNotes), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  return memory == MAP_FAILED ? nullptr : static_cast<FaultNotes*>(memory);
}

}  // namespace

Disturbance disturbance_of(std::string_view word) {
  const size_t equals = word.find('=');
  if (equals == word.npos) return Disturbance::kCount;
  const std::string_view value = word.substr(equals + 1);
  const bool is_zero = value.find_first_of("123456789") == value.npos;
  for (size_t i = 0; i < std::size(kNames); i++) {
    const auto disturbance = static_cast<Disturbance>(i);
    if (word.substr(0, equals) == kNames[i] && (!is_zero || disturbance == Disturbance::kOrder)) return disturbance;
  }
  return Disturbance::kCount;
}

FaultNotes* fault_notes() {
  static FaultNotes* const notes = map_notes();
  return notes;
}

void note_disturbance(Disturbance disturbance) {
  if (FaultNotes* notes = fault_notes(); notes != nullptr)
    notes->disturbances[static_cast<size_t>(disturbance)].store(1, std::memory_order_relaxed);
}

}  // namespace dapple::soft
