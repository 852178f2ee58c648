#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "cli/report/chart.h"
#include "cli/report/history.h"
#include "cli/sweep/sweep.h"
#include "common/error.h"
#include "common/file.h"
#include "tests/unit/cli/report_fixture.h"

namespace outrigger::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST_F(ReportTest, ShowsLossStallPlansAndWorkersOnOnePageThatNeedsNothingElse) {
  std::string text =
      R"({"type":"plan","plan":1,"step":0,"cut":"Input","sharePercent":0,"reason":"to measure"})"
      "\n";
  for (uint64_t i = 0; i < 40; ++i) text += step(i, 0.4);
  text +=
      R"({"type":"plan","plan":2,"step":20,"cut":"pool1","sharePercent":50,"localInputPercent":25,"serverPercent":83.3,"reason":"a < b"})"
      "\n"
      R"({"type":"workers","step":39,"workers":[{"name":"node-1/0","microBatches":77,"cores":4}],"local":{"microBatches":243},"desired":3})"
      "\n"
      R"({"type":"evaluation","step":39,"accuracy":0.75,"loss":0.9})"
      "\n";
  write(text);
  const std::string html = page();
  EXPECT_THAT(html, HasSubstr("faces &lt;1&gt;"));
  EXPECT_THAT(html, HasSubstr("The device waits 40 % of its time, most of it for: Decode"));
  EXPECT_THAT(html, HasSubstr("pool1 50 %, 25 % of the input local"));
  EXPECT_THAT(html, HasSubstr("a &lt; b"));
  EXPECT_THAT(html, HasSubstr("<td>83 %</td>")) << "what the server does of the network";
  EXPECT_THAT(html, HasSubstr("node-1/0"));
  EXPECT_THAT(html, HasSubstr("<td>243</td>")) << "the server's own worker has a row, too";
  EXPECT_THAT(html, HasSubstr("the job can use 3 workers; at the end it had 1."));
  EXPECT_THAT(html, HasSubstr("75.00 %"));
  for (const char* foreign : {"<script", "src=", "@import", "<link", "url("})
    EXPECT_THAT(html, Not(HasSubstr(foreign)));
}

TEST_F(ReportTest, ShowsTheSweepThatTheRunWasAPartOfOrThatIsNamed) {
  write(step(0, 0.1) + step(1, 0.1));
  const Sweep sweep{.cut = "pool1",
                    .stem_part = 0.25,
                    .workers = 2,
                    .points = {{.share_percent = 50,
                                .away = 4,
                                .measured = 123.4,
                                .predicted = 130,
                                .bound = 150,
                                .stall_percent = 3},
                               {.share_percent = 100, .away = 8, .left_out = "too <little>"}}};
  std::ofstream(folder_.path() / "sweep.json") << to_json(sweep);
  EXPECT_THAT(page(), Not(HasSubstr("Sweep"))) << "another job's";
  std::filesystem::rename(folder(), folder_.path() / "share-50-0");
  output_of({"report", (folder_.path() / "share-50-0").string()});
  const std::string html = read_file(folder_.path() / "share-50-0" / "report.html");
  for (const char* part : {"Sweep: images a second", "The stem is 25 %", "123.4", "130.0",
                           "Amdahl's bound", "left out: too &lt;little&gt;"})
    EXPECT_THAT(html, HasSubstr(part));

  const auto other = folder_.path() / "other";
  std::filesystem::create_directories(other);
  std::ofstream(other / "sweep.json") << "{}";
  try {
    output_of({"report", (folder_.path() / "share-50-0").string(), "--sweep", other.string()});
    FAIL() << "no sweep is in it";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), HasSubstr("sweep.json: is no sweep"));
  }
}

