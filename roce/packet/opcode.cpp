// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "roce/packet/opcode.hpp"

#include <array>

namespace dapple::roce {

namespace {

constexpr uint16_t kFirst = kStarts | kHasPayload;
constexpr uint16_t kMiddle = kHasPayload;
constexpr uint16_t kLast = kEnds | kHasPayload;
constexpr uint16_t kOnly = kStarts | kEnds;

struct Row {
  Operation operation;
  uint16_t bits;
};

// IBTA 9.2.1, table 38. UC has the first twelve.
constexpr Row kConnected[] = {
    {Operation::kSendFirst, kFirst},
    {Operation::kSendMiddle, kMiddle},
    {Operation::kSendLast, kLast},
    {Operation::kSendLastImmediate, kLast | kHasImmediate},
    {Operation::kSendOnly, kOnly | kHasPayload},
    {Operation::kSendOnlyImmediate, kOnly | kHasPayload | kHasImmediate},
    {Operation::kWriteFirst, kIsWrite | kFirst | kHasReth},
    {Operation::kWriteMiddle, kIsWrite | kMiddle},
    {Operation::kWriteLast, kIsWrite | kLast},
    {Operation::kWriteLastImmediate, kIsWrite | kLast | kHasImmediate},
    {Operation::kWriteOnly, kIsWrite | kOnly | kHasPayload | kHasReth},
    {Operation::kWriteOnlyImmediate, kIsWrite | kOnly | kHasPayload | kHasReth | kHasImmediate},
};

constexpr Row kReliable[] = {
    {Operation::kReadRequest, kIsAnswered | kOnly | kHasReth},
    {Operation::kReadResponseFirst, kResponse | kFirst | kHasAeth},
    {Operation::kReadResponseMiddle, kResponse | kMiddle},
    {Operation::kReadResponseLast, kResponse | kLast | kHasAeth},
    {Operation::kReadResponseOnly, kResponse | kOnly | kHasPayload | kHasAeth},
    {Operation::kAcknowledge, kResponse | kOnly | kHasAeth},
    {Operation::kAtomicAcknowledge, kResponse | kOnly | kHasAeth | kHasAtomicAckEth},
    {Operation::kCompareSwap, kIsAnswered | kOnly | kHasAtomicEth},
    {Operation::kFetchAdd, kIsAnswered | kOnly | kHasAtomicEth},
    {Operation::kSendLastInvalidate, kLast | kHasIeth},
    {Operation::kSendOnlyInvalidate, kOnly | kHasPayload | kHasIeth},
    // IBTA A19.4.
    {Operation::kFlush, kIsAnswered | kOnly | kHasFeth | kHasReth},
    {Operation::kAtomicWrite, kIsAnswered | kOnly | kHasPayload | kHasReth},
};

// IBTA A14: the operations of a reliable connection. A request names a shared receive queue of the responder.
constexpr Row extended(const Row& row) {
  const bool is_response = (row.bits & kResponse) != 0;
  return {row.operation, static_cast<uint16_t>(is_response ? row.bits : row.bits | kHasXrceth)};
}

// A19 gives these two to reliable connections.
constexpr bool is_extended(const Row& row) {
  return row.operation != Operation::kFlush && row.operation != Operation::kAtomicWrite;
}

constexpr Row kDatagram[] = {
    {Operation::kSendOnly, kOnly | kHasPayload | kHasDeth},
    {Operation::kSendOnlyImmediate, kOnly | kHasPayload | kHasDeth | kHasImmediate},
};

constexpr uint8_t extended_size_of(uint16_t bits) {
  constexpr struct {
    uint16_t bit;
    uint8_t size;
  } kSizes[] = {{kHasReth, 16}, {kHasAeth, 4}, {kHasAtomicEth, 28}, {kHasAtomicAckEth, 8}, {kHasImmediate, 4},
                {kHasIeth, 4},  {kHasDeth, 8}, {kHasFeth, 4},       {kHasXrceth, 4}};
  unsigned size = 0;
  for (const auto& header : kSizes)
    if (bits & header.bit) size += header.size;
  return static_cast<uint8_t>(size);
}

using Table = std::array<OpcodeInfo, 256>;

constexpr void enter(Table& table, Transport transport, const Row& row) {
  table[opcode_of(transport, row.operation)] = {true, transport, row.operation, row.bits, extended_size_of(row.bits)};
}

constexpr Table make_table() {
  Table table{};
  for (const Row& row : kConnected) {
    enter(table, Transport::kRc, row);
    enter(table, Transport::kUc, row);
    enter(table, Transport::kXrc, extended(row));
  }
  for (const Row& row : kReliable) {
    enter(table, Transport::kRc, row);
    if (is_extended(row)) enter(table, Transport::kXrc, extended(row));
  }
  for (const Row& row : kDatagram) enter(table, Transport::kUd, row);
  return table;
}

constexpr Table kTable = make_table();

}  // namespace

const OpcodeInfo& opcode_info(uint8_t opcode) {
  return kTable[opcode];
}

}  // namespace dapple::roce
