// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Small files of sysfs, /proc and the devicetree, without allocation. errno has the value of the calls.
#pragma once

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

#include <string_view>

namespace dapple::provider {

// A path that is built piece by piece. A path that does not fit becomes and stays empty.
class Path {
 public:
  Path() = default;
  explicit Path(std::string_view text) { *this += text; }
  Path& operator+=(std::string_view text);

  const char* c_str() const { return text_; }
  std::string_view view() const { return {text_, size_}; }
  bool empty() const { return size_ == 0; }
  std::string_view name() const;  // the part behind the last slash

  void shorten(size_t size);       // to its first size bytes
  bool go_up();                    // to the parent folder; false, and empty, if there is none
  bool resolve(const Path& path);  // to the real path of `path`; false, and empty, on failure

 private:
  char text_[PATH_MAX] = "";
  size_t size_ = 0;
  bool too_long_ = false;
};

Path operator+(Path path, std::string_view text);

// Tells whether a file exists (a link counts, with any target), does not exist, or could not be checked.
enum class Look { kThere, kAbsent, kUnreadable };
Look look(const Path& path);

// The number of bytes read, at most size; -1 if it cannot be read.
ssize_t read_file(const Path& path, void* buffer, size_t size);
// The file's first line in the caller's buffer; empty if there is none or it cannot be read.
std::string_view read_line(const Path& path, char* buffer, size_t size);

template <size_t kSize>
std::string_view read_line(const Path& path, char (&buffer)[kSize]) {
  return read_line(path, buffer, kSize);
}

}  // namespace dapple::provider
