// Edits of a running job, from the API server to the job's server.
#include <gmock/gmock.h>

#include <algorithm>

#include "operator/objects/children.h"
#include "tests/unit/operator/controller/manager_scene.h"

namespace outrigger::controller {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class ManagerEditsTest : public ManagerScene {
 protected:
  /// As somebody who edits spec.split; the API server counts the generation on.
  void edit_split(int generation) {
    server_.store().patch(*fakes::ApiPath::parse(kTrainingJobs.path("team") + "/faces"),
                          {{"metadata", {{"generation", generation}}},
                           {"spec", {{"split", {{"minServerPercent", 40 + generation}}}}}},
                          "application/merge-patch+json");
  }
  /// The server runs and is asked, and knows the job of that generation.
  bool asked_of_server_that_knows(int64_t generation) {
    operator_.page = R"({"progress": {"step": 7}})";
    operator_.known = generation;
    operator_.start();
    apply(job());
    if (!all_made()) return false;
    run_pod("faces-server-0-0");
    return polled_again();
  }
  /// Several times from now on, and what came of it is done.
  bool polled_again() {
    const int before = operator_.polls;
    return eventually([&] { return operator_.polls > before + 5; });
  }
  size_t refusals_told() {
    const auto events = server_.requests("/apis/events.k8s.io/v1/namespaces/team/events");
    return static_cast<size_t>(std::count_if(events.begin(), events.end(), [](const auto& event) {
      return event.body.find("EditRefused") != std::string::npos;
    }));
  }
};

TEST_F(ManagerEditsTest, AServerIsToldOnceOfAnEditAndOfNoneThatItKnows) {
  ASSERT_TRUE(asked_of_server_that_knows(1));
  EXPECT_THAT(operator_.edits(), IsEmpty());
  edit_split(2);
  ASSERT_TRUE(eventually([&] { return !operator_.edits().empty(); }));
  ASSERT_TRUE(polled_again());
  const auto edits = operator_.edits();
  ASSERT_THAT(edits, SizeIs(1));
  EXPECT_EQ(edits[0].ip, "10.0.0.1");
  const Json body = Json::parse(edits[0].body);
  EXPECT_EQ(body["generation"], 2);
  EXPECT_EQ(body["job"]["spec"]["split"]["minServerPercent"], 42);
  const Json stored = get(kTrainingJobs.path("team") + "/faces");
  const Options options{.token_key = "key"};
  EXPECT_EQ(edits[0].token, token(options, kube::uid_of(stored), "control"));
  EXPECT_EQ(refusals_told(), 0U);
}

TEST_F(ManagerEditsTest, AServerThatIsNotReachedByAnEditIsToldAgain) {
  operator_.hears_edits = false;
  ASSERT_TRUE(asked_of_server_that_knows(1));
  edit_split(2);
  EXPECT_TRUE(eventually([&] { return operator_.edits().size() >= 3; }));
}

TEST_F(ManagerEditsTest, ARefusedEditIsOneWarningForEachGeneration) {
  operator_.refuse("spec.split.cut: no such layer");
  ASSERT_TRUE(asked_of_server_that_knows(0));
  ASSERT_TRUE(eventually([&] { return refusals_told() == 1; }));
  ASSERT_TRUE(polled_again());
  EXPECT_EQ(refusals_told(), 1U);
  operator_.refuse("spec.split.sharePercent: too little");
  edit_split(2);
  ASSERT_TRUE(eventually([&] { return refusals_told() == 2; }));
  ASSERT_TRUE(polled_again());
  EXPECT_EQ(refusals_told(), 2U);
  const auto told = server_.requests("POST /apis/events.k8s.io/v1/namespaces/team/events");
  EXPECT_THAT(told.back().body, AllOf(testing::HasSubstr("Warning"),
                                      testing::HasSubstr("spec.split.sharePercent: too little")));
  EXPECT_THAT(operator_.edits(), SizeIs(2));
}

TEST_F(ManagerEditsTest, AServerOfAnOperatorWithAnotherKeyIsOneWarningForEachGeneration) {
  operator_.knows_token = false;
  ASSERT_TRUE(asked_of_server_that_knows(1));
  EXPECT_EQ(refusals_told(), 0U);
  edit_split(2);
  ASSERT_TRUE(eventually([&] { return refusals_told() == 1; }));
  ASSERT_TRUE(polled_again());
  EXPECT_EQ(refusals_told(), 1U);
  const auto told = server_.requests("POST /apis/events.k8s.io/v1/namespaces/team/events");
  EXPECT_THAT(told.back().body, testing::HasSubstr("another token key"));
}

TEST_F(ManagerEditsTest, AServerThatSaysNothingOfEditsIsToldNone) {
  operator_.page = R"({"progress": {"step": 7}})";
  operator_.start();
  apply(job());
  ASSERT_TRUE(all_made());
  run_pod("faces-server-0-0");
  ASSERT_TRUE(polled_again());
  edit_split(2);
  ASSERT_TRUE(polled_again());
  EXPECT_THAT(operator_.edits(), IsEmpty());
}

}  // namespace
}  // namespace outrigger::controller
