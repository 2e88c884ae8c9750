// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/protocol/mark_question.hpp"

#include "tests/unit/provider/cmocka.hpp"

namespace {

using namespace dapple::soft;

void read__question_and_answer__are_not_mixed_up(void**) {
  const MarkMad question = make_mark_question({.transaction = 0x1122334455667788});
  const MarkMad answer = make_mark_answer({.transaction = 0x1122334455667788, .host = 0xABCDEF});
  const auto asked = read_mark_question(question);
  const auto answered = read_mark_answer(answer);
  assert_true(asked && asked->transaction == 0x1122334455667788 && asked->version == kMarkVersion);
  assert_true(answered && answered->transaction == 0x1122334455667788 && answered->host == 0xABCDEF);
  assert_false(read_mark_question(answer).has_value() || read_mark_answer(question).has_value());
  // IBTA 13.4.3 and 16.5: the common header, and the OUI of a vendor's class.
  assert_true(question[0] == std::byte{1} && question[1] == std::byte{0x37} && question[3] == std::byte{1});
  assert_true(answer[3] == std::byte{0x81} && question[8] == std::byte{0x11} && question[37] == std::byte{2});
}

void read__other_mads__are_none(void**) {
  const MarkMad question = make_mark_question({.transaction = 1});
  assert_false(read_mark_question(std::span(question).first(255)).has_value());
  assert_false(read_mark_question({}).has_value());
  for (size_t i = 0; i < 48; i++) {
    if (i >= 8 && i < 16) continue;
    MarkMad other = question;
    other[i] ^= std::byte{0x40};
    assert_false(read_mark_question(other).has_value());
  }
  assert_false(read_mark_answer(make_mark_answer({.transaction = 1, .host = 0})).has_value());
}

// A kernel that does not know the class sends the question back as refused.
void read__refused_question__is_no_answer(void**) {
  MarkMad refused = make_mark_question({.transaction = 1});
  refused[3] = std::byte{0x81};
  assert_false(read_mark_answer(refused).has_value());
  refused[5] = std::byte{0x0C};
  refused[63] = std::byte{1};
  assert_false(read_mark_answer(refused).has_value());
  refused[5] = std::byte{0};
  assert_true(read_mark_answer(refused).has_value());
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(read__question_and_answer__are_not_mixed_up),
      cmocka_unit_test(read__other_mads__are_none),
      cmocka_unit_test(read__refused_question__is_no_answer),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
