// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A server and a client make and end connections, one after the other. Nothing may grow: neither the memory and
// descriptors of dappled and of both programs, nor dappled's ids and connections. DAPPLE_CYCLES is the number of
// connections; 500 by default. Runs under dapple-run.
#include <stdio.h>
#include <unistd.h>

#include <algorithm>

#include "tests/native/kills/stage.hpp"
#include "tests/native/kills/watcher.hpp"
#include "tests/native/rdma_cm/party.hpp"

using namespace dapple;
using namespace dapple::tests;

#if defined(__SANITIZE_ADDRESS__)
// By default AddressSanitizer keeps up to 256 MiB of freed memory, which looks like growth.
extern "C" [[gnu::visibility("default")]] const char*
__asan_default_options() {  // NOLINT(bugprone-reserved-identifier)
  return "quarantine_size_mb=1";
}
#endif

namespace {

constexpr double kPatience = 60;  // seconds
// After some thousand connections, memory that grows with each of them exceeds this limit; other changes stay below it.
#if defined(__SANITIZE_ADDRESS__)
constexpr long kMoreKib = 8 * 1024;
#elif defined(__SANITIZE_THREAD__)
constexpr long kMoreKib = 64 * 1024;
#else
constexpr long kMoreKib = 640;
#endif

struct Shared {
  PartyOrders orders;
  PartyNews server, client;
};

struct Size {
  long kib = 0, descriptors = 0;
};

struct Sizes {
  Size dappled, server, client;
};

Shared* shared;
pid_t server, client;
Watcher watcher;

template <class Condition>
bool await_progress(Condition condition) {
  uint64_t steps = 0;
  for (double end = now() + kPatience; now() < end; usleep(2000)) {
    if (condition()) return true;
    if (shared->client.steps != steps) end = now() + kPatience;
    steps = shared->client.steps;
    if (shared->client.problem[0] != '\0' || shared->server.problem[0] != '\0') return false;
  }
  return false;
}

Size size_of(pid_t process) {
  return {resident_kib(process), descriptors_of(process)};
}

// At rest no connection is left, not even in dappled's memory.
bool measure(Sizes& sizes) {
  soft::StatusReply status;
  const soft::CmStatus& cm = status.connection_management;
  shared->orders.rest = true;
  const bool quiet = await_progress([&] {
    return shared->client.open == 0 && shared->server.open == 0 && watcher.status(status) && cm.ids == 1 &&
           cm.listeners == 1 && cm.connections == 0 && cm.remembered == 0 && cm.channels == 2;
  });
  char text[160];
  snprintf(text, sizeof text, "%u ids, %u listeners, %u connections, %u remembered", static_cast<unsigned>(cm.ids),
           static_cast<unsigned>(cm.listeners), static_cast<unsigned>(cm.connections),
           static_cast<unsigned>(cm.remembered));
  if (!quiet) failed("something is left", text);
  sizes = {size_of(static_cast<pid_t>(status.process)), size_of(server), size_of(client)};
  shared->orders.rest = false;
  return quiet;
}

void compare(const char* whose, const Size& before, const Size& after) {
  printf("%s: %ld KiB and %ld descriptors, then %ld KiB and %ld descriptors\n", whose, before.kib, before.descriptors,
         after.kib, after.descriptors);
  if (after.kib - before.kib > kMoreKib) failed(whose, "grows");
  if (after.descriptors != before.descriptors) failed(whose, "has other descriptors than before");
}

void cycle(uint64_t cycles) {
  const auto done = [](uint64_t count) { return [count] { return shared->client.done >= count; }; };
  Sizes before, after;
  // Pools and buffers have reached their size by now.
  const uint64_t first = std::min<uint64_t>(cycles / 4, 500);
  if (!await_progress(done(first)) || !measure(before)) return failed("the first connections");
  const double begin = now();
  if (!await_progress(done(first + cycles))) return failed("connections");
  const double took = now() - begin;
  if (!measure(after)) return;
  printf("%llu connections, %.0f in a second\n", static_cast<unsigned long long>(cycles),
         static_cast<double>(cycles) / took);
  compare("dappled", before.dappled, after.dappled);
  compare("the server", before.server, after.server);
  compare("the client", before.client, after.client);
}

}  // namespace

int main() {
  const unsigned long cycles = number_from("DAPPLE_CYCLES", 500);
  shared = prepare_stage<Shared>();
  PartyOptions options;
  options.at_once = 1;
  options.messages = 1;
  server = start_process([&] { return serve(options, shared->server, shared->orders); });
  await_progress([] { return shared->server.ready.load(); });
  client = start_process([&] { return call(options, shared->client, shared->orders); });
  cycle(cycles);
  shared->orders.stop = true;
  watcher.close();
  if (!ends_with(client, kPartyStopped)) failed("the client", shared->client.problem);
  if (!ends_with(server, kPartyStopped)) failed("the server", shared->server.problem);
  if (shared->client.broken + shared->server.broken != 0) failed("connections broke");
  expect_nothing_left();
  return failures() == 0 ? 0 : 1;
}
