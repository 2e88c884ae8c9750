// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dapple {

// Writes one JSON document, piece by piece and indented. The caller is responsible for names and nesting. Invalid UTF-8
// bytes become U+FFFD.
class Json {
 public:
  Json& begin_object(std::string_view name = {}) { return open(name, '{'); }
  Json& end_object() { return close('}'); }
  Json& begin_array(std::string_view name = {}) { return open(name, '['); }
  Json& end_array() { return close(']'); }
  Json& text(std::string_view name, std::string_view value);
  Json& number(std::string_view name, uint64_t value);
  // digits: the number after the point.
  Json& real(std::string_view name, double value, int digits = 3);
  Json& boolean(std::string_view name, bool value);
  Json& null(std::string_view name);

  const std::string& document() const { return out_; }

 private:
  Json& open(std::string_view name, char bracket);
  Json& close(char bracket);
  void begin_value(std::string_view name);
  void quote(std::string_view text);

  std::string out_;
  unsigned int depth_ = 0;
  bool first_ = true;  // the first of its array or object
};

}  // namespace dapple
