// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// What holds for programs of one host and for those of several: a target with memory, and two others that are connected
// to it and to each other.
#pragma once

#include "provider/soft/check/races/races.hpp"
#include "tests/unit/provider/cmocka.hpp"

namespace dapple::tests {

inline constexpr int kTarget = 0, kOne = 1, kTwo = 2, kPrograms = 3;
inline constexpr soft::check::Races::Range kWord = {4096, 4104};

// World: write() tells whether a program's Write of the target's word races; poll_last() polls the completion of a
// program's last request; tell() passes a message.
template <typename World>
struct RaceCases {
  static inline World* world = nullptr;

  static int begin(void**) {
    world = new World;
    return 0;
  }
  static int finish(void**) {
    delete world;
    world = nullptr;
    return 0;
  }

  static void access__nothing_told__races(void**) {
    assert_false(world->write(kOne));
    world->poll_last(kOne, kTarget);
    assert_true(world->write(kTwo));
  }
  static void access__completion_and_message__is_in_order(void**) {
    assert_false(world->write(kOne));
    world->poll_last(kOne, kTarget);
    world->tell(kOne, kTwo);
    assert_false(world->write(kTwo));
  }
  static void access__message_before_completion__races(void**) {
    assert_false(world->write(kOne));
    world->tell(kOne, kTwo);
    world->poll_last(kOne, kTarget);
    assert_true(world->write(kTwo));
  }
  static void access__target_has_seen_and_tells__is_in_order(void**) {
    assert_false(world->write(kOne));
    world->tell(kTarget, kTwo);
    assert_false(world->write(kTwo));
  }
};

}  // namespace dapple::tests
