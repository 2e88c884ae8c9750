// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/face/identity/profile_file.hpp"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "provider/face/identity/profile.hpp"

namespace dapple::face {
namespace {

// Seen from the folder of dapple-run or of dappled, installed and in a build.
constexpr const char* kPlaces[] = {
    "/../share/dapple/profiles",     // PREFIX/bin, and the build folder's bin
    "/../../share/dapple/profiles",  // PREFIX/libexec/dapple
};

int is_profile(const dirent* entry) {
  return std::string_view(entry->d_name).ends_with(ProfileFiles::kEnding);
}

// The names of the folder's profiles in one text, for a message: a name that no profile has is often one of a driver or
// of a vendor, which resembles none of them.
void list_profiles(const char* folder, char (&list)[128]) {
  list[0] = '\0';
  dirent** entries = nullptr;
  const int count = scandir(folder, &entries, is_profile, alphasort);
  size_t size = 0;
  for (int i = 0; i < count; i++) {
    std::string_view file = entries[i]->d_name;
    file.remove_suffix(ProfileFiles::kEnding.size());
    const int added = snprintf(list + size, sizeof list - size, "%s%.*s", size == 0 ? "" : ", ",
                               static_cast<int>(file.size()), file.data());
    size = std::min(size + static_cast<size_t>(added), sizeof list - 1);
    free(entries[i]);
  }
  free(entries);
}

bool is_word(std::string_view name) {
  return name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == name.npos;
}

}  // namespace

bool find_profiles(char (&folder)[PATH_MAX]) {
  char own[PATH_MAX];
  // Without /proc: the name by which it was executed.
  if (realpath("/proc/self/exe", own) == nullptr &&
      realpath(reinterpret_cast<const char*>(getauxval(AT_EXECFN)), own) == nullptr)
    return false;
  if (char* slash = strrchr(own, '/'); slash != nullptr) *slash = '\0';
  for (const char* place : kPlaces) {
    const int size = snprintf(folder, sizeof folder, "%s%s", own, place);
    if (size > 0 && static_cast<size_t>(size) < sizeof folder && access(folder, R_OK | X_OK) == 0) return true;
  }
  return false;
}

bool read_identity_from_files(std::string_view spec, Identity& identity, soft::Problem& problem) {
  ProfileFiles files;
  return read_identity(spec, files, identity, problem);
}

bool ProfileFiles::read_file(int file, std::string_view name, std::string_view& text, soft::Problem& problem) {
  struct stat status;
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    problem.set(EINVAL, "the profile %.*s is no regular file", shown(name), name.data());
    return false;
  }
  // One byte more, to see that the file ends.
  if (room_ == nullptr) room_.reset(new (std::nothrow) char[kMaxProfile + 1]);
  if (room_ == nullptr) {
    problem.set(ENOMEM, "no memory for a profile");
    return false;
  }
  size_t size = 0;
  ssize_t read = 1;
  while (read > 0 && size <= kMaxProfile) {
    read = pread(file, room_.get() + size, kMaxProfile + 1 - size, static_cast<off_t>(size));
    if (read > 0) size += static_cast<size_t>(read);
  }
  if (read < 0) {
    problem.set(errno, "the profile %.*s cannot be read: %s", shown(name), name.data(), strerror(errno));
    return false;
  }
  if (size > kMaxProfile) {
    problem.set(EFBIG, "the profile %.*s has more than %zu bytes", shown(name), name.data(), kMaxProfile);
    return false;
  }
  text = {room_.get(), size};
  return true;
}

bool ProfileFiles::read(std::string_view name, std::string_view& text, soft::Problem& problem) {
  if (is_path(name) && file_ >= 0) return read_file(file_, name, text, problem);
  if (is_path(name) && file_ == kNoPaths) {
    problem.set(EACCES, "the profile %.*s came without its file", shown(name), name.data());
    return false;
  }
  char path[PATH_MAX + NAME_MAX];
  char folder[PATH_MAX] = "";
  if (is_path(name)) {
    snprintf(path, sizeof path, "%.*s", static_cast<int>(std::min<size_t>(name.size(), PATH_MAX)), name.data());
  } else if (!is_word(name) || name.size() > 64) {
    problem.set(EINVAL, "the profile %.*s is unknown; the path of your own profile has a slash: ./%.*s", shown(name),
                name.data(), shown(name), name.data());
    return false;
  } else if (!find_profiles(folder)) {
    problem.set(ENOENT,
                "the folder share/dapple/profiles is missing; install dapple again, or name a profile by its path");
    return false;
  } else {
    snprintf(path, sizeof path, "%s/%.*s%s", folder, static_cast<int>(name.size()), name.data(), kEnding.data());
  }
  const soft::OwnedFd file(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file) return read_file(file.get(), name, text, problem);
  if (errno == ENOENT && folder[0] != '\0') {
    char list[128];
    list_profiles(folder, list);
    problem.set(ENOENT, "the profile %.*s is unknown; the profiles are %s", shown(name), name.data(), list);
    return false;
  }
  problem.set(errno, "the profile %.*s cannot be read: %s", shown(name), name.data(), strerror(errno));
  return false;
}

}  // namespace dapple::face
