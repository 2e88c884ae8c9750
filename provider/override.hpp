// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A person's statements about a device's coherence and about persistent memory: the words of dat.conf, and the
// environment variables' values. Pure functions, but for the complaint.
#ifndef DAPPLE_PROVIDER_OVERRIDE_HPP
#define DAPPLE_PROVIDER_OVERRIDE_HPP

#include <infiniband/dappledv.h>

#include <atomic>
#include <optional>
#include <string_view>

namespace dapple::provider {

inline constexpr char kCoherenceVariable[] = "DAPPLE_COHERENCE";
inline constexpr char kPersistenceVariable[] = "DAPPLE_PERSISTENCE";

// "coherent", "cpu" or "io"; anything else is none.
std::optional<dappledv_coherence> parse_coherence_word(std::string_view word);

struct Override {
  // A message for people where the value is malformed, else null. Static.
  const char* error = nullptr;
  // Nothing where the value does not speak of the device.
  std::optional<dappledv_coherence> coherence;
};

// Reads a value of DAPPLE_COHERENCE for one device: either a word that is for every device, or
// NAME=word[,NAME=word...]. The whole value is checked, wherever the device stands in it, so that a mistake shows on
// every run; no name may be given twice. An empty value says nothing.
Override find_override(std::string_view value, std::string_view device_name);

// Reads a value of DAPPLE_PERSISTENCE, which is null or empty where nothing is said. False, with one complaint on
// standard error in the life of the process, if it is malformed.
bool read_persistence(const char* value, std::optional<dappledv_persistence>& said);

// Says on standard error what is wrong with a variable, unless that has been done.
void complain_once(std::atomic<bool>& done, const char* variable, const char* value, const char* error);

}  // namespace dapple::provider

#endif  // DAPPLE_PROVIDER_OVERRIDE_HPP
