#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/report/history.h"
#include "common/error.h"
#include "tests/unit/api/sample_job.h"
#include "tests/unit/cli/report_fixture.h"

namespace outrigger::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string end(const std::string& state, int step, const std::string& message = "") {
  const std::string why = message.empty() ? "" : R"(,"message":")" + message + "\"";
  return R"({"type":"end","state":")" + state + R"(","step":)" + std::to_string(step) +
         R"(,"totalSteps":9)" + why + "}\n";
}

std::string resumed(int incarnation, int step) {
  return R"({"type":"plan","plan":1,"cut":"Input","reason":"r","step":)" + std::to_string(step) +
         R"(,"incarnation":)" + std::to_string(incarnation) + "}\n";
}

std::string work(int step, int local, int stems) {
  const std::string counts =
      R"("microBatches":)" + std::to_string(local) + R"(,"stemGradients":)" + std::to_string(stems);
  return R"({"type":"workers","step":)" + std::to_string(step) + R"(,"local":{)" + counts +
         R"(},"workers":[{"name":"a",)" + counts + "}]}\n";
}

TEST_F(ReportTest, ShowsHowARunEnded) {
  write(step(0, 0.1) + step(1, 0.1) + end("Done", 2));
  EXPECT_THAT(page(), HasSubstr("<b>2 of 9</b><span>steps")) << "it stopped early";
  EXPECT_THAT(page(), HasSubstr("<b>Done</b><span>how it ended"));
  EXPECT_THAT(page(), Not(HasSubstr("The run failed")));

  write(step(0, 0.1) + step(1, 0.1) + end("Stopped", 2));
  EXPECT_THAT(page(), HasSubstr("<b>Stopped</b><span>how it ended"));
  EXPECT_THAT(page(), Not(HasSubstr("The run failed")));
}

TEST_F(ReportTest, ItsAdviceOnARunThatFailedBeginsWithThat) {
  write(step(0, 0.1) + step(1, 0.1) + end("NumericalError", 2, "the loss is <nan>"));
  const std::string html = page();
  EXPECT_THAT(html, HasSubstr("<p>The run failed after 2 of 9 steps: NumericalError, the loss is "
                              "&lt;nan&gt;. The device"));
  EXPECT_THAT(html, HasSubstr("<b>NumericalError</b><span>how it ended"));
}

TEST_F(ReportTest, AnEndOfAFormerLifeIsNone) {
  write(step(0, 0.1) + step(1, 0.1) + end("PeerLost", 2) + resumed(2, 2) + step(2, 0.1));
  const RunHistory history = read_history(folder());
  EXPECT_FALSE(history.end.has_value());
  EXPECT_THAT(page(), Not(HasSubstr("PeerLost")));
  EXPECT_THAT(page(), HasSubstr("<b>3 of 9</b><span>steps"));
}

TEST_F(ReportTest, OfARunThatWasKilledTheJobTellsHowManyStepsWereAskedFor) {
  write(step(0, 0.1) + step(1, 0.1));
  EXPECT_THAT(page(), HasSubstr("<b>2</b><span>steps"));
  EXPECT_THAT(page(), Not(HasSubstr("how it ended")));
  write(api::sample_with("epochs: 3", "steps: 40"), "job.yaml");
  EXPECT_THAT(page(), HasSubstr("<b>2 of 40</b><span>steps"));
  write(api::sample_with("epochs: 3", "steps: 2"), "job.yaml");
  EXPECT_THAT(page(), HasSubstr("<b>2</b><span>steps"));
}

TEST_F(ReportTest, ARunThatEndedBeforeItsFirstStepSaysHow) {
  write(resumed(1, 0) + end("BadData", 0, "no image is in it"));
  try {
    read_history(folder());
    FAIL() << "it has no step";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), HasSubstr("ended as BadData before its first: no image is in it"));
  }
}

TEST_F(ReportTest, CountsOfWorkersAreOfAllLivesOfARun) {
  write(resumed(1, 0) + step(0, 0.1) + work(0, 4, 1) + step(1, 0.1) + work(1, 40, 10) +
        resumed(2, 2) + step(2, 0.1) + work(2, 50, 3) + step(3, 0.1) + work(3, 60, 7));
  const RunHistory history = read_history(folder());
  ASSERT_TRUE(history.local.has_value());
  EXPECT_EQ(history.local->micro_batches, 100u);
  EXPECT_EQ(history.local->stem_gradients, 17u);
  EXPECT_EQ(history.workers.at("a").micro_batches, 100u);
  EXPECT_THAT(page(), HasSubstr("<td>100</td>"));

  write(step(0, 0.1) + work(0, 40, 0) + step(1, 0.1) + work(1, 7, 0) + work(1, 9, 0));
  EXPECT_EQ(read_history(folder()).local->micro_batches, 49u) << "without plans the fall tells it";
}

}  // namespace
}  // namespace outrigger::cli
