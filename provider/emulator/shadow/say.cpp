// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/emulator/shadow/say.hpp"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "provider/common/settings.hpp"

namespace dapple::provider {
namespace {

void write_line(int file, char* text, size_t size, int length) {
  if (length < 0) return;
  size_t end = static_cast<size_t>(length) < size - 1 ? static_cast<size_t>(length) : size - 2;
  text[end++] = '\n';
  if (write(file, text, end) < 0) return;
}

}  // namespace

// Does not use stdio: the signal may have interrupted a thread that holds stdio's lock.
void say(const char* format, ...) {
  constexpr char kName[] = "dapple: emulator: ";
  constexpr int kNameLength = sizeof kName - 1;
  char text[800];
  memcpy(text, kName, sizeof kName);
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(text + kNameLength, sizeof text - kNameLength, format, arguments);
  va_end(arguments);
  write_line(STDERR_FILENO, text, sizeof text, length < 0 ? length : kNameLength + length);
}

void note_for_launcher(const char* what, unsigned findings) {
  const char* name = settings().check_log;
  if (name == nullptr) return;
  const int file = open(name, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) return;
  char text[64];
  const int length = snprintf(text, sizeof text, "%s %d %u", what, getpid(), findings);
  write_line(file, text, sizeof text, length);
  close(file);
}

}  // namespace dapple::provider
