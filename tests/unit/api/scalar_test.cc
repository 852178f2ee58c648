#include "api/schema/scalar.h"

#include <gtest/gtest.h>

#include "api/time.h"

namespace outrigger::api::schema {
namespace {

TEST(Look, WhatReadersOfYamlAgreeOnHasAType) {
  for (const char* text : {"0", "7", "-12", "+3", "9223372036854775807"})
    EXPECT_EQ(look_of(text), Look::kInteger) << text;
  for (const char* text : {"0.5", ".5", "5.", "1e3", "1E-3", "-2.5e+10"})
    EXPECT_EQ(look_of(text), Look::kNumber) << text;
  for (const char* text : {"true", "false"}) EXPECT_EQ(look_of(text), Look::kBoolean) << text;
  for (const char* text : {"", "~", "null", "Null"}) EXPECT_EQ(look_of(text), Look::kNull) << text;
  for (const char* text :
       {"faces", "10.0.0.1", "8080:80", "2026-01-31T12:00:00Z", "1x", "-", ".", "e3", "1e", "5%"}) {
    EXPECT_EQ(look_of(text), Look::kText) << text;
  }
}

TEST(Look, WhatTheyDisagreeOnIsAmbiguous) {
  for (const char* text : {"yes", "No", "on", "OFF", "y", "True", "FALSE", "010", "0x1F", "0b11",
                           "0o17", "1_000", ".inf", "-.Inf", ".NaN", "007.5"}) {
    EXPECT_EQ(look_of(text), Look::kAmbiguous) << text;
  }
}

TEST(ParseInteger, TakesWhatFits) {
  EXPECT_EQ(parse_integer("-42"), -42);
  EXPECT_EQ(parse_integer("+42"), 42);
  EXPECT_EQ(parse_integer("9223372036854775808"), std::nullopt);
  EXPECT_EQ(parse_integer("1.0"), std::nullopt);
}

TEST(ParseNumber, TakesFiniteNumbersAlone) {
  EXPECT_EQ(parse_number(".5"), 0.5);
  EXPECT_EQ(parse_number("3"), 3.0);
  EXPECT_EQ(parse_number("1e999"), std::nullopt);
  EXPECT_EQ(parse_number("five"), std::nullopt);
}

TEST(FormatNumber, GivesTheShortestTextThatReadsBack) {
  EXPECT_EQ(format_number(0.0005), "0.0005");
  EXPECT_EQ(format_number(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(format_number(64), "64");
  EXPECT_EQ(format_number(1e6), "1000000");
  EXPECT_EQ(format_number(-1e12), "-1000000000000");
  EXPECT_EQ(format_number(9007199254740991), "9007199254740991");
  EXPECT_EQ(format_number(1e300), "1e+300");
  for (const double value : {1e300, 5e-324, -0.1, 123456789.125}) {
    EXPECT_EQ(parse_number(format_number(value)), value);
  }
}

TEST(InQuotes, CutsLongTextsBetweenCharacters) {
  EXPECT_EQ(in_quotes("a\"b\n"), R"("a\"b\n")");
  const std::string text = in_quotes(std::string(79, 'x') + "\xC3\xA9" + "yz");
  EXPECT_EQ(text, "\"" + std::string(79, 'x') + "…\"");
}

TEST(Time, IsWrittenAndReadAsRfc3339) {
  const auto time = parse_time("2026-02-28T23:59:58Z");
  ASSERT_TRUE(time);
  EXPECT_EQ(time->time_since_epoch().count(), 1772323198);
  EXPECT_EQ(api::to_string(*time), "2026-02-28T23:59:58Z");
  EXPECT_EQ(parse_time("2026-03-01T01:29:58.123+01:30"), time);
  for (const char* text :
       {"", "2026-02-29T00:00:00Z", "2026-02-28", "2026-02-28T24:00:00Z", "2026-02-28T00:00:00",
        "2026-02-28T00:00:00Zx", "2026-02-28T00:00:00.Z", "-026-02-28T00:00:00Z"}) {
    EXPECT_EQ(parse_time(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace outrigger::api::schema
