// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/raw/frame_wire.hpp"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;

namespace {

// The wire below, of which only the descriptor counts.
struct Below final : Wire {
  explicit Below(int descriptor) : fd(descriptor) {}

  SendBatch* make_batch() override { return nullptr; }
  size_t receive(ArrivalSink&) override { return 0; }
  int receive_fd() const override { return fd; }
  int join(const uint8_t[16], uint32_t) override { return 0; }
  int leave(const uint8_t[16], uint32_t) override { return 0; }
  bool instrumented() const override { return false; }
  void close_in_child() override {}

  const int fd;
};

struct Taker final : FrameTaker {
  void take_frame(Qp&, std::span<const std::byte>) override {}
};

bool is_readable(int fd) {
  pollfd waiting = {fd, POLLIN, 0};
  return poll(&waiting, 1, 0) == 1;
}

void open__packets_below_wake_up_its_threads(void**) {
  const int fd = eventfd(0, EFD_CLOEXEC);
  Below below(fd);
  Taker taker;
  FrameWire wire(below, taker);
  assert_int_equal(wire.open(), 0);
  assert_true(wire.is_open());
  assert_false(is_readable(wire.receive_fd()));
  const uint64_t one = 1;
  assert_int_equal(write(fd, &one, sizeof one), sizeof one);
  assert_true(is_readable(wire.receive_fd()));
  close(fd);
}

// Nobody would hear of packets.
void open__without_a_watch_of_the_wire_below__fails(void**) {
  Below below(-1);
  Taker taker;
  FrameWire wire(below, taker);
  assert_int_equal(wire.open(), EBADF);
  assert_false(wire.is_open());
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(open__packets_below_wake_up_its_threads),
      cmocka_unit_test(open__without_a_watch_of_the_wire_below__fails),
  };
  return cmocka_run_group_tests_name("frame_wire", tests, nullptr, nullptr);
}
