// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/memory/shared_memory.hpp"

#include <cassert>
#include <cinttypes>
#include <cstdio>
#include <utility>

#include "ibverbs-glue/files.hpp"

namespace dapple::udapl {
namespace {

struct Line {
  uint64_t begin;
  uint64_t end;
  bool shared;
  uint64_t offset;
  uint64_t device;
  uint64_t inode;
};

bool parse(const std::string& text, Line& line) {
  char permissions[5] = {};
  unsigned int major = 0;
  unsigned int minor = 0;
  const int fields = std::sscanf(text.c_str(), "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64, &line.begin,
                                 &line.end, permissions, &line.offset, &major, &minor, &line.inode);
  line.shared = permissions[3] == 's';
  line.device = uint64_t{major} << 32 | minor;
  return fields == 7;
}

}  // namespace

std::optional<SharedMapping> find_shared_mapping(std::string_view maps, uint64_t address, uint64_t length) {
  std::optional<SharedMapping> found;
  uint64_t covered = 0;  // bytes from address on
  while (!maps.empty()) {
    const size_t end = maps.find('\n');
    Line line;
    const bool good = parse(std::string(maps.substr(0, end)), line);
    maps.remove_prefix(end == std::string_view::npos ? maps.size() : end + 1);
    const uint64_t at = address + covered;
    if (!good || at < line.begin || at >= line.end) continue;
    const uint64_t offset = line.offset + (at - line.begin);
    if (!line.shared) return std::nullopt;
    if (!found) {
      found = SharedMapping{line.device, line.inode, offset, length};
    } else if (found->device != line.device || found->inode != line.inode || found->offset + covered != offset) {
      return std::nullopt;
    }
    covered += line.end - at;
    if (covered >= length) return found;
  }
  return std::nullopt;
}

SharedCookies& SharedCookies::instance() {
  static SharedCookies& instance = *new SharedCookies;  // regions may outlive static destruction
  return instance;
}

Result<> SharedCookies::acquire(const SharedCookie& cookie, const SharedMapping& mapping) {
  Entry& entry = entries_.try_emplace(cookie, Entry{mapping, 0}).first->second;
  if (entry.mapping != mapping) return fail(Type::kInvalidState);
  ++entry.regions;
  return {};
}

void SharedCookies::release(const SharedCookie& cookie) {
  const auto found = entries_.find(cookie);
  assert(found != entries_.end() && found->second.regions > 0);
  if (found != entries_.end() && --found->second.regions == 0) entries_.erase(found);
}

Result<SharedCookieHold> SharedCookieHold::take(const SharedCookie& cookie, uint64_t address, uint64_t length) {
  std::string maps;
  if (const int error = verbs::read_file("/proc/self/maps", maps)) {
    return is_shortage(error) ? fail_errno(error) : fail(Type::kInvalidState);
  }
  const auto mapping = find_shared_mapping(maps, address, length);
  if (!mapping) return fail(Type::kInvalidState);
  if (auto acquired = SharedCookies::instance().acquire(cookie, *mapping); !acquired) {
    return tl::unexpected(acquired.error());
  }
  SharedCookieHold hold;
  hold.cookie_ = cookie;
  return hold;
}

SharedCookieHold::~SharedCookieHold() {
  if (cookie_) SharedCookies::instance().release(*cookie_);
}

SharedCookieHold::SharedCookieHold(SharedCookieHold&& other) noexcept
    : cookie_(std::exchange(other.cookie_, std::nullopt)) {}

}  // namespace dapple::udapl