TEST_F(ReportTest, ShowsEveryRankWithItsWorkers) {
  write(
      step(0, 0.4) + step(1, 0.4) +
      R"({"type":"workers","step":1,"workers":[{"name":"node-1/0","microBatches":7}],"desired":2})"
      "\n");
  EXPECT_THAT(page(), Not(HasSubstr("<h2>Ranks</h2>")));
  std::string second =
      R"({"type":"step","step":0,"seconds":1.0,"waitedForInput":0.1,"stall":{"Ranks":0.3},"workers":2})"
      "\n";
  second +=
      R"({"type":"workers","step":1,"workers":[{"name":"node-2/0","microBatches":35}],"local":{"microBatches":4}})"
      "\n";
  write(second, "metrics-1.jsonl");
  const std::string html = page();
  EXPECT_THAT(html, HasSubstr("<tr><td>0</td><td>1</td><td>40.0 %</td><td>0.0 %</td></tr>"));
  EXPECT_THAT(html, HasSubstr("<tr><td>1</td><td>2</td><td>10.0 %</td><td>30.0 %</td></tr>"));
  for (const char* part : {"rank 0: node-1/0", "rank 1: node-2/0", "rank 1: the server's own"})
    EXPECT_THAT(html, HasSubstr(part));
  EXPECT_THAT(html, HasSubstr("width:20.0%")) << "7 of 35, the most that any did";
  EXPECT_THAT(html, Not(HasSubstr("the job can use"))) << "it has three";

  const std::string resumed =
      R"({"type":"plan","plan":1,"step":1,"incarnation":2,"cut":"Input","reason":"to measure"})"
      "\n";
  write(step(0, 0.4) + resumed + step(1, 0.4));
  EXPECT_THAT(page(), Not(HasSubstr("rank 1"))) << "it was resumed with fewer ranks";
  write(second + resumed, "metrics-1.jsonl");
  EXPECT_THAT(page(), HasSubstr("rank 1"));
  write(resumed, "metrics-1.jsonl");
  EXPECT_THAT(page(), Not(HasSubstr("rank 1"))) << "it has done no step";
}

TEST_F(ReportTest, ShowsWhatEachLayerTakes) {
  write(
      R"({"type":"profile","layers":[{"name":"conv<1>","forwardSeconds":0.002,"backwardSeconds":0.004,"keptBytes":3e6,"weightBytes":1e6}]})"
      "\n" +
      step(0, 0.1) +
      R"({"type":"layers","step":0,"server":[[0.0015,0.0055]],"workers":[{"name":"a","layers":[[0.003,0.005]]},{"name":"b","layers":[]},{"name":"c","layers":[[0.004,0.006]]}]})"
      "\n");
  const std::string html = page();
  EXPECT_THAT(html, HasSubstr("<td>7.00 ms</td><td>9.00 ms</td>")) << "here, and on two workers";
  for (const char* part : {"conv&lt;1&gt;", "2.00 ms", "4.00 ms", "3.00 MB", "these keep 3.0 MB",
                           "on one core", "where the device is a GPU those of stems"})
    EXPECT_THAT(html, HasSubstr(part));
}

TEST_F(ReportTest, ShowsLayersOfARunWhosePlanWasFixed) {
  write(step(0, 0.1) +
        R"({"type":"layers","step":0,"names":["conv1"],"server":[[0.0015,0.0055]],"workers":[]})"
        "\n");
  const std::string html = page();
  EXPECT_THAT(html, HasSubstr("<td>conv1</td>"));
  EXPECT_THAT(html, HasSubstr("<td>7.00 ms</td><td></td>"));
  EXPECT_THAT(html, HasSubstr("nothing was measured at the start"));
  EXPECT_THAT(html, testing::Not(HasSubstr("0.00 MB"))) << "of what was not measured";
}

TEST_F(ReportTest, ShowsADashForALinkThatIsNotMeasured) {
  const std::string both =
      R"({"name":"new","microBatches":1},{"name":"old","bytesPerSecond":2e6,"latencySeconds":0.001})";
  write(step(0, 0.1) + R"({"type":"workers","step":0,"workers":[)" + both + "]}\n");
  const std::string html = page();
  EXPECT_THAT(html, HasSubstr("<td>–</td><td>–</td>"));
  EXPECT_THAT(html, HasSubstr("<td>2.0 MB/s</td><td>1.00 ms</td>"));
  EXPECT_THAT(html, Not(HasSubstr("<td>0.0 MB/s")));
}

TEST_F(ReportTest, ShowsWhatEvaluationsOfFacesMeasured) {
  const std::string begin =
      step(0, 0.1) + R"({"type":"evaluation","step":1,"accuracy":0.25,"loss":3)";
  write(begin + "}\n");
  for (const char* figure : {"verification", "identification"})
    EXPECT_THAT(page(), Not(HasSubstr(figure)));
  write(begin + R"(,"verification":0.975,"identification":0.8125})" + "\n");
  const std::string html = page();
  for (const char* part :
       {"97.50 %</b><span>held-out verification", "81.25 %</b><span>held-out identification",
        "25.00 %</b><span>held-out accuracy", "</i>held-out verification</span>",
        "</i>held-out identification</span>"})
    EXPECT_THAT(html, HasSubstr(part));
}

