// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/device/override.hpp"

#include <initializer_list>

#include "tests/unit/provider/cmocka.hpp"

namespace {

using dapple::provider::find_override;
using dapple::provider::Override;
using dapple::provider::parse_coherence_word;

void assert_says(const char* value, const char* device, dappledv_coherence expected) {
  const Override found = find_override(value, device);
  assert_null(found.error);
  assert_true(found.coherence.has_value());
  assert_int_equal(*found.coherence, expected);
}

void assert_silent(const char* value, const char* device) {
  const Override found = find_override(value, device);
  assert_null(found.error);
  assert_false(found.coherence.has_value());
}

void assert_malformed(const char* value) {
  const Override found = find_override(value, "rxe0");
  if (found.error == nullptr) fail_msg("accepted: \"%s\"", value);
  assert_false(found.coherence.has_value());
}

void parse_coherence_word__known_words(void**) {
  assert_int_equal(*parse_coherence_word("coherent"), DAPPLEDV_COHERENCE_COHERENT);
  assert_int_equal(*parse_coherence_word("cpu"), DAPPLEDV_COHERENCE_NONCOHERENT_CPU);
  assert_int_equal(*parse_coherence_word("io"), DAPPLEDV_COHERENCE_NONCOHERENT_IO);
}

void parse_coherence_word__other_words_are_none(void**) {
  for (const char* word : {"", "Coherent", "CPU", "coherent ", " io", "unknown", "cohere", "coherently", "1"}) {
    assert_false(parse_coherence_word(word).has_value());
  }
}

void find_override__one_word_is_for_every_device(void**) {
  assert_says("coherent", "rxe0", DAPPLEDV_COHERENCE_COHERENT);
  assert_says("cpu", "rxe0", DAPPLEDV_COHERENCE_NONCOHERENT_CPU);
  assert_says("io", "mlx5_0", DAPPLEDV_COHERENCE_NONCOHERENT_IO);
}

void find_override__empty_value_says_nothing(void**) {
  assert_silent("", "rxe0");
}

void find_override__list_is_for_the_devices_it_names(void**) {
  const char value[] = "rxe0=cpu,mlx5_0=coherent,siw0=io";
  assert_says(value, "rxe0", DAPPLEDV_COHERENCE_NONCOHERENT_CPU);
  assert_says(value, "mlx5_0", DAPPLEDV_COHERENCE_COHERENT);
  assert_says(value, "siw0", DAPPLEDV_COHERENCE_NONCOHERENT_IO);
  assert_says("rxe0=io", "rxe0", DAPPLEDV_COHERENCE_NONCOHERENT_IO);
}

void find_override__names_match_whole(void**) {
  assert_silent("rxe0=cpu,mlx5_0=coherent", "rxe");
  assert_silent("rxe0=cpu,mlx5_0=coherent", "rxe01");
  assert_silent("rxe0=cpu,mlx5_0=coherent", "mlx5_1");
  assert_silent("rxe0=cpu,mlx5_0=coherent", "");
}

void find_override__malformed_values(void**) {
  for (const char* value : {"coherentt",
                            " cpu",
                            "cpu ",
                            "yes",
                            ",",
                            "=",
                            "rxe0",
                            "cpu,",
                            ",cpu",
                            "cpu,io",
                            "rxe0=",
                            "rxe0=yes",
                            "=cpu",
                            "rxe0=cpu,",
                            ",rxe0=cpu",
                            "rxe0=cpu,,rxe1=io",
                            "rxe0=cpu, rxe1=i",
                            "rxe0=cpu=io",
                            "rxe0=cpu,io",
                            "cpu,rxe0=io",
                            "rxe0==cpu",
                            "rxe0=cpu,rxe0=cpu",
                            "rxe0=cpu,rxe1=io,rxe0=io"}) {
    assert_malformed(value);
  }
}

void find_override__mistake_about_another_device_shows(void**) {
  assert_malformed("rxe0=cpu,mlx5_0=Coherent");
  assert_malformed("rxe0=cpu,mlx5_0=io,mlx5_0=io");
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(parse_coherence_word__known_words),
      cmocka_unit_test(parse_coherence_word__other_words_are_none),
      cmocka_unit_test(find_override__one_word_is_for_every_device),
      cmocka_unit_test(find_override__empty_value_says_nothing),
      cmocka_unit_test(find_override__list_is_for_the_devices_it_names),
      cmocka_unit_test(find_override__names_match_whole),
      cmocka_unit_test(find_override__malformed_values),
      cmocka_unit_test(find_override__mistake_about_another_device_shows),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
