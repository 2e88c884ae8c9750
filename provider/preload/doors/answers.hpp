// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Netlink messages on their way into a program's socket.
#ifndef DAPPLE_PROVIDER_PRELOAD_DOORS_ANSWERS_HPP
#define DAPPLE_PROVIDER_PRELOAD_DOORS_ANSWERS_HPP

#include <linux/netlink.h>
#include <stddef.h>
#include <stdint.h>

namespace dapple::doors {

// Confined to one thread. Messages are gathered and sent as one; programs' buffers hold a page at least.
class Answers {
 public:
  // `receiver` is the program's NETLINK_USERSOCK socket. From then on it only takes these answers; before, any process
  // could send to it.
  explicit Answers(int receiver);
  ~Answers();
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;

  // False with errno if nothing can be sent.
  explicit operator bool() const { return sender_ >= 0; }

  // A message: begin(), its contents, end().
  void begin(uint16_t type, uint16_t flags, uint32_t sequence);
  void put_u8(uint16_t attribute, uint8_t value) { put(attribute, &value, sizeof value); }
  void put_u32(uint16_t attribute, uint32_t value) { put(attribute, &value, sizeof value); }
  void put_u64(uint16_t attribute, uint64_t value) { put(attribute, &value, sizeof value); }
  void put_text(uint16_t attribute, const char* text);
  void put_bytes(const void* bytes, size_t size);
  void end();

  // Appends a message of the kernel.
  void copy(const nlmsghdr* message);

  // Sends the gathered messages. False with errno if a message could not be sent, now or before.
  bool flush();

 private:
  void put(uint16_t attribute, const void* value, size_t size);
  void make_room(size_t size);

  static constexpr size_t kRoom = 3840;

  int sender_ = -1;
  uint32_t port_ = 0;  // the receiver's address
  int error_ = 0;
  size_t begin_ = 0;  // of the message that is written
  size_t size_ = 0;
  alignas(nlmsghdr) unsigned char bytes_[kRoom];
};

}  // namespace dapple::doors

#endif  // DAPPLE_PROVIDER_PRELOAD_DOORS_ANSWERS_HPP