TEST_F(ReportTest, AShareBelowAPercentIsNoCutInput) {
  write(
      R"({"type":"plan","plan":1,"step":0,"cut":"pool1","stemsAway":1,"microBatches":128,"sharePercent":0,"reason":"r"})"
      "\n" +
      step(0, 0.1));
  EXPECT_EQ(read_history(folder()).plans.front().name(), "pool1 <1 %");
}

TEST_F(ReportTest, StepsThatAResumedRunDidAgainCountOnce) {
  write(step(0, 0.1) + step(1, 0.1) + step(2, 0.1) + step(1, 0.2));
  const RunHistory history = read_history(folder());
  ASSERT_EQ(history.steps.size(), 2u);
  EXPECT_NEAR(history.steps[1].waited, 0.2, 1e-9);
}

TEST_F(ReportTest, WhatAResumedRunDecidedAndEvaluatedAgainCountsOnce) {
  const auto plan = [](int number, int at) {
    return R"({"type":"plan","plan":)" + std::to_string(number) + R"(,"step":)" +
           std::to_string(at) + R"(,"cut":"pool1","sharePercent":50,"reason":"r"})" + "\n";
  };
  const auto evaluation = [](int at, const char* loss) {
    return R"({"type":"evaluation","step":)" + std::to_string(at) + R"(,"accuracy":0.5,"loss":)" +
           loss + "}\n";
  };
  std::string text = plan(1, 0) + step(0, 0.1) + plan(2, 1) + step(1, 0.1) + evaluation(2, "1");
  text += step(2, 0.1) + plan(3, 3) + step(3, 0.1) + evaluation(4, "2") + step(4, 0.1);
  text += plan(1, 2) + step(2, 0.1) + plan(2, 3) + step(3, 0.1) + evaluation(4, "3");
  write(text);
  const RunHistory history = read_history(folder());
  ASSERT_EQ(history.steps.size(), 4u);
  std::vector<uint64_t> moved;
  for (const auto& one : history.plans) moved.push_back(one.step);
  EXPECT_THAT(moved, testing::ElementsAre(0, 1, 2, 3));
  ASSERT_EQ(history.evaluations.size(), 2u);
  EXPECT_EQ(history.evaluations[0].step, 2u) << "what the checkpoint has behind it stays";
  EXPECT_EQ(history.evaluations[1].loss, 3);
  EXPECT_THAT(page(), Not(HasSubstr("width=\"-")));
}

TEST_F(ReportTest, ARunWithoutAStepHasNothingToShow) {
  write(R"({"type":"plan","plan":1,"step":0})"
        "\n");
  EXPECT_THROW(read_history(folder()), InvalidInput);
}

TEST_F(ReportTest, ShowsARunOfOneStepAsDotsAndABar) {
  write(step(6, 0.4));
  const std::string html = page();
  EXPECT_THAT(html, HasSubstr("<circle")) << "its loss";
  EXPECT_THAT(html, HasSubstr("stroke-width=\"7\"")) << "what it waited for";
  EXPECT_THAT(html, HasSubstr(">6</text>"));
  EXPECT_THAT(html, Not(HasSubstr(">6.2</text>"))) << "there is no such step";
}

TEST(Chart, CountsWholeSteps) {
  const std::vector<Series> series{
      {.name = "loss", .color = "#000", .x = {0, 1, 2}, .y = {3, 2, 1}}};
  const std::string chart = line_chart({.label = "Loss", .x_label = "step"}, series);
  EXPECT_THAT(chart, Not(HasSubstr(">0.5</text>")));
  EXPECT_THAT(chart, HasSubstr("<path"));
  EXPECT_THAT(chart, Not(HasSubstr("<circle")));
}

TEST(Chart, ThinsByMeans) {
  const Series thin = thinned({.x = {0, 1, 2, 3, 4}, .y = {0, 2, 4, 6, 9}}, 3);
  EXPECT_EQ(thin.x, (std::vector<double>{0.5, 2.5, 4}));
  EXPECT_EQ(thin.y, (std::vector<double>{1, 5, 9}));
}

}  // namespace
}  // namespace outrigger::cli
