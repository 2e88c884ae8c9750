// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-run/process/elf_file.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dapple::run {

ElfFile::ElfFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    error_ = errno;
    return;
  }
  struct stat status;
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
    const auto size = static_cast<size_t>(status.st_size);
    void* bytes = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes != MAP_FAILED) bytes_ = {static_cast<const char*>(bytes), size};
    if (bytes == MAP_FAILED) error_ = errno;
  }
  close(fd);
}

ElfFile::~ElfFile() {
  if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

template <typename Structure>
bool ElfFile::read(size_t at, Structure& structure) const {
  if (at > bytes_.size() || bytes_.size() - at < sizeof structure) return false;
  memcpy(&structure, bytes_.data() + at, sizeof structure);
  return true;
}

std::string_view ElfFile::part(size_t at, size_t size) const {
  if (at > bytes_.size() || bytes_.size() - at < size) return {};
  return bytes_.substr(at, size);
}

template <typename Callback>
void ElfFile::for_each_segment(Callback callback) const {
  Elf64_Ehdr header;
  if (!read(0, header) || header.e_ident[EI_CLASS] != ELFCLASS64) return;
  for (size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (read(header.e_phoff + i * header.e_phentsize, segment)) callback(segment);
  }
}

std::string_view ElfFile::script_interpreter() const {
  if (!bytes_.starts_with("#!")) return {};
  std::string_view line = bytes_.substr(2, bytes_.find('\n') - 2);
  const size_t begin = line.find_first_not_of(" \t");
  if (begin == line.npos) return {};
  line.remove_prefix(begin);
  return line.substr(0, line.find_first_of(" \t\r"));
}

bool ElfFile::same_architecture(const ElfFile& other) const {
  const auto key = [](const ElfFile& file) {
    return std::pair(file.part(EI_CLASS, 2), file.part(offsetof(Elf64_Ehdr, e_machine), sizeof(Elf64_Half)));
  };
  return key(*this) == key(other);
}

std::string_view ElfFile::loader() const {
  std::string_view found;
  for_each_segment([&](const Elf64_Phdr& segment) {
    if (segment.p_type != PT_INTERP) return;
    found = part(segment.p_offset, segment.p_filesz);
    found = found.substr(0, found.find('\0'));
  });
  return found;
}

std::string_view ElfFile::dynamic_names() const {
  size_t address = 0;
  size_t size = 0;
  for_each_segment([&](const Elf64_Phdr& segment) {
    if (segment.p_type != PT_DYNAMIC) return;
    Elf64_Dyn entry;
    for (size_t at = segment.p_offset; read(at, entry) && entry.d_tag != DT_NULL; at += sizeof entry) {
      if (entry.d_tag == DT_STRTAB) address = entry.d_un.d_ptr;
      if (entry.d_tag == DT_STRSZ) size = entry.d_un.d_val;
    }
  });
  std::string_view names;
  for_each_segment([&](const Elf64_Phdr& segment) {
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz) {
      names = part(segment.p_offset + (address - segment.p_vaddr), size);
    }
  });
  return names;
}

bool ElfFile::names(std::string_view text) const {
  return dynamic_names().find(text) != std::string_view::npos;
}

}  // namespace dapple::run
