// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Constants and their names: constexpr arrays, which are searched from the beginning.
#pragma once

#include <cstddef>
#include <string_view>

namespace dapple::soft {

template <class Value>
struct Named {
  std::string_view name;
  Value value;
};

// `otherwise`: the result for a value without a name.
template <class Value, size_t kCount>
constexpr std::string_view name_in(const Named<Value> (&table)[kCount], Value value, std::string_view otherwise) {
  for (const Named<Value>& row : table) {
    if (row.value == value) return row.name;
  }
  return otherwise;
}

// `otherwise`: the result for a name that does not exist.
template <class Value, size_t kCount>
constexpr Value value_in(const Named<Value> (&table)[kCount], std::string_view name, Value otherwise) {
  for (const Named<Value>& row : table) {
    if (row.name == name) return row.value;
  }
  return otherwise;
}

}  // namespace dapple::soft
