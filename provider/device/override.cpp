// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/device/override.hpp"

#include <stdio.h>

namespace dapple::provider {
namespace {

struct Entry {
  std::string_view name;
  std::string_view word;
};

// Takes the text before the first separator, and the separator; the whole text without a separator.
std::string_view take_until(char separator, std::string_view& text) {
  const size_t found = text.find(separator);
  const size_t size = found == std::string_view::npos ? text.size() : found;
  const std::string_view taken(text.data(), size);
  text.remove_prefix(found == std::string_view::npos ? size : size + 1);
  return taken;
}

// Takes the first entry off the list.
Entry take_entry(std::string_view& list) {
  std::string_view text = take_until(',', list);
  const std::string_view name = take_until('=', text);
  return {name, text};
}

size_t count_name(std::string_view list, std::string_view name) {
  size_t count = 0;
  while (!list.empty()) count += take_entry(list).name == name;
  return count;
}

}  // namespace

std::optional<dappledv_coherence> parse_coherence_word(std::string_view word) {
  if (word == "coherent") return DAPPLEDV_COHERENCE_COHERENT;
  if (word == "cpu") return DAPPLEDV_COHERENCE_NONCOHERENT_CPU;
  if (word == "io") return DAPPLEDV_COHERENCE_NONCOHERENT_IO;
  return std::nullopt;
}

Override find_override(std::string_view value, std::string_view device_name) {
  Override found;
  if (value.empty()) return found;
  if (value.find_first_of(",=") == std::string_view::npos) {
    found.coherence = parse_coherence_word(value);
    if (!found.coherence) found.error = "expected coherent, cpu or io, or a list like rxe0=cpu,mlx5_0=coherent";
    return found;
  }

  if (value.back() == ',') return {"a comma at the end", std::nullopt};
  std::string_view rest = value;
  while (!rest.empty()) {
    const Entry entry = take_entry(rest);
    if (entry.name.empty()) return {"a device's name is missing", std::nullopt};
    const std::optional<dappledv_coherence> coherence = parse_coherence_word(entry.word);
    if (!coherence) return {"each entry of a list must be a device's name, =, and coherent, cpu or io", std::nullopt};
    if (count_name(value, entry.name) > 1) return {"a device is named twice", std::nullopt};
    if (entry.name == device_name) found.coherence = coherence;
  }
  return found;
}

bool read_persistence(const char* value, std::optional<dappledv_persistence>& said) {
  static std::atomic<bool> done = false;
  said.reset();
  const std::string_view word = value == nullptr ? "" : value;
  if (word.empty()) return true;
  if (word == "memory_controller") said = DAPPLEDV_PERSISTENCE_MEMORY_CONTROLLER;
  if (word == "cpu_cache") said = DAPPLEDV_PERSISTENCE_CPU_CACHES;
  if (!said) complain_once(done, kPersistenceVariable, value, "expected memory_controller or cpu_cache");
  return said.has_value();
}

void complain_once(std::atomic<bool>& done, const char* variable, const char* value, const char* error) {
  if (done.exchange(true, std::memory_order_relaxed)) return;
  fprintf(stderr, "dapple: %s=%s: %s\n", variable, value, error);
}

}  // namespace dapple::provider
