// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Netlink messages on their way into a program's socket.
#pragma once

#include <linux/netlink.h>
#include <stddef.h>
#include <stdint.h>

namespace dapple::doors {

// Confined to one thread. Messages are gathered and sent as one; programs' buffers hold a page at least.
class Answers {
 public:
  // The kernel's messages to a program that has room for a page of 4 KiB are not longer than this.
  static constexpr size_t kRoom = 3840;

  // `receiver` is the program's NETLINK_USERSOCK socket. From then on it only takes these answers; before, any process
  // could send to it.
  explicit Answers(int receiver);
  ~Answers();
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;

  // False with errno if nothing can be sent.
  explicit operator bool() const { return sender_ >= 0; }

  // Has the program set this option of its socket (NETLINK_CAP_ACK, ...)?
  bool is_option_set(int option) const;

  // A message: begin(), its contents, end(). The contents of an ordinary message are short; others tell their size.
  void begin(uint16_t type, uint16_t flags, uint32_t sequence, size_t contents = kShort);
  static constexpr bool has_room_for(size_t contents) { return contents <= kRoom - kShort; }
  void put_u8(uint16_t attribute, uint8_t value) { put(attribute, &value, sizeof value); }
  void put_u32(uint16_t attribute, uint32_t value) { put(attribute, &value, sizeof value); }
  void put_u64(uint16_t attribute, uint64_t value) { put(attribute, &value, sizeof value); }
  void put_text(uint16_t attribute, const char* text);
  void put(uint16_t attribute, const void* value, size_t size);
  void put_bytes(const void* bytes, size_t size);
  // An attribute with others inside, until end_nest() with its result.
  size_t begin_nest(uint16_t attribute);
  void end_nest(size_t nest);
  void end();

  // Appends a message of the kernel, and enters the receiver's address into it.
  void copy(nlmsghdr* message);

  // Sends the gathered messages. False with errno if a message could not be sent, now or before.
  bool flush();

 private:
  void make_room(size_t size);
  void send(const void* bytes, size_t size);

  // The longest ordinary message of ours: a device with two names of 64 bytes.
  static constexpr size_t kShort = 480;

  int receiver_;
  int sender_ = -1;
  uint32_t port_ = 0;  // the receiver's address
  int error_ = 0;
  size_t begin_ = 0;  // of the message that is written
  size_t size_ = 0;
  alignas(nlmsghdr) unsigned char bytes_[kRoom];
};

}  // namespace dapple::doors
