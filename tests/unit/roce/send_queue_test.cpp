// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The send queue keeps of each request what its operation needs. Entries and their places are used again and again, so
// each request comes behind requests of other kinds.
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "roce/send_queue/send_queue.hpp"
// C++'s headers use names that cmocka defines as macros.
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::roce;

namespace {

constexpr uint32_t kInlineSize = 40;  // more than two segments, and not a whole number of them

QpConfig config_of(QpType type) {
  QpConfig config;
  config.type = type;
  config.send_depth = 3;
  config.max_send_segments = 2;
  config.max_inline = kInlineSize;
  return config;
}

// Each field has a value of its own.
SendRequest full_request(SendOpcode opcode, uint64_t id) {
  SendRequest request;
  request.id = id;
  request.opcode = opcode;
  request.flags = kSignaled | kFence;
  request.mark = static_cast<uint16_t>(id + 1);
  request.immediate_or_rkey = 0x1111;
  request.remote_address = 0x2222222222;
  request.rkey = 0x3333;
  request.compare_or_add = 0x4444444444;
  request.swap = 0x5555555555;
  request.flush_length = 0x6666;
  request.flush_type = 0x7777;
  request.atomic_write = 0x8888888888;
  request.bind = {1, 2, 3, 4, 0x5555555555, 0x6666666666};
  memset(request.address.destination_gid, 0x99, sizeof request.address.destination_gid);
  request.address.flow_label = 0xAAAA;
  request.address.source_gid_index = 0xB;
  request.address.hop_limit = 0xC;
  request.address.traffic_class = 0xD;
  request.address.is_foreign = true;
  request.remote_qpn = 0xEEEE;  // the same as remote_srq
  request.remote_qkey = 0xFFFF;
  return request;
}

void assert_same_segments(std::span<const Segment> a, std::span<const Segment> b) {
  assert_int_equal(a.size(), b.size());
  for (size_t i = 0; i < a.size(); i++) {
    assert_int_equal(a[i].address, b[i].address);
    assert_int_equal(a[i].length, b[i].length);
    assert_int_equal(a[i].lkey, b[i].lkey);
  }
}

// The fields that the operation has on this transport.
void assert_kept(const SendRequest& kept, const SendRequest& posted, QpType type) {
  const SendOpcode opcode = posted.opcode;
  assert_int_equal(kept.id, posted.id);
  assert_int_equal(kept.opcode, opcode);
  assert_int_equal(kept.flags, posted.flags);
  assert_int_equal(kept.mark, posted.mark);
  if (!wants_response(opcode)) assert_int_equal(kept.immediate_or_rkey, posted.immediate_or_rkey);
  if (kWrites.has(opcode) || wants_response(opcode)) {
    assert_int_equal(kept.remote_address, posted.remote_address);
    assert_int_equal(kept.rkey, posted.rkey);
  }
  if (opcode == SendOpcode::kCompareSwap || opcode == SendOpcode::kFetchAdd)
    assert_int_equal(kept.compare_or_add, posted.compare_or_add);
  if (opcode == SendOpcode::kCompareSwap) assert_int_equal(kept.swap, posted.swap);
  if (opcode == SendOpcode::kAtomicWrite) assert_int_equal(kept.atomic_write, posted.atomic_write);
  if (opcode == SendOpcode::kFlush) {
    assert_int_equal(kept.flush_length, posted.flush_length);
    assert_int_equal(kept.flush_type, posted.flush_type);
  }
  if (opcode == SendOpcode::kBindWindow) {
    assert_int_equal(kept.bind.window_rkey, posted.bind.window_rkey);
    assert_int_equal(kept.bind.new_rkey, posted.bind.new_rkey);
    assert_int_equal(kept.bind.region_lkey, posted.bind.region_lkey);
    assert_int_equal(kept.bind.access, posted.bind.access);
    assert_int_equal(kept.bind.address, posted.bind.address);
    assert_int_equal(kept.bind.length, posted.bind.length);
  }
  if (type == QpType::kXrcSend && !is_local(opcode)) assert_int_equal(kept.remote_srq, posted.remote_srq);
  if (type == QpType::kUd && kSends.has(opcode)) {
    assert_memory_equal(&kept.address, &posted.address, sizeof kept.address);
    assert_int_equal(kept.remote_qpn, posted.remote_qpn);
    assert_int_equal(kept.remote_qkey, posted.remote_qkey);
  }
}

void request_of__each_operation__has_what_was_posted(void**) {
  using O = SendOpcode;
  constexpr O kAll[] = {O::kBindWindow,  O::kWrite,           O::kSend,        O::kWriteImmediate,
                        O::kCompareSwap, O::kSendImmediate,   O::kFlush,       O::kRead,
                        O::kFetchAdd,    O::kLocalInvalidate, O::kAtomicWrite, O::kSendInvalidate};
  for (const QpType type : {QpType::kRc, QpType::kUc, QpType::kUd, QpType::kXrcSend}) {
    static SendQueue queue;
    queue.clear();
    assert_true(queue.create(config_of(type)));
    const Segment segments[] = {{0x1000, 4, 1}, {0x2000, 4, 2}};
    uint64_t id = 0;
    for (int round = 0; round < 3; round++) {
      for (const O opcode : kAll) {
        SendRequest request = full_request(opcode, ++id);
        request.segments = {segments, 2};
        const PostError error = queue.push(request);
        // Such a queue pair's posts refuse these (IBTA A14).
        const bool is_refused = type == QpType::kXrcSend && (opcode == O::kFlush || opcode == O::kAtomicWrite);
        assert_int_equal(error, is_refused ? PostError::kOpcode : PostError::kNone);
        if (is_refused) continue;
        const SendEntry& entry = queue.front();
        assert_int_equal(entry.length, opcode == O::kFlush ? request.flush_length : 8);
        assert_false(entry.is_started());
        assert_false(entry.has_failed());
        if (wants_response(opcode)) assert_int_equal(entry.received(), 0);
        assert_kept(queue.request_of(entry), request, type);
        assert_same_segments(queue.request_of(entry).segments, request.segments);
        // Its next user finds nothing of this.
        queue.front().progress = SendEntry::Progress::kStarted;
        queue.front().packets = 7;
        if (wants_response(opcode)) queue.front().set_received(7);
        queue.front().status = CompletionStatus::kRemoteAccess;
        queue.pop();
      }
    }
  }
}

void push__segments_and_inline_bytes__share_places_and_do_not_mix(void**) {
  static SendQueue queue;
  queue.clear();
  assert_true(queue.create(config_of(QpType::kRc)));
  static char bytes[kInlineSize];
  for (int round = 0; round < 5; round++) {
    memset(bytes, 'a' + round, sizeof bytes);
    const Segment pieces[] = {{reinterpret_cast<uintptr_t>(bytes), 1, 0},
                              {reinterpret_cast<uintptr_t>(bytes), 0, 0},
                              {reinterpret_cast<uintptr_t>(bytes), kInlineSize - 1, 0}};
    const Segment segments[] = {{0x1000, 10, 1}, {0x2000, 20, 2}};
    SendRequest copied = full_request(SendOpcode::kSend, 1);
    copied.flags = kInline;
    copied.segments = pieces;
    SendRequest referred = full_request(SendOpcode::kSend, 2);
    referred.segments = segments;
    const PlainSend plain = {3, kInline, pieces};
    assert_int_equal(queue.push(copied), PostError::kNone);
    assert_int_equal(queue.push(referred), PostError::kNone);
    queue.push(plain, kInlineSize);
    const uint64_t first = queue.head();
    for (const uint64_t number : {first, first + 2}) {
      const SendEntry& entry = queue[number];
      assert_true(entry.is_inline());
      assert_int_equal(entry.length, kInlineSize);
      assert_memory_equal(queue.inline_bytes(entry), bytes, kInlineSize);
      assert_int_equal(queue.request_of(entry).segments.size(), 0);
    }
    assert_false(queue[first + 1].is_inline());
    assert_null(queue.inline_bytes(queue[first + 1]));
    assert_same_segments(queue.segments(queue[first + 1]), segments);
    queue.pop(3);
  }
}

// IBTA 9.4.5: an atomic's result has eight bytes, and the rest of a longer list stays as it is.
void push__atomic_with_a_longer_list__keeps_eight_bytes_of_it(void**) {
  static SendQueue queue;
  queue.clear();
  assert_true(queue.create(config_of(QpType::kRc)));
  const Segment posted[][2] = {{{0x1000, 6, 1}, {0x2000, 9, 2}}, {{0x1000, 8, 1}, {0x2000, 9, 2}}};
  const Segment kept[][2] = {{{0x1000, 6, 1}, {0x2000, 2, 2}}, {{0x1000, 8, 1}}};
  for (size_t i = 0; i < 2; i++) {
    SendRequest request = full_request(SendOpcode::kFetchAdd, i);
    request.segments = posted[i];
    assert_int_equal(queue.push(request), PostError::kNone);
    assert_int_equal(queue.front().length, 8);
    assert_same_segments(queue.segments(queue.front()), {kept[i], 2 - i});
    queue.pop();
  }
}

// Its length is counted to the end of the count, and is too long for any queue pair.
void push__longer_than_can_be_counted__is_as_long_as_possible(void**) {
  static SendQueue queue;
  QpConfig config = config_of(QpType::kRc);
  config.refuses_too_long = false;
  queue.clear();
  assert_true(queue.create(config));
  const Segment segments[] = {{0x1000, UINT32_MAX, 1}, {0x2000, 9, 2}};
  SendRequest request = full_request(SendOpcode::kSend, 1);
  request.segments = segments;
  assert_int_equal(queue.push(request), PostError::kNone);
  assert_int_equal(queue.front().length, UINT32_MAX);
  assert_true(queue.front().length > config.max_message);
  queue.pop();
}

class CountedMemory final : public SendMemory {
 public:
  void* take(Part part, size_t size) override {
    if (static_cast<int>(part) >= parts_left) return nullptr;
    ++taken;
    return aligned_alloc(kAlignment, (size + kAlignment - 1) / kAlignment * kAlignment);
  }
  void give(Part, void* memory) override {
    ++given;
    free(memory);
  }
  int parts_left = 2;  // there is memory for the first ones
  int taken = 0;
  int given = 0;
};

void create__memory_of_the_caller__is_given_back(void**) {
  CountedMemory memory;
  QpConfig config = config_of(QpType::kRc);
  config.send_memory = &memory;
  for (int parts = 2; parts >= 0; --parts) {
    memory.parts_left = parts;
    memory.taken = memory.given = 0;
    {
      SendQueue queue;
      assert_int_equal(queue.create(config), parts == 2);
      if (parts == 2) assert_int_equal(queue.push(full_request(SendOpcode::kSend, 1)), PostError::kNone);
      assert_int_equal(memory.taken, parts);
      assert_int_equal(memory.given, 0);
    }
    assert_int_equal(memory.given, parts);
  }
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(request_of__each_operation__has_what_was_posted),
      cmocka_unit_test(push__segments_and_inline_bytes__share_places_and_do_not_mix),
      cmocka_unit_test(push__atomic_with_a_longer_list__keeps_eight_bytes_of_it),
      cmocka_unit_test(push__longer_than_can_be_counted__is_as_long_as_possible),
      cmocka_unit_test(create__memory_of_the_caller__is_given_back),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
