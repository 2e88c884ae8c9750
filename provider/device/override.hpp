// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Overrides of a device's coherence and of persistent memory: the words of dat.conf, and the values of environment
// variables. Pure functions, except the complaint.
#pragma once

#include <infiniband/dappledv.h>

#include <atomic>
#include <optional>
#include <string_view>

namespace dapple::provider {

inline constexpr char kCoherenceVariable[] = "DAPPLE_COHERENCE";
inline constexpr char kPersistenceVariable[] = "DAPPLE_PERSISTENCE";

// "coherent", "cpu" or "io"; any other word gives nothing.
std::optional<dappledv_coherence> parse_coherence_word(std::string_view word);

struct Override {
  // A message for people if the value is malformed, otherwise null. Static.
  const char* error = nullptr;
  // Nothing if the value does not name the device.
  std::optional<dappledv_coherence> coherence;
};

// Reads a value of DAPPLE_COHERENCE for one device: either a word that is for every device, or
// NAME=word[,NAME=word...]. The whole value is always checked, so that a mistake shows on every run; no name may be
// given twice. An empty value has no effect.
Override find_override(std::string_view value, std::string_view device_name);

// Reads a value of DAPPLE_PERSISTENCE; null or empty means no override. False, with one complaint on standard error in
// the life of the process, if it is malformed.
bool read_persistence(const char* value, std::optional<dappledv_persistence>& said);

// Reports an error in a variable on standard error, once.
void complain_once(std::atomic<bool>& done, const char* variable, const char* value, const char* error);

}  // namespace dapple::provider
