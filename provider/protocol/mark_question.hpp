// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The question whether a host takes the marks of dapple-run --check=races: a MAD of a vendor's class (IBTA 16.5) from a
// program's queue pair to QP 1 of its peer's host. A host that takes marks answers to that queue pair. Others do not
// know the class.
#pragma once

#include <endian.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace dapple::soft {

inline constexpr size_t kMarkMadSize = 256;
inline constexpr uint32_t kMarkQuestionQpn = 1;
inline constexpr uint32_t kMarkQuestionQkey = 0x80010000;  // QP 1's
// Of the marks. A host takes those of its own version.
inline constexpr uint32_t kMarkVersion = 1;

using MarkMad = std::array<std::byte, kMarkMadSize>;

struct MarkQuestion {
  uint64_t transaction = 0;  // the answer has the same one
  uint32_t version = kMarkVersion;
};

struct MarkAnswer {
  uint64_t transaction = 0;
  uint32_t version = kMarkVersion;
  uint64_t host = 0;  // namespace_identity() of the host that answers, which is not 0
};

namespace mark_mad {

// As on the wire, in network byte order.
struct Layout {
  uint8_t base_version = 1;
  uint8_t management_class = 0x37;  // one of 0x30 to 0x4F, which have an OUI
  uint8_t class_version = 1;
  uint8_t method = 0;
  uint8_t status[4] = {};
  uint64_t transaction = 0;
  uint8_t attribute[8] = {0, 1};
  uint8_t rmpp[12] = {};
  // Not a manufacturer's: the bit of local administration is set. `magic` makes it ours.
  uint8_t oui[4] = {0, 0x02, 0x64, 0x61};
  uint8_t magic[8] = {'d', 'a', 'p', 'p', 'l', 'e', ' ', 'm'};
  uint32_t version = 0;
  uint32_t reserved = 0;
  uint64_t host = 0;
  uint8_t rest[kMarkMadSize - 64] = {};
};
static_assert(sizeof(Layout) == kMarkMadSize && offsetof(Layout, oui) == 36 && offsetof(Layout, host) == 56);

inline constexpr uint8_t kGet = 0x01, kGetResponse = 0x81;

inline MarkMad make(uint8_t method, uint64_t transaction, uint32_t version, uint64_t host) {
  Layout layout;
  layout.method = method;
  layout.transaction = htobe64(transaction);
  layout.version = htobe32(version);
  layout.host = htobe64(host);
  MarkMad mad;
  memcpy(mad.data(), &layout, sizeof layout);
  return mad;
}

// False if it is another MAD.
inline bool read(std::span<const std::byte> mad, uint8_t method, Layout& layout) {
  if (mad.size() != kMarkMadSize) return false;
  const Layout ours;
  memcpy(&layout, mad.data(), sizeof layout);
  const auto same = [&](size_t from, size_t to) {
    return memcmp(mad.data() + from, reinterpret_cast<const std::byte*>(&ours) + from, to - from) == 0;
  };
  return layout.method == method && same(0, offsetof(Layout, method)) &&
         same(offsetof(Layout, status), offsetof(Layout, transaction)) &&
         same(offsetof(Layout, attribute), offsetof(Layout, version));
}

}  // namespace mark_mad

inline MarkMad make_mark_question(const MarkQuestion& question) {
  return mark_mad::make(mark_mad::kGet, question.transaction, question.version, 0);
}

inline MarkMad make_mark_answer(const MarkAnswer& answer) {
  return mark_mad::make(mark_mad::kGetResponse, answer.transaction, answer.version, answer.host);
}

// Every byte may be hostile.
inline std::optional<MarkQuestion> read_mark_question(std::span<const std::byte> mad) {
  mark_mad::Layout layout;
  if (!mark_mad::read(mad, mark_mad::kGet, layout)) return std::nullopt;
  return MarkQuestion{be64toh(layout.transaction), be32toh(layout.version)};
}

inline std::optional<MarkAnswer> read_mark_answer(std::span<const std::byte> mad) {
  mark_mad::Layout layout;
  if (!mark_mad::read(mad, mark_mad::kGetResponse, layout) || layout.host == 0) return std::nullopt;
  return MarkAnswer{be64toh(layout.transaction), be32toh(layout.version), be64toh(layout.host)};
}

}  // namespace dapple::soft
