// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/protocol/cm_messages.hpp"

#include <initializer_list>

#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;

namespace {

constexpr uint16_t kKind = static_cast<uint16_t>(MessageKind::kCmCommand);

// True if the message is accepted when this many bytes of it arrive, and its header has that size.
template <class Message>
bool accepts(Message& message, size_t size) {
  message.header.kind = kKind;
  message.header.size = static_cast<uint32_t>(size);
  Message read;
  return well_formed(std::span(reinterpret_cast<const std::byte*>(&message), size), kKind, read);
}

template <class Message>
size_t accepted_sizes(Message& message) {
  size_t count = 0;
  for (size_t size = 0; size <= sizeof message; size++) count += accepts(message, size) ? 1 : 0;
  return count;
}

void request__of_each_length__travels_alone(void**) {
  CmCommandRequest request;
  memset(request.command, 0xA5, sizeof request.command);
  for (uint32_t length = 0; length <= sizeof request.command; length++) {
    request.length = length;
    const auto bytes = seal(request, kKind);
    assert_int_equal(bytes.size(), offsetof(CmCommandRequest, command) + length);
    CmCommandRequest read;
    assert_true(well_formed(bytes, kKind, read));
    assert_int_equal(read.length, length);
    assert_memory_equal(read.command, request.command, length);
  }
}

void request__of_another_size__is_refused(void**) {
  CmCommandRequest request;
  memset(request.command, 0, sizeof request.command);
  for (const uint32_t length : {0U, 1U, 24U, static_cast<uint32_t>(kCmCommandSize)}) {
    request.length = length;
    assert_true(accepts(request, offsetof(CmCommandRequest, command) + length));
    assert_int_equal(accepted_sizes(request), 1);
  }
  for (const uint32_t length : {static_cast<uint32_t>(kCmCommandSize) + 1, UINT32_MAX, UINT32_MAX - 55}) {
    request.length = length;
    assert_int_equal(accepted_sizes(request), 0);
  }
}

void reply__with_answers_ahead__has_them_at_an_aligned_offset(void**) {
  CmCommandReply reply;
  memset(reply.response, 0, sizeof reply.response);
  reply.length = 13;
  assert_true(accepts(reply, offsetof(CmCommandReply, response) + 13));
  reply.ahead = 32;
  assert_true(accepts(reply, offsetof(CmCommandReply, response) + 16 + 32));
  assert_int_equal(accepted_sizes(reply), 1);
  assert_ptr_equal(answers_ahead(reply).data(), reply.response + 16);
  assert_int_equal(answers_ahead(reply).size(), 32);
}

void reply__beyond_its_struct__is_refused(void**) {
  constexpr auto kSize = static_cast<uint32_t>(kCmReplySize);
  constexpr struct {
    uint32_t length, ahead;
  } kWrong[] = {{kSize + 1, 0},  {UINT32_MAX, 0},          {UINT32_MAX, 1},  {0, kSize + 1},
                {0, UINT32_MAX}, {UINT32_MAX, UINT32_MAX}, {kSize - 7, 1},   {kSize, 1},
                {8, kSize - 7},  {16, UINT32_MAX - 15},    {UINT32_MAX, 33}, {kSize, UINT32_MAX - kSize + 1}};
  CmCommandReply reply;
  memset(reply.response, 0, sizeof reply.response);
  for (const auto& wrong : kWrong) {
    reply.length = wrong.length;
    reply.ahead = wrong.ahead;
    assert_int_equal(accepted_sizes(reply), 0);
  }
  reply.length = kSize - 8;
  reply.ahead = 8;
  assert_true(accepts(reply, sizeof reply));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(request__of_each_length__travels_alone),
      cmocka_unit_test(request__of_another_size__is_refused),
      cmocka_unit_test(reply__with_answers_ahead__has_them_at_an_aligned_offset),
      cmocka_unit_test(reply__beyond_its_struct__is_refused),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
