#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/report/history.h"
#include "cli/report/page.h"
#include "common/error.h"
#include "tests/unit/cli/report_fixture.h"

namespace outrigger::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST_F(ReportTest, BrokenLinesAreLeftOutWithOneWarningThatNamesTheFirst) {
  write(step(0, 0.1) + "hello\n" + step(1, 0.1) + R"({"type":"step","step":"two"})" + "\n" +
        step(2, 0.1) + R"({"type":"st)");
  EXPECT_EQ(read_history(folder()).steps.size(), 3u);
  const std::string warned = run_command({"report", folder().string()}).err;
  EXPECT_THAT(warned, HasSubstr("3 lines are broken"));
  EXPECT_THAT(warned, HasSubstr("metrics.jsonl:2: is no line"));
  EXPECT_THAT(warned, Not(HasSubstr("metrics.jsonl:4")));
  write(step(0, 0.1) + R"({"type":"step","step":"two"})");
  EXPECT_THAT(run_command({"report", folder().string()}).err,
              HasSubstr("metrics.jsonl:2: type must be number"));
  write(step(0, 0.1) + "[]\n");
  EXPECT_THAT(run_command({"report", folder().string()}).err, HasSubstr("one line is broken"));
  write(step(0, 0.1));
  EXPECT_EQ(run_command({"report", folder().string()}).err, "");
}

TEST_F(ReportTest, AFileOfWhichNoLineIsARunsIsRefused) {
  write("hello\nand good bye\n");
  try {
    read_history(folder());
    FAIL() << "a foreign file was read";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), HasSubstr("metrics.jsonl:1: is no line"));
  }
  std::filesystem::remove(folder() / "metrics.jsonl");
  EXPECT_THROW(read_history(folder()), IoError);
  std::filesystem::create_directories(folder() / "metrics.jsonl");
  EXPECT_THROW(read_history(folder()), IoError);
}

TEST_F(ReportTest, SaysThatNothingWasComputedWhereMachinesWereEmulated) {
  const char* plan = R"({"type":"plan","plan":1,"step":0,"cut":"Input","emulated":true})";
  write(std::string(plan) + "\n" + step(0, 0.1));
  const RunHistory history = read_history(folder());
  EXPECT_THAT(report_page("run", history, {}, {}), HasSubstr("Its machines were emulated"));
  write(step(0, 0.1));
  EXPECT_THAT(report_page("run", read_history(folder()), {}, {}), Not(HasSubstr("emulated")));
}

TEST_F(ReportTest, TheRunThatWasMeantIsNamed) {
  write(step(0, 0.1));
  try {
    run_command({"report", folder().parent_path().string()});
    FAIL() << "it is the folder of all runs";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean " + folder().string() + "?"));
  }
}

TEST_F(ReportTest, WhatIsNullWasNotANumberAndIsLeftOut) {
  write(
      R"({"type":"plan","plan":1,"step":0,"cut":"pool1","sharePercent":null,"reason":null})"
      "\n" +
      step(0, 0.1) +
      R"({"type":"evaluation","step":1,"accuracy":null,"loss":null,"seconds":null})"
      "\n"
      R"({"type":"workers","step":1,"workers":[{"name":"a","cores":null}],"local":null,"desired":null})"
      "\n"
      R"({"type":"layers","step":1,"names":null,"server":null,"workers":[{"layers":null}]})"
      "\n"
      R"({"type":"step","step":1,"loss":null,"accuracy":null,"seconds":1,"stall":null})"
      "\n");
  const RunHistory history = read_history(folder());
  ASSERT_EQ(history.steps.size(), 2u);
  EXPECT_FALSE(history.steps[1].loss.has_value());
  EXPECT_EQ(history.steps[0].loss, 1.5);
  ASSERT_EQ(history.evaluations.size(), 1u);
  EXPECT_FALSE(history.evaluations[0].loss.has_value());
  EXPECT_FALSE(history.desired_workers.has_value());
  EXPECT_FALSE(history.local.has_value());
  EXPECT_EQ(history.workers.count("a"), 1u);
  const Outcome told = run_command({"report", folder().string()});
  EXPECT_EQ(told.err, "");
  EXPECT_THAT(page(), HasSubstr("not a number</b><span>loss at the end"));
}

TEST_F(ReportTest, OfVeryManyStepsNeighboursAreShownAsOneAndSumsStay) {
  std::string text;
  for (uint64_t i = 0; i < 21; ++i) text += step(i, 0.01 * static_cast<double>(i));
  write(text);
  const RunHistory all = read_history(folder());
  const RunHistory some = read_history(folder(), 8);
  ASSERT_EQ(some.steps_in_one, 4u);
  ASSERT_EQ(some.steps.size(), 6u);
  EXPECT_EQ(step_count(some.steps), 21u);
  EXPECT_EQ(some.steps[1].step, 4u);
  EXPECT_EQ(some.steps[1].last_step, 7u);
  EXPECT_EQ(some.steps.back().count, 1u);
  EXPECT_NEAR(some.steps[1].seconds, 4, 1e-9);
  EXPECT_NEAR(some.steps[1].waited, 0.04 + 0.05 + 0.06 + 0.07, 1e-9);
  EXPECT_NEAR(*some.steps[1].loss, 1.5, 1e-9);
  EXPECT_NEAR(some.steps[1].images_per_second, 100, 1e-9);
  EXPECT_THAT(report_page("r", some, {}, {}), HasSubstr("4 after each other are shown as one"));
  EXPECT_THAT(report_page("r", some, {}, {}), HasSubstr("<b>21</b><span>steps"));
  EXPECT_THAT(report_page("r", all, {}, {}), Not(HasSubstr("shown as one")));
}

TEST_F(ReportTest, StepsThatAreDoneAgainReplaceThoseThatWerePutTogether) {
  std::string text;
  for (uint64_t i = 0; i < 16; ++i) text += step(i, 0.1);
  for (uint64_t i = 4; i < 20; ++i) text += step(i, 0.2);
  write(text);
  const RunHistory history = read_history(folder(), 8);
  EXPECT_EQ(step_count(history.steps), 20u);
  double waited = 0;
  for (const auto& one : history.steps) waited += one.waited;
  EXPECT_NEAR(waited, 4 * 0.1 + 16 * 0.2, 1e-9);
}

}  // namespace
}  // namespace outrigger::cli
