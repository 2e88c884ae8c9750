// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
// replay FOLDER: runs a fuzz target over the files of its corpus without libFuzzer, with any compiler.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: replay FOLDER\n", stderr);
    return 2;
  }
  int inputs = 0;
  for (const auto& file : std::filesystem::directory_iterator(argv[1])) {
    std::ifstream in(file.path(), std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
    // The name is printed before the run, so that a crash names its input.
    std::printf("%s, %zu bytes\n", file.path().filename().c_str(), bytes.size());
    std::fflush(stdout);
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    ++inputs;
  }
  if (inputs == 0) std::fprintf(stderr, "%s holds no input\n", argv[1]);
  return inputs == 0 ? 1 : 0;
}
