// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/emulator/finding.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "provider/emulator/say.hpp"

namespace dapple::provider {
namespace {

iovec piece(const char* text) {
  return {const_cast<char*>(text), strlen(text)};
}

// In one piece, because several processes and threads write there. Nothing can be done about a file that is closed.
template <size_t kCount>
void write_pieces(int file, const iovec (&pieces)[kCount]) {
  [[maybe_unused]] const ssize_t written = writev(file, pieces, static_cast<int>(kCount));
}

// Names of files and programs may have any bytes, and this may be a handler of a signal.
void make_json(char* text) {
  for (; *text != '\0'; ++text) {
    if (*text == '"' || *text == '\\' || static_cast<unsigned char>(*text) < ' ') *text = '?';
  }
}

// The format is that of the software device's check: dapple-run reads both.
void record(const char* file_name, const FindingKind& kind, char* text) {
  const int file = open(file_name, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) return;
  char program[64];
  snprintf(program, sizeof program, "%s", program_invocation_short_name);
  make_json(program);
  make_json(text);
  char process[128];
  snprintf(process, sizeof process, "{\"kind\":\"%s\",\"level\":\"error\",\"process\":%d,\"program\":\"", kind.name,
           getpid());
  write_pieces(file, {piece(process), piece(program), piece("\",\"text\":\""), piece(text), piece(".\",\"remedy\":\""),
                      piece(kind.remedy), piece("\",\"places\":[]}\n")});
  close(file);
}

}  // namespace

void report(const FindingKind& kind, const char* format, ...) {
  char text[768];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  const char* records = secure_getenv("DAPPLE_CHECK_RECORDS");
  if (records == nullptr || records[0] == '\0') return say("%s", text);
  write_pieces(STDERR_FILENO, {piece("dapple: error: "), piece(kind.name), piece(": "), piece(text), piece(".\n  "),
                               piece(kind.remedy), piece("\n")});
  record(records, kind, text);
}

}  // namespace dapple::provider
