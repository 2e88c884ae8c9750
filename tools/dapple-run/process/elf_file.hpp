// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// An executable file, as far as it is readable. All of its contents may be invalid.
#pragma once

#include <elf.h>
#include <stddef.h>

#include <string>
#include <string_view>

namespace dapple::run {

class ElfFile {
 public:
  // Empty if the file cannot be read, or is empty itself.
  explicit ElfFile(const std::string& path);
  ~ElfFile();
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;

  // The errno for which it cannot be read, or 0.
  int error() const { return error_; }
  bool is_elf() const { return bytes_.starts_with(ELFMAG); }
  // The interpreter that a script names behind "#!", without arguments; empty if the file is not a script.
  std::string_view script_interpreter() const;

  // The following functions are for ELF files only. True if class, byte order and machine are the same.
  bool same_architecture(const ElfFile& other) const;
  // The dynamic loader that a 64-bit file names; empty if it names none.
  std::string_view loader() const;
  // True if the text is in its table of dynamic names (of needed libraries and symbols).
  bool names(std::string_view text) const;

 private:
  template <typename Structure>
  bool read(size_t at, Structure& structure) const;
  template <typename Callback>
  void for_each_segment(Callback callback) const;
  std::string_view part(size_t at, size_t size) const;
  std::string_view dynamic_names() const;

  std::string_view bytes_;
  int error_ = 0;
};

}  // namespace dapple::run
