// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/registry/configuration/conf_parser.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/unit/udapl-registry/checks.hpp"

using namespace dapple::registry;

namespace {

const std::string kGood = "ofa-v2-d0 u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 \"d0 0\" \"\"";

/// The result of parsing a text, in one string: entries as name|lib|params@line, reports as !line: what.
std::string parsed(const std::string& text, ApiMajors wanted = {2}) {
  std::string out;
  const auto entries = parse_dat_conf(text, wanted, [&](unsigned line, const std::string& what) {
    out += "!" + std::to_string(line) + ": " + what + "\n";
  });
  for (const ConfEntry& entry : entries)
    out += entry.ia_name + "|" + entry.library + "|" + entry.ia_params + "@" + std::to_string(entry.line) + "\n";
  return out;
}

void expect(const std::string& text, const char* expected) {
  const std::string found = parsed(text);
  CHECK_EQUAL(found, expected);
}

std::string with_field(unsigned field, const std::string& value) {
  std::string fields[] = {"name", "u2.0", "nonthreadsafe", "default", "lib.so", "dapl.2.0", "\"p\"", "\"\""};
  fields[field] = value;
  std::string line;
  for (const std::string& each : fields) line += each + " ";
  return line;
}

void parse_dat_conf__one_line_all_fields() {
  const auto entries = parse_dat_conf("n u2.1 threadsafe nondefault /l/lib.so v.3.14 \"a b\" \"c d\"", {2},
                                      [](unsigned, const std::string& what) { CHECK_EQUAL(what, ""); });
  CHECK_EQUAL(entries.size(), 1);
  const ConfEntry& entry = entries[0];
  CHECK_EQUAL(entry.ia_name, "n");
  CHECK_EQUAL(entry.api.major, 2);
  CHECK_EQUAL(entry.api.minor, 1);
  CHECK(entry.is_thread_safe);
  CHECK(!entry.is_default);
  CHECK_EQUAL(entry.library, "/l/lib.so");
  CHECK_EQUAL(entry.provider_id, "v");
  CHECK_EQUAL(entry.provider.major, 3);
  CHECK_EQUAL(entry.provider.minor, 14);
  CHECK_EQUAL(entry.ia_params, "a b");
  CHECK_EQUAL(entry.platform_params, "c d");
  CHECK_EQUAL(entry.line, 1);
}

void parse_dat_conf__blank_and_comment_lines_are_nothing() {
  expect("", "");
  expect("\n\n", "");
  expect("# " + kGood + "\n \t # x\n   \n", "");
  expect("\n#\n" + kGood, "ofa-v2-d0|libdaplofa.so.2|d0 0@3\n");
}

void parse_dat_conf__comment_after_an_entry() {
  expect(kGood + " # and so on \"", "ofa-v2-d0|libdaplofa.so.2|d0 0@1\n");
  // Only at the start of a word.
  expect(with_field(0, "a#b"), "a#b|lib.so|p@1\n");
}

void parse_dat_conf__quotes_and_escapes() {
  expect(with_field(6, R"("say \"hi\" to \\ # all")"), "name|lib.so|say \"hi\" to \\ # all@1\n");
  expect(with_field(6, "\"tab\there\""), "name|lib.so|tab\there@1\n");
  expect(with_field(0, "\"quoted name\""), "quoted name|lib.so|p@1\n");
  // A backslash in a bare word stays; a quote in it ends the word.
  expect(with_field(4, R"(a\b.so)"), "name|a\\b.so|p@1\n");
  expect(with_field(4, R"(a\"b.so)"), "name|a\\\"b.so|p@1\n");
  expect("n u2.0 nonthreadsafe default lib\"dapl.2.0 \"p\"\"\"", "n|lib\"|p@1\n");
}

void parse_dat_conf__crlf_and_tabs() {
  expect(kGood + "\r\n#c\r\n\r\n" + kGood + "\r",
         "ofa-v2-d0|libdaplofa.so.2|d0 0@1\nofa-v2-d0|libdaplofa.so.2|d0 0@4\n");
  expect("n\tu2.0\tnonthreadsafe\tdefault\tlib\td.2.0\t\"\"\t\"\"\n", "n|lib|@1\n");
}

void parse_dat_conf__other_registries_lines_are_passed_over() {
  expect("OpenIB-cma u1.2 nonthreadsafe default libdaplcma.so.1 dapl.1.2 \"ib0 0\" \"\"\n" + kGood,
         "ofa-v2-d0|libdaplofa.so.2|d0 0@2\n");
  expect("x k2.0 nonthreadsafe default mod dapl.2.0 \"\" \"\"\ny u1.1 what ever\n", "");
  CHECK_EQUAL(parsed("OpenIB-cma u1.2 nonthreadsafe default libdaplcma.so.1 dapl.1.2 \"ib0 0\" \"\"\n" + kGood, {1, 1}),
              "OpenIB-cma|libdaplcma.so.1|ib0 0@1\n");
}

void parse_dat_conf__bad_lines_are_reported_and_the_rest_stands() {
  const struct {
    std::string line;
    const char* what;
  } bad_lines[] = {
      {"only-a-name", "1 of 8 fields: no API version"},
      {"n u2.0", "2 of 8 fields: no thread safety"},
      {"n u2.0 nonthreadsafe default lib dapl.2.0 \"\"", "7 of 8 fields: no platform parameters"},
      {kGood + " more", "9 fields, where 8 are expected"},
      {kGood + "\r", nullptr},  // not bad
      {with_field(6, "\"open"), "a quote is not closed"},
      {"n u2.0 nonthreadsafe default lib dapl.2.0 \"\" \"", "a quote is not closed"},
      {"n u2.0 nonthreadsafe default lib dapl.2.0 \"\" \"\\", "a quote is not closed"},
      {"\"", "a quote is not closed"},
      {with_field(0, "\"\""), "field 1 (IA name) is \"\", not a name of 1 to 255 bytes"},
      {with_field(1, "\"\""), "field 2 (API version) is \"\", not u or k and a version, such as u2.0"},
      {with_field(1, "2.0"), "field 2 (API version) is \"2.0\", not u or k and a version, such as u2.0"},
      {with_field(1, "u2"), "field 2 (API version) is \"u2\", not u or k and a version, such as u2.0"},
      {with_field(1, "u"), "field 2 (API version) is \"u\", not u or k and a version, such as u2.0"},
      {with_field(1, "u."), "field 2 (API version) is \"u.\", not u or k and a version, such as u2.0"},
      {with_field(1, "u2.x"), "field 2 (API version) is \"u2.x\", not u or k and a version, such as u2.0"},
      {with_field(1, "u-2.0"), "field 2 (API version) is \"u-2.0\", not u or k and a version, such as u2.0"},
      {with_field(1, "u2.0.0"), "field 2 (API version) is \"u2.0.0\", not u or k and a version, such as u2.0"},
      {with_field(1, "u2.9999999999"),
       "field 2 (API version) is \"u2.9999999999\", not u or k and a version, such as u2.0"},
      {with_field(2, "safe"), "field 3 (thread safety) is \"safe\", not threadsafe or nonthreadsafe"},
      {with_field(2, "threadsafer"), "field 3 (thread safety) is \"threadsafer\", not threadsafe or nonthreadsafe"},
      {with_field(3, "yes"), "field 4 (default section) is \"yes\", not default or nondefault"},
      {with_field(4, "\"\""), "field 5 (library) is \"\", not the name of a shared library"},
      {with_field(5, "dapl"), "field 6 (provider version) is \"dapl\", not a vendor and a version, such as dapl.2.0"},
      {with_field(5, "dapl.2"),
       "field 6 (provider version) is \"dapl.2\", not a vendor and a version, such as dapl.2.0"},
      {with_field(5, ".2.0"), "field 6 (provider version) is \".2.0\", not a vendor and a version, such as dapl.2.0"},
      {with_field(5, "dapl.2.0x"),
       "field 6 (provider version) is \"dapl.2.0x\", not a vendor and a version, such as dapl.2.0"},
      {with_field(2, "\"a\x01\x7f\""), "field 3 (thread safety) is \"a\\x01\\x7f\", not threadsafe or nonthreadsafe"},
      {with_field(0, std::string("a\0b", 3)), "the line holds a NUL byte"},
      {std::string(1, '\0'), "the line holds a NUL byte"},
      {std::string(5000, 'x'), "the line is longer than 4096 bytes"},
  };
  for (const auto& bad : bad_lines) {
    std::string text = kGood + "\n";
    text.append(bad.line).append("\n").append(kGood).append("\n");
    const std::string found = parsed(text);
    std::string expected;
    if (bad.what) expected.append("!2: ").append(bad.what).append("\n");
    expected += "ofa-v2-d0|libdaplofa.so.2|d0 0@1\n";
    if (!bad.what) expected += "ofa-v2-d0|libdaplofa.so.2|d0 0@2\n";
    expected += "ofa-v2-d0|libdaplofa.so.2|d0 0@3\n";
    CHECK_EQUAL(found, expected);
  }
}

void parse_dat_conf__byte_order_marks() {
  expect("\xEF\xBB\xBF" + kGood + "\n" + kGood, "ofa-v2-d0|libdaplofa.so.2|d0 0@1\nofa-v2-d0|libdaplofa.so.2|d0 0@2\n");
  expect("\xEF\xBB\xBF# comment\r\n" + kGood + "\r\n", "ofa-v2-d0|libdaplofa.so.2|d0 0@2\n");
  expect("\xEF\xBB\xBF", "");
  // UTF-16 is one error, not one for each line.
  for (const char* mark : {"\xFF\xFE", "\xFE\xFF"})
    expect(mark + std::string("n\0\n\0n\0\n\0", 8), "!1: all lines are UTF-16, not UTF-8\n");
}

void parse_dat_conf__name_of_255_bytes_fits_and_256_does_not() {
  const std::string fits(255, 'n');
  expect(with_field(0, fits), (fits + "|lib.so|p@1\n").c_str());
  const std::string too_long(256, 'n');
  expect(with_field(0, too_long),
         ("!1: field 1 (IA name) is \"" + std::string(64, 'n') + "...\", not a name of 1 to 255 bytes\n").c_str());
}

void parse_dat_conf__line_of_4096_bytes_fits() {
  std::string line = with_field(4, "lib.so");
  line.resize(4096, ' ');
  expect(line + "\n", "name|lib.so|p@1\n");
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST(parse_dat_conf__one_line_all_fields),
      TEST(parse_dat_conf__blank_and_comment_lines_are_nothing),
      TEST(parse_dat_conf__comment_after_an_entry),
      TEST(parse_dat_conf__quotes_and_escapes),
      TEST(parse_dat_conf__crlf_and_tabs),
      TEST(parse_dat_conf__other_registries_lines_are_passed_over),
      TEST(parse_dat_conf__bad_lines_are_reported_and_the_rest_stands),
      TEST(parse_dat_conf__byte_order_marks),
      TEST(parse_dat_conf__name_of_255_bytes_fits_and_256_does_not),
      TEST(parse_dat_conf__line_of_4096_bytes_fits),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
