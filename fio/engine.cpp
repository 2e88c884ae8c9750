// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The engine that fio loads: a table of functions and one of options, in the layout of the running fio.
#include "fio/engine.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

#include "fio/client.hpp"
#include "fio/host.hpp"
#include "fio/server.hpp"

namespace dapple::fio {
namespace {

// Set before any job runs.
const Layout* layout = nullptr;

constexpr std::size_t kMaxEngine = 1024;
constexpr std::size_t kMaxOption = 4096;
alignas(16) char engine[kMaxEngine];

struct Option {
  const char* name;
  const char* long_name;
  std::uint32_t Layout::*type;
  std::size_t offset;
  std::uint64_t maximum;
  const char* fallback;
  const char* help;
};

constexpr Option kClientOptions[] = {
    {"serverip", "Server's IP address", &Layout::type_string, offsetof(Options, serverip), 0, "",
     "IP address of the server's RDMA device"},
    {"port", "Server's port", &Layout::type_integer, offsetof(Options, port), 65535, "7204",
     "Port of the first job; each further job has the next port"},
};
constexpr Option kServerOptions[] = {
    kClientOptions[0],
    kClientOptions[1],
    {"direct_write_to_pmem", "Direct write to persistent memory", &Layout::type_boolean,
     offsetof(Options, direct_write_to_pmem), 0, "0",
     "1: data that the device writes to the file survives a loss of power without help of the CPU"},
    {"busy_wait_polling", "Busy wait for messages", &Layout::type_boolean, offsetof(Options, busy_wait_polling), 0, "1",
     "0: sleep until a message arrives instead of polling"},
};

template <typename T>
void put(char* structure, std::uint32_t offset, T value) {
  std::memcpy(structure + offset, &value, sizeof value);
}

template <std::size_t kCount>
char* option_table(const Option (&options)[kCount]) {
  // The last entry has no name and ends the list.
  alignas(16) static char table[(kCount + 1) * kMaxOption];
  for (std::size_t i = 0; i < kCount; ++i) {
    char* const entry = table + i * layout->option_size;
    const Option& option = options[i];
    put(entry, layout->option_name, option.name);
    put(entry, layout->option_long_name, option.long_name);
    put(entry, layout->option_type, layout->*option.type);
    put(entry, layout->option_offset, static_cast<std::uint32_t>(option.offset));
    put(entry, layout->option_maximum, option.maximum);
    put(entry, layout->option_help, option.help);
    put(entry, layout->option_default, option.fallback);
    put(entry, layout->option_category, std::uint64_t{layout->category_engine});
  }
  return table;
}

// The object of a job, which init() made.
template <typename T>
T* worker(void* job) {
  return static_cast<T*>(Job(job, *layout).engine_data());
}

// The same for the calls that free. fio makes them also after a failed init(), with nullptr.
template <typename T>
T* worker_if_made(void* job) {
  return Job(job, *layout).is_as_described(engine) ? worker<T>(job) : nullptr;
}

template <typename T>
int init(void* td, std::unique_ptr<T> (*make)(const Job& job)) noexcept {
  const Job job(td, *layout);
  if (!job.is_as_described(engine)) {
    say("this is %s, but its data layout is unknown", layout->version);
    return EINVAL;
  }
  if (job.file_count() != 1) {
    say("a job has one region and so one file, not %u", job.file_count());
    return EINVAL;
  }
  job.first_file().reach_its_end();
  std::unique_ptr<T> made = make(job);
  if (!made) return EIO;
  job.set_engine_data(made.release());
  return 0;
}

template <typename T>
void cleanup(void* job) noexcept {
  T* const made = worker_if_made<T>(job);
  if (!made) return;
  delete made;
  Job(job, *layout).set_engine_data(nullptr);
}

// init() has already set up the job's file.
int open_file(void*, void*) noexcept {
  return 0;
}

int close_file(void*, void*) noexcept {
  return 0;
}

namespace client {

int start(void* job) noexcept {
  return init<Client>(job, [](const Job& of) { return Client::connect(of, *layout); });
}

int allocate(void* job, std::size_t size) noexcept {
  void* const buffer = worker<Client>(job)->allocate(size);
  Job(job, *layout).set_buffer(buffer);
  return buffer ? 0 : ENOMEM;
}

void release(void* job) noexcept {
  if (auto* const client = worker_if_made<Client>(job)) client->release();
}

int queue(void* job, void* request) noexcept {
  const bool complete = worker<Client>(job)->queue(Request(request, *layout));
  return static_cast<int>(complete ? layout->queue_completed : layout->queue_queued);
}

int commit(void* job) noexcept {
  worker<Client>(job)->commit();
  return 0;
}

int reap(void* job, unsigned minimum, unsigned maximum, const timespec* timeout) noexcept {
  return static_cast<int>(worker<Client>(job)->reap(minimum, maximum, timeout));
}

void* event(void* job, int index) noexcept {
  return worker<Client>(job)->event(static_cast<unsigned>(index));
}

void fill() noexcept {
  put(engine, layout->ops_flags, layout->flag_diskless | layout->flag_sets_issue_time);
  put(engine, layout->ops_init, &start);
  put(engine, layout->ops_cleanup, &cleanup<Client>);
  put(engine, layout->ops_buffer_alloc, &allocate);
  put(engine, layout->ops_buffer_free, &release);
  put(engine, layout->ops_open_file, &open_file);
  put(engine, layout->ops_close_file, &close_file);
  put(engine, layout->ops_queue, &queue);
  put(engine, layout->ops_commit, &commit);
  put(engine, layout->ops_getevents, &reap);
  put(engine, layout->ops_event, &event);
  put(engine, layout->ops_options, option_table(kClientOptions));
}

}  // namespace client

namespace server {

int start(void* job) noexcept {
  return init<Server>(job, Server::listen);
}

// Never serves a request of fio, because the client counts the data. Between two calls fio checks whether the job must
// end.
int queue(void* job, void* request) noexcept {
  switch (worker<Server>(job)->work()) {
    case Server::Outcome::kGoOn:
      break;
    case Server::Outcome::kDone:
      Job(job, *layout).end();
      break;
    case Server::Outcome::kFailed:
      Request(request, *layout).fail(EIO);
      return static_cast<int>(layout->queue_completed);
  }
  return static_cast<int>(layout->queue_busy);
}

int reap(void*, unsigned, unsigned, const timespec*) noexcept {
  return 0;
}

void* event(void*, int) noexcept {
  return nullptr;
}

void fill() noexcept {
  put(engine, layout->ops_flags, layout->flag_diskless);
  put(engine, layout->ops_init, &start);
  put(engine, layout->ops_cleanup, &cleanup<Server>);
  put(engine, layout->ops_open_file, &open_file);
  put(engine, layout->ops_close_file, &close_file);
  put(engine, layout->ops_queue, &queue);
  put(engine, layout->ops_getevents, &reap);
  put(engine, layout->ops_event, &event);
  put(engine, layout->ops_options, option_table(kServerOptions));
}

}  // namespace server
}  // namespace
}  // namespace dapple::fio

// The function that fio looks for in an engine. It sets *ops to the table, or leaves it unchanged, in which case fio
// refuses the engine.
extern "C" __attribute__((visibility("default"))) void get_ioengine(void** ops) {
  using namespace dapple::fio;
  if (!layout) {
    layout = running_layout();
    if (!layout || layout->ops_size > kMaxEngine || layout->option_size > kMaxOption) return;
    put(engine, layout->ops_name, &kEngineName[0]);
    put(engine, layout->ops_version, layout->ops_interface);
    put(engine, layout->ops_option_struct_size, static_cast<std::uint32_t>(sizeof(Options)));
    kIsServer ? server::fill() : client::fill();
  }
  *ops = engine;
}
