// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/sanitizers/memcheck.hpp"

namespace dapple::soft {
namespace {

// The numbers of valgrind.h and memcheck.h, which not every build machine has. They are valgrind's ABI.
constexpr uint64_t kChangeErrorDisablement = 0x1801;
constexpr uint64_t kMemcheck = uint64_t{'M'} << 24 | uint64_t{'C'} << 16;
constexpr uint64_t kMakeMemDefined = kMemcheck + 2;
constexpr uint64_t kCheckMemIsAddressable = kMemcheck + 4;
constexpr uint64_t kCheckMemIsDefined = kMemcheck + 5;
constexpr uint64_t kMakeMemDefinedIfAddressable = kMemcheck + 11;

// A client request: instructions that do nothing on a CPU, and that valgrind takes for a call. 0 without valgrind.
uint64_t request(uint64_t number, uint64_t first, uint64_t second = 0) {
  [[maybe_unused]] const volatile uint64_t arguments[6] = {number, first, second, 0, 0, 0};
  uint64_t result = 0;
#if defined(__x86_64__)
  asm volatile(
      "rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi\n\t"
      "xchgq %%rbx, %%rbx"
      : "+d"(result)
      : "a"(&arguments[0])
      : "cc", "memory");
#elif defined(__aarch64__)
  register uint64_t answer asm("x3") = 0;
  register const volatile uint64_t* question asm("x4") = arguments;
  asm volatile(
      "ror x12, x12, #3; ror x12, x12, #13; ror x12, x12, #51; ror x12, x12, #61\n\t"
      "orr x10, x10, x10"
      : "+r"(answer)
      : "r"(question)
      : "cc", "memory");
  result = answer;
#endif
  return result;
}

uint64_t address_of(const void* memory) {
  return reinterpret_cast<uintptr_t>(memory);
}

// Like the request, but without a report.
bool passes(uint64_t check, const void* memory, size_t size) {
  request(kChangeErrorDisablement, 1);
  const uint64_t first_bad = request(check, address_of(memory), size);
  request(kChangeErrorDisablement, static_cast<uint64_t>(-1));
  return first_bad == 0;
}

}  // namespace

Sanitizer* Memcheck::of_program() {
  static Memcheck made;
  const char byte = 0;
  return request(kMakeMemDefined, address_of(&byte), sizeof byte) != 0 ? &made : nullptr;
}

void Memcheck::before(const DeviceAccess& access, const void* memory, size_t size) {
  if (!passes(kCheckMemIsAddressable, memory, size)) {
    // The report follows when the plug-in copies.
    announce(access, memory, size);
    return;
  }
  if (access.kind == DeviceAccess::Kind::kWrite || passes(kCheckMemIsDefined, memory, size)) return;
  announce(access, memory, size);
  request(kCheckMemIsDefined, address_of(memory), size);
}

void Memcheck::stored(const void* memory, size_t size) {
  request(kMakeMemDefinedIfAddressable, address_of(memory), size);
}

}  // namespace dapple::soft
