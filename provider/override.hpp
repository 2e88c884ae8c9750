// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// What a person has said about a device's coherence: the words of dat.conf, and the environment variable's value. Pure
// functions.
#ifndef DAPPLE_PROVIDER_OVERRIDE_HPP
#define DAPPLE_PROVIDER_OVERRIDE_HPP

#include <infiniband/dappledv.h>

#include <optional>
#include <string_view>

namespace dapple::provider {

inline constexpr char kCoherenceVariable[] = "DAPPLE_COHERENCE";

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

}  // namespace dapple::provider

#endif  // DAPPLE_PROVIDER_OVERRIDE_HPP
