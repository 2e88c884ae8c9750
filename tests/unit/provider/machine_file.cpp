// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/unit/provider/machine_file.hpp"

#include <endian.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "provider/device/override.hpp"

namespace machine_file {
namespace {

namespace fs = std::filesystem;
using dapple::coherence::CpuDescription;
using dapple::provider::Architecture;

struct Cpu {
  Architecture architecture;
  CpuDescription description;
};

const std::map<std::string, Cpu>& cpus() {
  static const std::map<std::string, Cpu> all = [] {
    std::map<std::string, Cpu> made;
    const auto add = [&made](const char* name, Architecture architecture, const char* clean, const char* invalidate,
                             const char* persist, uint32_t line, uint32_t granule) {
      CpuDescription cpu{};
      cpu.architecture = name;
      cpu.can_clean = cpu.can_clean_invalidate = std::string(clean) != "none";
      cpu.clean_instruction = clean;
      cpu.clean_invalidate_instruction = invalidate;
      cpu.completion_instruction = "wait";
      cpu.can_persist = std::string(persist) != "none";
      cpu.persist_instruction = persist;
      cpu.refusal = cpu.can_clean ? nullptr : "it does not";
      cpu.line_size_bytes = line;
      cpu.writeback_granule_bytes = granule;
      made.emplace(name, Cpu{architecture, cpu});
    };
    add("x86-64", Architecture::kX86, "clwb", "clflushopt", "clwb", 64, 64);
    add("arm64", Architecture::kArm64, "dc cvac", "dc civac", "dc cvap", 64, 128);
    add("riscv64", Architecture::kRiscv64, "cbo.clean", "cbo.flush", "none", 64, 64);
    add("riscv64-without-zicbom", Architecture::kRiscv64, "none", "none", "none", 64, 128);
    add("ppc64le", Architecture::kPpc64le, "dcbst", "dcbf", "dcbstps", 128, 128);
    return made;
  }();
  return all;
}

void write(const fs::path& path, const std::string& content) {
  fs::create_directories(path.parent_path());
  fs::remove(path);
  std::ofstream(path, std::ios::binary) << content;
}

std::string rest_of(std::istringstream& line) {
  std::string rest;
  std::getline(line >> std::ws, rest);
  return rest;
}

void write_cells(const fs::path& path, std::istringstream& line) {
  std::string content;
  for (uint32_t number = 0; line >> number;) {
    const uint32_t cell = htobe32(number);
    content.append(reinterpret_cast<const char*>(&cell), sizeof cell);
  }
  write(path, content);
}

void write_strings(const fs::path& path, std::istringstream& line) {
  std::string content;
  for (std::string word; line >> word;) content += word + '\0';
  write(path, content);
}

void write_bytes(const fs::path& path, std::istringstream& line) {
  long offset = 0;
  unsigned int byte = 0;
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  line.unsetf(std::ios::basefield);
  line >> offset >> std::hex;
  file.seekp(offset);
  while (line >> byte) file.put(static_cast<char>(byte));
}

// `folder` has the machines' files.
bool read_line(const std::string& text, const fs::path& folder, const std::string& root, MachineFile& machine) {
  std::istringstream line(text);
  std::string keyword;
  std::string name;
  if (!(line >> keyword) || keyword[0] == '#') return true;
  if (!(line >> name)) return false;
  if (keyword == "expect") {
    machine.expected[name] = rest_of(line);
    return true;
  }
  const fs::path path = root + "/" + name;
  if (keyword == "architecture") {
    machine.architecture = name;
    return cpus().count(name) != 0;
  }
  if (keyword == "like") return read(folder / name, root, machine);
  if (keyword == "without") return fs::remove_all(path) > 0;
  if (keyword == "device") {
    machine.device = name;
  } else if (keyword == "environment") {
    machine.environment = name;
  } else if (keyword == "parameter") {
    machine.parameter = name;
  } else if (keyword == "persistence") {
    machine.persistence = name;
  } else if (keyword == "driver" && name == "software") {
    machine.software_driver = true;
  } else if (keyword == "dma" && name == "bounced") {
    machine.bounced = true;
  } else if (keyword == "registration" && (name == "accepted" || name == "refused")) {
    using dapple::provider::Registration;
    machine.registration = name == "accepted" ? Registration::kAccepted : Registration::kRefused;
  } else if (keyword == "folder") {
    fs::create_directories(path);
  } else if (keyword == "file") {
    const std::string content = rest_of(line);
    write(path, content.empty() ? "" : content + "\n");
  } else if (keyword == "strings") {
    write_strings(path, line);
  } else if (keyword == "cells") {
    write_cells(path, line);
  } else if (keyword == "size") {
    size_t size = 0;
    line >> size;
    write(path, std::string(size, '\0'));
  } else if (keyword == "bytes") {
    write_bytes(path, line);
  } else if (keyword == "link") {
    fs::create_directories(path.parent_path());
    fs::remove(path);
    fs::create_symlink(rest_of(line), path);
  } else {
    return false;
  }
  return true;
}

const char* answer(uint8_t value) {
  return dappledv_answer_str(static_cast<dappledv_answer>(value));
}

}  // namespace

bool read(const std::string& file, const std::string& root, MachineFile& machine) {
  std::ifstream input(file);
  if (!input) {
    std::fprintf(stderr, "cannot read %s\n", file.c_str());
    return false;
  }
  int number = 0;
  for (std::string line; std::getline(input, line);) {
    ++number;
    if (read_line(line, fs::path(file).parent_path(), root, machine)) continue;
    std::fprintf(stderr, "%s:%d: %s\n", file.c_str(), number, line.c_str());
    return false;
  }
  return true;
}

dappledv_device_attr describe(const MachineFile& machine, const std::string& root) {
  using dapple::provider::Path;
  const Cpu& cpu = cpus().at(machine.architecture);
  dapple::provider::Overrides overrides;
  overrides.environment = dapple::provider::find_override(machine.environment, "mlx5_0").coherence;
  if (!dapple::provider::read_persistence(machine.persistence.c_str(), overrides.persistence)) std::abort();
  if (machine.parameter) overrides.parameter = dapple::provider::parse_coherence_word(*machine.parameter);
  dapple::provider::DeviceAnswers answers;
  answers.software_driver = machine.software_driver;
  answers.registration = machine.registration;
  answers.bounced = machine.bounced;
  dappledv_device_attr attr;
  dapple::provider::describe({cpu.description, cpu.architecture, Path(root), nullptr, nullptr},
                             Path(root + "/" + machine.device), overrides, answers, attr);
  return attr;
}

std::map<std::string, std::string> fields_of(const dappledv_device_attr& attr) {
  const auto number = [](uint64_t value) { return std::to_string(value); };
  return {
      {"coherence", dappledv_coherence_str(attr.coherence)},
      {"reason", dappledv_reason_str(attr.reason)},
      {"certainty", dappledv_certainty_str(attr.certainty)},
      {"explanation", attr.explanation},
      {"line_size", number(attr.line_size)},
      {"writeback_granule", number(attr.writeback_granule)},
      {"sync_for_device_required", number(attr.sync_for_device_required)},
      {"sync_for_cpu_required", number(attr.sync_for_cpu_required)},
      {"sync_supported", number(attr.sync_supported)},
      {"sync_complete", number(attr.sync_complete)},
      {"clean_instruction", attr.clean_instruction},
      {"clean_invalidate_instruction", attr.clean_invalidate_instruction},
      {"caches_persistent", answer(attr.caches_persistent)},
      {"persist_instruction", attr.persist_instruction},
      {"persist_supported", number(attr.persist_supported)},
      {"refusal", attr.refusal ? attr.refusal : "none"},
      {"pci_relaxed_ordering", answer(attr.pci_relaxed_ordering)},
      {"pci_no_snoop", answer(attr.pci_no_snoop)},
  };
}

}  // namespace machine_file
