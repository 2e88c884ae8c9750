// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The client's message to its server when it connects, and the server's answer. The client chooses a run's parameters.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dapple::perf {

enum class Kind : uint8_t { kTest, kLatency, kBandwidth };
enum class Operation : uint8_t { kWrite, kRead, kSend };

// The operation's names: "RDMA Write"; "write".
const char* text_of(Operation operation);
const char* word_of(Operation operation);

// Memory that the peer may use.
struct RemoteMemory {
  uint64_t address = 0;
  uint32_t rmr_context = 0;
};

constexpr uint64_t kMaxSize = uint64_t{1} << 30;
constexpr uint64_t kMaxIterations = 10'000'000;
constexpr uint32_t kMaxDepth = 4096;

struct Parameters {
  Kind kind = Kind::kTest;
  Operation operation = Operation::kWrite;
  uint64_t size = 0;  // bytes; with `all`, the largest size
  uint64_t iterations = 0;
  uint32_t depth = 1;  // the number of outstanding requests
  bool all = false;    // sizes 2, 4, 8... and size; a test starts at 1
  RemoteMemory memory;

  // The sizes in ascending order, at least one.
  std::vector<uint64_t> sizes() const;
};

// Big-endian, small enough for any transport's private data. A longer reason for a refusal is cut.
constexpr size_t kRequestBytes = 44;
constexpr size_t kReplyBytes = 20;
constexpr size_t kRefusalBytes = 144;
std::array<unsigned char, kRequestBytes> encode(const Parameters& parameters);
std::array<unsigned char, kReplyBytes> encode(const RemoteMemory& memory);
std::array<unsigned char, kRefusalBytes> encode_refusal(std::string_view why);

// Empty, with the reason in problem, if these bytes do not come from a peer of the same version and kind, or are out of
// bounds.
std::optional<Parameters> decode_request(const void* data, size_t size, Kind kind, std::string& problem);
std::optional<RemoteMemory> decode_reply(const void* data, size_t size);
// The reason of a refusal, printable; empty if it gives none.
std::string decode_refusal(const void* data, size_t size);

}  // namespace dapple::perf
