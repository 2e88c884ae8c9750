// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <string>
#include <vector>

namespace dapple::udapl {

class Ia;

// The layout of DAT_NAMED_ATTR, which both API versions share.
struct NamedAttribute {
  const char* name;
  const char* value;
};

// The named attributes of an IA, under the original's names where it had them. Immutable; the pointers are valid as
// long as the object.
class NamedAttributes {
 public:
  void fill(const Ia& ia);
  const NamedAttribute* data() const { return attributes_.data(); }
  size_t size() const { return attributes_.size(); }
  // The attributes about the transport and its memory. They are our own and follow the original's.
  const NamedAttribute* transport_data() const { return attributes_.data() + first_of_ours_; }
  size_t transport_size() const { return attributes_.size() - first_of_ours_; }

 private:
  std::vector<std::string> values_;
  std::vector<NamedAttribute> attributes_;
  size_t first_of_ours_ = 0;
};

}  // namespace dapple::udapl
