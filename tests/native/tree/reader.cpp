// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// reader FOLDER: prints what is below a folder, as reader.c does, with std::filesystem.
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

namespace fs = std::filesystem;

namespace {

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  errno = 0;
  if (!std::getline(file, line) && errno != 0) return std::strerror(errno);
  return line;
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) return 2;
  const fs::path top = words[1];
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(top)) {
    const std::string name = entry.path().lexically_relative(top).string();
    if (entry.is_symlink()) {
      std::cout << "l " << name << ' ' << fs::read_symlink(entry.path()).string() << '\n';
    } else if (entry.is_directory()) {
      std::cout << "d " << name << '\n';
    } else {
      std::cout << "f " << name << ' ' << first_line(entry.path()) << '\n';
    }
  }
  // The whole path of a name in another folder.
  const fs::path whole = fs::canonical(top / "subsystem");
  if (whole != "/sys/class/infiniband") std::cout << "canonical: " << whole << '\n';
}
