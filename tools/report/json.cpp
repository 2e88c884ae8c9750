// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/report/json.hpp"

#include <fmt/format.h>

namespace dapple {
namespace {

// The length of the UTF-8 character at the start of the text; 0 if there is none. RFC 3629, 4.
size_t character_at(std::string_view text) {
  const auto byte = [text](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto follows = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const unsigned int lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return follows(1) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    const bool overlong = lead == 0xe0 && byte(1) < 0xa0;
    const bool surrogate = lead == 0xed && byte(1) > 0x9f;
    return follows(1) && follows(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    const bool overlong = lead == 0xf0 && byte(1) < 0x90;
    const bool beyond = lead == 0xf4 && byte(1) > 0x8f;
    return follows(1) && follows(2) && follows(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

}  // namespace

Json& Json::text(std::string_view name, std::string_view value) {
  begin_value(name);
  quote(value);
  return *this;
}

Json& Json::number(std::string_view name, uint64_t value) {
  begin_value(name);
  out_ += std::to_string(value);
  return *this;
}

Json& Json::real(std::string_view name, double value, int digits) {
  begin_value(name);
  out_ += fmt::format("{:.{}f}", value, digits);
  return *this;
}

Json& Json::boolean(std::string_view name, bool value) {
  begin_value(name);
  out_ += value ? "true" : "false";
  return *this;
}

Json& Json::null(std::string_view name) {
  begin_value(name);
  out_ += "null";
  return *this;
}

Json& Json::open(std::string_view name, char bracket) {
  begin_value(name);
  out_ += bracket;
  ++depth_;
  first_ = true;
  return *this;
}

Json& Json::close(char bracket) {
  --depth_;
  if (!first_) out_ += '\n' + std::string(2 * depth_, ' ');
  out_ += bracket;
  if (depth_ == 0) out_ += '\n';
  first_ = false;
  return *this;
}

void Json::begin_value(std::string_view name) {
  if (depth_ > 0) out_ += (first_ ? "\n" : ",\n") + std::string(2 * depth_, ' ');
  first_ = false;
  if (name.empty()) return;
  quote(name);
  out_ += ": ";
}

void Json::quote(std::string_view text) {
  out_ += '"';
  while (!text.empty()) {
    const size_t size = character_at(text);
    const char c = text[0];
    if (size == 0) {
      out_ += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      out_ += '\\';
      out_ += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out_ += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      out_ += text.substr(0, size);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  out_ += '"';
}

}  // namespace dapple
