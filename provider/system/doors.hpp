// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The services of libdapple-doors.so for the plug-in, which finds it by dlsym(): the two are separate files in one
// process.
#pragma once

#include <stdint.h>

namespace dapple::soft {

struct CmVoice;

inline constexpr uint32_t kDoorsVersion = 6;
inline constexpr char kDoorsSymbol[] = "dapple_doors";

struct Doors {
  uint32_t version;
  // The writing end of the completion channel with this reading end, or -1. It is non-blocking and lives as long as the
  // program has the channel open.
  int (*channel_writer)(int channel);
  // Gives a descriptor of ours another number, far from the numbers that programs expect, and prevents the program from
  // closing it. Returns the new number; the old one, still open, if there is no room.
  int (*hide)(int fd);
  // Closes a hidden descriptor, or any other.
  void (*close_hidden)(int fd);
  // From now on the function is called whenever a libibverbs is about to list devices, and before it looks for their
  // drivers. It gets an address in that libibverbs, and runs in the thread that asks.
  void (*when_listing)(void (*function)(const void* in_verbs_library));
  // A program imports a context by this descriptor of a device. libibverbs then asks the descriptor for that of the
  // context's asynchronous events, and gets `async_fd`. False if too many contexts are being imported.
  bool (*answer_async_fd)(int cmd_fd, int async_fd);
  // From now on the voice hears of each failure of rdma_cm. It lives until the process ends.
  void (*explain_cm)(const CmVoice& voice);
  // The function is called each time the program opens a channel of rdma_cm's events, and now if it has one. It runs in
  // the thread that opens it.
  void (*when_cm_begins)(void (*function)());
  // A thread waits for dappled in the doors.
  bool (*asks_dappled)();
};

// Null if the preload library is missing, or has another version.
const Doors* doors();

// hide() and close_hidden(); without the doors the number stays, and close() closes it.
int hide_own(int fd);
void close_own(int fd);

}  // namespace dapple::soft
