// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Records the output of a piece of code on stderr.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

template <class Function>
std::string captured(Function function) {
  std::fflush(stderr);
  std::FILE* file = std::tmpfile();
  const int saved = dup(STDERR_FILENO);
  dup2(fileno(file), STDERR_FILENO);
  function();
  std::fflush(stderr);
  dup2(saved, STDERR_FILENO);
  close(saved);
  std::string text;
  std::rewind(file);
  for (int c; (c = std::fgetc(file)) != EOF;) text += static_cast<char>(c);
  std::fclose(file);
  return text;
}

// Exactly one line of ours.
inline bool is_one_line(const std::string& text) {
  return text.starts_with("dapple: ") && text.find('\n') == text.size() - 1;
}
