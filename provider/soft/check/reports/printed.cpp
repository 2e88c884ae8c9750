// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/reports/printed.hpp"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include <cassert>

#include "provider/soft/check/reports/loaded_heap.hpp"
#include "provider/system/own_thread.hpp"

namespace dapple::soft::check {
namespace {

std::string frame_text(const Frame& frame) {
  std::string text = frame.function.empty() ? "?" : frame.function;
  if (!frame.source.empty()) text += " at " + frame.source + ":" + std::to_string(frame.line);
  char offset[32] = "";  // lines of scripts have none
  if (frame.offset != 0) snprintf(offset, sizeof offset, "+0x%llx", static_cast<unsigned long long>(frame.offset));
  return text + " (" + frame.module.substr(frame.module.rfind('/') + 1) + offset + ")";
}

std::string frame_json(const Frame& frame) {
  return "{\"module\":" + json_string(frame.module) + ",\"offset\":" + std::to_string(frame.offset) +
         ",\"function\":" + json_string(frame.function) + ",\"source\":" + json_string(frame.source) +
         ",\"line\":" + std::to_string(frame.line) + "}";
}

}  // namespace

// libdw needs more than 150 KB of stack. The background thread, or a thread of the program, may not have that much
// left.
std::vector<NamedStack> named(const std::vector<ReportedStack>& places, const std::vector<Callers>& callers) {
  assert(places.size() == callers.size());
  struct Work {
    const std::vector<ReportedStack>& places;
    const std::vector<Callers>& callers;
    std::vector<NamedStack> named;
  };
  Work work = {places, callers, {}};
  run_with_room(
      [](void* argument) -> void* {
        // libdw maps and unmaps files, maybe where registered memory has been, and the reporter is locked.
        const bool was_paused = pause_heap(true);
        Work& own = *static_cast<Work*>(argument);
        for (size_t i = 0; i < own.places.size(); i++)
          own.named.push_back({own.places[i].title, frames_of(own.callers[i])});
        pause_heap(was_paused);
        return nullptr;
      },
      &work);
  return work.named;
}

std::string as_text(const Report& report, const std::vector<NamedStack>& places) {
  std::string text = std::string("dapple: ") + name_of(report.level) + ": " + report.kind + ": " + report.text + "\n";
  for (const NamedStack& place : places) {
    text += std::string("  ") + place.title + ":\n";
    for (size_t i = 0; i < place.frames.size(); i++)
      text += "    #" + std::to_string(i) + " " + frame_text(place.frames[i]) + "\n";
  }
  return text + "  " + report.remedy + "\n";
}

std::string json_string(std::string_view text) {
  std::string result = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') {
      result += '\\';
      result += letter;
    } else if (static_cast<unsigned char>(letter) < ' ') {
      char escaped[8];
      snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(letter));
      result += escaped;
    } else {
      result += letter;
    }
  }
  return result + "\"";
}

std::string as_json(const Report& report, const std::vector<NamedStack>& places, const timespec& found) {
  char time[40];
  snprintf(time, sizeof time, "{\"time\":%lld.%09ld,", static_cast<long long>(found.tv_sec), found.tv_nsec);
  std::string json = std::string(time) + "\"kind\":\"" + report.kind + "\",\"level\":\"" + name_of(report.level) +
                     "\",\"program\":" + json_string(program_invocation_short_name) +
                     ",\"process\":" + std::to_string(getpid()) + ",\"text\":" + json_string(report.text) +
                     ",\"remedy\":" + json_string(report.remedy) + ",\"places\":[";
  for (size_t i = 0; i < places.size(); i++) {
    json += (i == 0 ? "{\"title\":" : ",{\"title\":") + json_string(places[i].title) + ",\"frames\":[";
    for (size_t j = 0; j < places[i].frames.size(); j++) json += (j == 0 ? "" : ",") + frame_json(places[i].frames[j]);
    json += "]}";
  }
  return json + "]}\n";
}

}  // namespace dapple::soft::check
