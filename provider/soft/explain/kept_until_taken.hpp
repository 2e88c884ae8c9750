// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace dapple::soft::explain {

// Values that a program may ask for later, or never: of more than `max` the oldest is forgotten. Not locked.
template <class Key, class Value>
class KeptUntilTaken {
 public:
  explicit KeptUntilTaken(size_t max) : max_(max) {}

  // Instead of an older value of the same key.
  void keep(const Key& key, Value value) {
    take(key);
    if (kept_.size() == max_) take(Key(order_.begin()->second));
    kept_.emplace(key, Numbered{std::move(value), ++last_});
    order_.emplace(last_, key);
    assert(kept_.size() == order_.size() && kept_.size() <= max_);
  }

  // Null if there is none.
  const Value* find(const Key& key) const {
    const auto found = kept_.find(key);
    return found == kept_.end() ? nullptr : &found->second.value;
  }

  std::optional<Value> take(const Key& key) {
    auto node = kept_.extract(key);
    if (node.empty()) return std::nullopt;
    order_.erase(node.mapped().number);
    assert(kept_.size() == order_.size());
    return std::move(node.mapped().value);
  }

 private:
  struct Numbered {
    Value value;
    uint64_t number;
  };

  size_t max_;
  uint64_t last_ = 0;
  std::map<Key, Numbered> kept_;
  std::map<uint64_t, Key> order_;
};

}  // namespace dapple::soft::explain
