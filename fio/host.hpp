// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// fio as an engine sees it: its jobs, requests and files, and the functions that engines call. The layout of the
// running version gives the offsets.
#pragma once

#include <cstdint>
#include <cstring>

#include "fio/layout.hpp"

namespace dapple::fio {

// The layout of this process' fio; nullptr for an unknown version, after a line that lists the known versions.
[[nodiscard]] const Layout* running_layout() noexcept;

// A line in fio's output for errors, with the engine's name before it and a newline after it.
[[gnu::format(printf, 1, 2)]] void say(const char* format, ...) noexcept;

// One of fio's structures. fio owns the pointer; it is valid for one call of fio unless the class says otherwise.
class Structure {
 public:
  explicit Structure(void* at) noexcept : at_(static_cast<char*>(at)) {}

  [[nodiscard]] void* address() const noexcept { return at_; }

 protected:
  template <typename T>
  [[nodiscard]] T get(std::uint32_t offset) const noexcept {
    T value;
    // T may be a pointer.
    std::memcpy(&value, at_ + offset, sizeof(T));  // NOLINT(bugprone-sizeof-expression)
    return value;
  }
  template <typename T>
  void set(std::uint32_t offset, T value) const noexcept {
    std::memcpy(at_ + offset, &value, sizeof(T));  // NOLINT(bugprone-sizeof-expression)
  }

 private:
  char* at_;
};

// The user's options for the engine in the job file. fio fills it in; the first pointer must be fio's.
struct Options {
  void* job;
  const char* serverip;
  std::uint32_t port;
  std::uint32_t direct_write_to_pmem;
  std::uint32_t busy_wait_polling;
};

// A file of a job: struct fio_file.
class File : public Structure {
 public:
  File(void* at, const Layout& layout) noexcept : Structure(at), layout_(layout) {}

  [[nodiscard]] const char* name() const noexcept { return get<const char*>(layout_.file_name); }
  // The part that the job may use, by offset= and size=.
  [[nodiscard]] std::uint64_t offset() const noexcept { return get<std::uint64_t>(layout_.file_offset); }
  [[nodiscard]] std::uint64_t size() const noexcept { return get<std::uint64_t>(layout_.file_size); }
  // For an engine without disks, fio takes size= for the end of the file and does nothing beyond it, for any offset=.
  void reach_its_end() const noexcept { set(layout_.file_end, offset() + size()); }

 private:
  const Layout& layout_;
};

// A job: struct thread_data, which lives as long as the engine works for it.
class Job : public Structure {
 public:
  Job(void* at, const Layout& layout) noexcept : Structure(at), layout_(layout) {}

  // True if the structure is the one that the layout describes: `engine` is the table of functions that fio was given.
  [[nodiscard]] bool is_as_described(const void* engine) const noexcept;

  [[nodiscard]] const Options& options() const noexcept { return *get<const Options*>(layout_.job_options); }
  [[nodiscard]] std::uint32_t depth() const noexcept { return get<std::uint32_t>(layout_.job_depth); }
  // sync=: a request completes before fio's call returns.
  [[nodiscard]] bool sync() const noexcept { return get<std::uint32_t>(layout_.job_sync) != 0; }
  // Counts from 1.
  [[nodiscard]] std::uint32_t number() const noexcept { return get<std::uint32_t>(layout_.job_number); }
  [[nodiscard]] std::uint32_t file_count() const noexcept { return get<std::uint32_t>(layout_.job_file_count); }
  // There is at least one.
  [[nodiscard]] File first_file() const noexcept { return File(*get<void**>(layout_.job_files), layout_); }
  void set_buffer(void* buffer) const noexcept { set(layout_.job_buffer, buffer); }
  [[nodiscard]] void* engine_data() const noexcept { return get<void*>(layout_.job_data); }
  void set_engine_data(void* data) const noexcept { set(layout_.job_data, data); }
  // Ends the job, without an error, before its next request.
  void end() const noexcept;

 private:
  const Layout& layout_;
};

// A request: struct io_u. The engine owns it from fio's call until it completes.
class Request : public Structure {
 public:
  Request(void* at, const Layout& layout) noexcept : Structure(at), layout_(layout) {}

  [[nodiscard]] bool is_read() const noexcept { return direction() == layout_.direction_read; }
  [[nodiscard]] bool is_write() const noexcept { return direction() == layout_.direction_write; }
  [[nodiscard]] bool is_sync() const noexcept {
    return direction() == layout_.direction_sync || direction() == layout_.direction_datasync;
  }
  [[nodiscard]] const void* file() const noexcept { return get<const void*>(layout_.unit_file); }
  [[nodiscard]] std::uint64_t offset() const noexcept { return get<std::uint64_t>(layout_.unit_offset); }
  [[nodiscard]] char* buffer() const noexcept { return get<char*>(layout_.unit_buffer); }
  [[nodiscard]] std::uint64_t length() const noexcept { return get<std::uint64_t>(layout_.unit_length); }
  // error: an errno value.
  void fail(int error) const noexcept { set(layout_.unit_error, error); }
  // Tells fio's statistics that the request is being posted now.
  void issued(const Job& job) const noexcept;

 private:
  [[nodiscard]] std::uint32_t direction() const noexcept { return get<std::uint32_t>(layout_.unit_direction); }

  const Layout& layout_;
};

}  // namespace dapple::fio
