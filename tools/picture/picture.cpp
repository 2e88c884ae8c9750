// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/picture/picture.hpp"

#include <errno.h>
#include <string.h>

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "tools/picture/packets.hpp"
#include "tools/picture/page.hpp"
#include "tools/picture/perfetto.hpp"
#include "tools/picture/queues.hpp"
#include "tools/picture/stage.hpp"
#include "tools/picture/trace_lines.hpp"

namespace dapple::picture {
namespace {

// The queue pair that the text of a report names; 0 for none.
uint32_t queue_pair_in(const std::string& text) {
  constexpr std::string_view kWords = "queue pair 0x";
  const size_t at = text.find(kWords);
  uint32_t qpn = 0;
  if (at != std::string::npos) std::from_chars(text.data() + at + kWords.size(), text.data() + text.size(), qpn, 16);
  return qpn;
}

// Reports of a dapple that did not note the time yet stand at the end.
void add_findings(Stage& stage, const std::vector<TraceLine>& reports, int64_t end_ns) {
  for (const TraceLine& report : reports) {
    if (report.text("kind").empty()) continue;
    const auto process = static_cast<uint32_t>(report.number("process"));
    TraceLine placed = report;
    if (placed.time_ns == 0) placed.time_ns = end_ns;
    const size_t item = stage.add_line(Kind::kFinding, stage.lane(process, "findings"), placed, report.text("kind"));
    stage.item(item).qpn = queue_pair_in(report.text("text"));
    stage.item(item).bad = report.text("level") != "note";
  }
}

Story story_of(const std::string& name, const std::string& findings) {
  const std::vector<TraceLine> lines = read_trace_lines(name + ".jsonl");
  const std::vector<CapturedPacket> packets = read_packets(name + ".pcap");
  std::vector<TraceLine> reports;
  if (!findings.empty()) reports = read_trace_lines(findings);
  Stage stage;
  Queues queues(stage);
  int64_t end_ns = 0;
  auto packet = packets.begin();
  for (const TraceLine& line : lines) {
    for (; packet != packets.end() && packet->time_ns < line.time_ns; ++packet) queues.tell(*packet);
    queues.tell(line);
    end_ns = line.time_ns;
  }
  for (; packet != packets.end(); ++packet) {
    queues.tell(*packet);
    end_ns = packet->time_ns;
  }
  queues.end(end_ns);
  add_findings(stage, reports, end_ns);
  return stage.take();
}

// A file that takes its name at the end, so that there is never a part of it.
class NewFile {
 public:
  NewFile(std::string path, const std::string& text) : path_(std::move(path)), new_path_(path_ + ".new") {
    std::ofstream file(new_path_, std::ios::binary | std::ios::trunc);
    file << text;
    file.close();
    if (!file) fail();
  }
  ~NewFile() { std::remove(new_path_.c_str()); }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void keep() {
    if (std::rename(new_path_.c_str(), path_.c_str()) != 0) fail();
  }

 private:
  [[noreturn]] void fail() {
    const int error = errno;
    std::remove(new_path_.c_str());
    throw std::runtime_error(path_ + " cannot be written: " + strerror(error));
  }

  const std::string path_;
  const std::string new_path_;
};

}  // namespace

void draw(const std::string& name, const std::string& findings) {
  const Story story = story_of(name, findings);
  if (story.items.empty()) throw std::runtime_error(name + ".jsonl and " + name + ".pcap have no call and no packet");
  NewFile perfetto(name + ".perfetto.json", as_perfetto(story));
  NewFile page(name + ".html", as_page(story, std::filesystem::path(name).filename().string()));
  page.keep();
  perfetto.keep();
}

}  // namespace dapple::picture
