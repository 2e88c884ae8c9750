// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/doors/paths/face_mark.hpp"

#include <string.h>

#include "provider/protocol/tree_stage.hpp"

namespace dapple::doors {
namespace {

constexpr char kMark[] = "/dapple-face-";
constexpr char kGone[] = " (deleted)";
constexpr size_t kStageSize = sizeof soft::kTreeStage - 1;

// "/.dapple-next/sys|class" becomes "/sys/class".
void restore_staged(char* path) {
  if (strncmp(path + 1, soft::kTreeStage, kStageSize) != 0 || path[1 + kStageSize] != '/') return;
  memmove(path, path + 1 + kStageSize, strlen(path + 1 + kStageSize) + 1);
  for (char* each = path; (each = strchr(each, soft::kStagedSlash)) != nullptr;) *each = '/';
}

bool is_top(const char* path, const char* name) {
  const size_t size = strlen(name);
  return strncmp(path, name, size) == 0 && (path[size] == '/' || path[size] == '\0');
}

}  // namespace

const char* shown_path(const char* path) {
  for (const char* mark = strstr(path, kMark); mark != nullptr; mark = strstr(mark + 1, kMark)) {
    const char* digits = mark + sizeof kMark - 1;
    const size_t count = strspn(digits, "0123456789abcdef");
    const char* rest = digits + count;
    if (count == 0) continue;
    if (*rest == '\0') return "/";
    if (is_top(rest, "/sys") || is_top(rest, "/dev")) return rest;
    if (*rest == '/' && is_top(rest + 1, soft::kTreeStage)) return rest;
  }
  return nullptr;
}

ssize_t show(char* path, ssize_t size) {
  const char* shown = shown_path(path);
  if (shown == nullptr) return size;
  size_t left = strlen(shown);
  constexpr size_t kGoneSize = sizeof kGone - 1;
  if (left > kGoneSize && strcmp(shown + left - kGoneSize, kGone) == 0) left -= kGoneSize;
  memmove(path, shown, left);
  path[left] = '\0';
  restore_staged(path);
  return static_cast<ssize_t>(strlen(path));
}

}  // namespace dapple::doors
