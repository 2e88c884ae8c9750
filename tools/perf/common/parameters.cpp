// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/perf/common/parameters.hpp"

#include <algorithm>
#include <span>

namespace dapple::perf {
namespace {

constexpr uint32_t kMagic = 0x64617070;  // "dapp"
constexpr uint16_t kVersion = 3;
constexpr size_t kRefusalHeader = 8;  // bytes before the reason

class Writer {
 public:
  explicit Writer(std::span<unsigned char> out) : out_(out) {}
  Writer& put(uint64_t value, size_t bytes) {
    for (size_t i = bytes; i-- > 0; ++at_) out_[at_] = static_cast<unsigned char>(value >> 8 * i);
    return *this;
  }

 private:
  std::span<unsigned char> out_;
  size_t at_ = 0;
};

class Reader {
 public:
  explicit Reader(const void* data) : at_(static_cast<const unsigned char*>(data)) {}
  uint64_t take(size_t bytes) {
    uint64_t value = 0;
    while (bytes-- > 0) value = value << 8 | *at_++;
    return value;
  }

 private:
  const unsigned char* at_;
};

bool is_sane(const Parameters& p) {
  return p.operation <= Operation::kSend && p.size >= 1 && p.size <= kMaxSize && p.iterations >= 1 &&
         p.iterations <= kMaxIterations && p.depth >= 1 && p.depth <= kMaxDepth;
}

}  // namespace

const char* text_of(Operation operation) {
  constexpr const char* kTexts[] = {"RDMA Write", "RDMA Read", "Send"};
  return kTexts[static_cast<size_t>(operation)];
}

const char* word_of(Operation operation) {
  constexpr const char* kWords[] = {"write", "read", "send"};
  return kWords[static_cast<size_t>(operation)];
}

std::vector<uint64_t> Parameters::sizes() const {
  std::vector<uint64_t> list;
  for (uint64_t next = kind == Kind::kTest ? 1 : 2; all && next <= size; next *= 2) list.push_back(next);
  if (list.empty() || list.back() != size) list.push_back(size);
  return list;
}

std::array<unsigned char, kRequestBytes> encode(const Parameters& p) {
  std::array<unsigned char, kRequestBytes> data{};
  Writer(data)
      .put(kMagic, 4)
      .put(kVersion, 2)
      .put(static_cast<uint64_t>(p.kind), 1)
      .put(static_cast<uint64_t>(p.operation), 1)
      .put(p.size, 8)
      .put(p.iterations, 8)
      .put(p.depth, 4)
      .put(p.all, 4)
      .put(p.memory.address, 8)
      .put(p.memory.rmr_context, 4);
  return data;
}

std::array<unsigned char, kReplyBytes> encode(const RemoteMemory& memory) {
  std::array<unsigned char, kReplyBytes> data{};
  Writer(data).put(kMagic, 4).put(kVersion, 4).put(memory.address, 8).put(memory.rmr_context, 4);
  return data;
}

std::array<unsigned char, kRefusalBytes> encode_refusal(std::string_view why) {
  std::array<unsigned char, kRefusalBytes> data{};
  Writer(data).put(kMagic, 4).put(kVersion, 4);
  why = why.substr(0, kRefusalBytes - kRefusalHeader);
  std::copy(why.begin(), why.end(), data.begin() + kRefusalHeader);
  return data;
}

std::optional<Parameters> decode_request(const void* data, size_t size, Kind kind, std::string& problem) {
  problem = "is of another program";
  if (!data || size < kRequestBytes) return {};
  Reader reader(data);
  if (reader.take(4) != kMagic) return {};
  if (reader.take(2) != kVersion) {
    problem = "is of another version";
    return {};
  }
  Parameters p;
  p.kind = static_cast<Kind>(reader.take(1));
  if (p.kind != kind) return {};
  p.operation = static_cast<Operation>(reader.take(1));
  p.size = reader.take(8);
  p.iterations = reader.take(8);
  p.depth = static_cast<uint32_t>(reader.take(4));
  p.all = reader.take(4) != 0;
  p.memory.address = reader.take(8);
  p.memory.rmr_context = static_cast<uint32_t>(reader.take(4));
  problem = "has values out of bounds";
  if (!is_sane(p)) return {};
  problem.clear();
  return p;
}

std::optional<RemoteMemory> decode_reply(const void* data, size_t size) {
  if (!data || size < kReplyBytes) return {};
  Reader reader(data);
  if (reader.take(4) != kMagic || reader.take(4) != kVersion) return {};
  RemoteMemory memory;
  memory.address = reader.take(8);
  memory.rmr_context = static_cast<uint32_t>(reader.take(4));
  return memory;
}

std::string decode_refusal(const void* data, size_t size) {
  if (!data || size < kRefusalHeader) return {};
  Reader reader(data);
  if (reader.take(4) != kMagic || reader.take(4) != kVersion) return {};
  // Zeros may follow the text.
  std::string_view text(static_cast<const char*>(data), std::min(size, kRefusalBytes));
  text = text.substr(kRefusalHeader);
  text = text.substr(0, text.find('\0'));
  const bool printable = std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
  return printable ? std::string(text) : "";
}

}  // namespace dapple::perf
