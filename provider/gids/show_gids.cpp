// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include <algorithm>
#include <cassert>
#include <charconv>

#include "provider/gids/gid_plan.hpp"
#include "provider/network/gid.hpp"

namespace dapple::gids {
namespace {

constexpr std::string_view kBlanks = " \t\r\v\f";
constexpr size_t kMaxColumns = 8;
// As many characters of a word as a message shows.
constexpr size_t kShown = 60;

int shown(std::string_view word) {
  return static_cast<int>(std::min(word.size(), kShown));
}

// The next word, taken off the text; empty at the end.
std::string_view take_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(kBlanks));
  text.remove_prefix(word.size());
  return word;
}

bool read_number(std::string_view word, uint32_t& number) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc{} && end == word.data() + word.size();
}

bool read_address(int family, std::string_view word, void* address) {
  char text[INET6_ADDRSTRLEN];
  if (word.size() >= sizeof text || word.find('\0') != word.npos) return false;
  std::copy(word.begin(), word.end(), text);
  text[word.size()] = '\0';
  return inet_pton(family, text, address) == 1;
}

class Reader {
 public:
  Reader(GidPlan& plan, soft::Problem& problem) : plan_(plan), problem_(problem) { plan_ = {}; }

  bool read(std::string_view text) {
    while (!text.empty()) {
      const std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(line.size() + 1, text.size()));
      line_++;
      if (!read_line(line)) return false;
    }
    if (plan_.row_count == 0) {
      problem_.set(EINVAL, "it has no line with a GID; show_gids prints such lines");
      return false;
    }
    std::sort(plan_.rows, plan_.rows + plan_.row_count, [](const PlanRow& a, const PlanRow& b) {
      return a.device != b.device ? a.device < b.device : a.index < b.index;
    });
    return true;
  }

 private:
  // The headline, the line below it, the count at the end, and comments.
  static bool is_decoration(std::string_view first) {
    return first.empty() || first[0] == '#' || first == "DEV" || first.starts_with("n_gids_found=") ||
           first.find_first_not_of('-') == first.npos;
  }

  __attribute__((format(printf, 2, 3))) bool refuse(const char* format, ...) {
    char reason[180];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    // A terminal might obey bytes of the file.
    for (char* at = reason; *at != '\0'; at++) {
      if (*at < ' ' || *at > '~') *at = '?';
    }
    problem_.set(EINVAL, "line %u: %s", line_, reason);
    return false;
  }

  bool read_line(std::string_view line) {
    std::string_view words[kMaxColumns];
    size_t count = 0;
    for (std::string_view word = take_word(line); !word.empty(); word = take_word(line)) {
      if (count == kMaxColumns) return refuse("more than %zu columns", kMaxColumns - 1);
      words[count++] = word;
    }
    if (is_decoration(words[0])) return true;
    if (count < 5) return refuse("only %zu columns of DEV, PORT, INDEX, GID and VER", count);
    PlanRow row;
    uint32_t port = 0, index = 0;
    if (!read_number(words[1], port) || port == 0 || port > UINT8_MAX)
      return refuse("the port %.*s is no number from 1 on", shown(words[1]), words[1].data());
    if (!read_number(words[2], index) || index >= soft::kMaxGids)
      return refuse("the index %.*s is no number from 0 to %u", shown(words[2]), words[2].data(), soft::kMaxGids - 1);
    if (!read_address(AF_INET6, words[3], row.gid)) return refuse("%.*s is no GID", shown(words[3]), words[3].data());
    size_t next = 4;
    uint8_t ipv4[4];
    if (read_address(AF_INET, words[next], ipv4)) {
      uint8_t gid[16];
      soft::ipv4_gid(ipv4, gid);
      if (memcmp(gid, row.gid, sizeof gid) != 0)
        return refuse("%.*s is not the address of the GID", shown(words[4]), words[4].data());
      next++;
    }
    if (next == count || !read_type(words[next], row.type))
      return refuse("the column VER has neither v1 nor v2, which RoCE devices have");
    row.index = static_cast<uint8_t>(index);
    return find_device(words[0], port, row) && add(row);
  }

  static bool read_type(std::string_view word, soft::GidType& type) {
    if (word.size() != 2 || (word[0] != 'v' && word[0] != 'V') || (word[1] != '1' && word[1] != '2')) return false;
    type = word[1] == '1' ? soft::GidType::kRoceV1 : soft::GidType::kRoceV2;
    return true;
  }

  // Numbers the devices in the order in which they come.
  bool find_device(std::string_view name, uint32_t port, PlanRow& row) {
    uint32_t number = 0;
    while (number < plan_.device_count && (ports_[number] != port || names_[number] != name)) number++;
    if (number == soft::kMaxDevices) return refuse("more than %u devices", soft::kMaxDevices);
    if (number == plan_.device_count) {
      names_[number] = name;
      ports_[number] = port;
      plan_.device_count++;
    }
    row.device = static_cast<uint8_t>(number);
    return true;
  }

  bool add(PlanRow& row) {
    if (plan_.row_count == kMaxPlanRows) return refuse("more than %u GIDs", kMaxPlanRows);
    uint32_t types_of[soft::kMaxGids] = {};  // of each address with this GID
    uint8_t addresses = 0;
    for (uint32_t i = 0; i < plan_.row_count; i++) {
      const PlanRow& other = plan_.rows[i];
      if (other.device != row.device) continue;
      if (other.index == row.index) return refuse("the device has the index %u twice", row.index);
      addresses = std::max<uint8_t>(addresses, other.address + 1);
      const bool same = memcmp(other.gid, row.gid, sizeof row.gid) == 0;
      types_of[other.address] |= same ? 1U << static_cast<unsigned>(other.type) : UINT32_MAX;
    }
    uint8_t address = 0;
    while (address < addresses && (types_of[address] >> static_cast<unsigned>(row.type) & 1) != 0) address++;
    assert(address < soft::kMaxGids);
    row.address = address;
    plan_.rows[plan_.row_count++] = row;
    return true;
  }

  GidPlan& plan_;
  soft::Problem& problem_;
  uint32_t line_ = 0;
  std::string_view names_[soft::kMaxDevices];
  uint32_t ports_[soft::kMaxDevices] = {};
};

}  // namespace

bool read_show_gids(std::string_view text, GidPlan& plan, soft::Problem& problem) {
  return Reader(plan, problem).read(text);
}

}  // namespace dapple::gids
