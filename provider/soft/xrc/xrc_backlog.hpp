// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Notices to one other process of an XRC domain that find no place in its channel: they wait here, in their order. None
// may be lost, so the memory of each is there before anything happens that makes the notice necessary.
#pragma once

#include <stdint.h>

#include "provider/soft/xrc/domain_memory.hpp"

namespace dapple::soft {

// Guarded by the lock of the XrcPeer.
class XrcBacklog {
 public:
  XrcBacklog() = default;
  ~XrcBacklog();
  XrcBacklog(const XrcBacklog&) = delete;
  XrcBacklog& operator=(const XrcBacklog&) = delete;

  // Keeps memory for one notice: until its add(), or, for events of a queue pair, until give_back(). False without
  // memory.
  bool keep();
  void give_back();

  // A notice whose memory was kept.
  void add(const XrcNotice& notice);
  // An event of a queue pair, for which memory was kept. Events of the same type that wait together are one.
  void add_event(uint32_t qpn, uint32_t type);

  bool is_empty() const { return first_ == nullptr; }
  // Takes the first notice. There is one.
  XrcNotice take();
  // The other process has ended.
  void clear();

 private:
  struct Entry {
    XrcNotice notice;
    uint32_t events = 0;  // a bit for each type, without one of another notice
    Entry* next = nullptr;
  };
  Entry* take_spare();
  void put_spare(Entry* entry);
  void append(Entry& entry);

  Entry* first_ = nullptr;
  Entry** end_ = &first_;
  Entry* spare_ = nullptr;
  uint32_t spare_count_ = 0;
  uint32_t needed_ = 0;  // keep() without add() or give_back()
};

}  // namespace dapple::soft
