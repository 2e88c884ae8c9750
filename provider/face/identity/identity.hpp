// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// An identity: the vendor, the names and the limits that a device shows to a program, from a profile and the words of
// DAPPLE_AS. It is one value for all devices; apply() gives each device its share of it.
#pragma once

#include <string.h>

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "provider/protocol/messages.hpp"
#include "provider/protocol/rails.hpp"
#include "provider/system/problem.hpp"

namespace dapple::face {

inline constexpr uint32_t kMaxNumaNodes = 16;
// Programs have room for 63 characters of a name, and a number has up to five.
inline constexpr size_t kMaxNamePattern = 56;

// Fixed width, without padding: two identities are equal if their bytes are.
struct Identity {
  soft::DeviceAttributes attributes;       // of the first device
  char name_pattern[64] = "dapple%d";      // with one %d, the number of the device
  uint32_t numa_node_count = 0;            // 0: the node of `attributes`
  int32_t numa_nodes[kMaxNumaNodes] = {};  // of the devices in turn
  uint32_t has_cpu_list = 0;               // `attributes` has the list; otherwise it is the node's
  soft::Rails rails;                       // the devices that the program sees
};
static_assert(std::is_trivially_copyable_v<Identity> && std::has_unique_object_representations_v<Identity>);
inline bool operator==(const Identity& one, const Identity& other) {
  return memcmp(&one, &other, sizeof one) == 0;
}

// The text of a profile by its name or, if the name has a slash, by its path.
class ProfileSource {
 public:
  // At most kMaxProfile bytes, valid until the next call. False if there is none, and `problem` has the reason.
  virtual bool read(std::string_view name, std::string_view& text, soft::Problem& problem) = 0;

 protected:
  ~ProfileSource() = default;
};
inline constexpr size_t kMaxProfile = 65536;

// Reads DAPPLE_AS: the name of a profile, the number of devices after a colon, and words KEY=VALUE that replace lines
// of the profile, with commas between them. A word without = continues the value before it:
// "connectx7:8,rate=400,numa=0,1,name=mlx5_%d". The default identity has no name: ":8". False if something is wrong,
// and `problem` has one line.
bool read_identity(std::string_view spec, ProfileSource& source, Identity& identity, soft::Problem& problem);

// Replaces the values of a device that rails.has() by those that a program with this identity sees. The device keeps
// its index, GUID, netdev and GIDs.
void apply(const Identity& identity, soft::DeviceInfo& device);

}  // namespace dapple::face
