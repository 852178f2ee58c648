#include "operator/controller/applier.h"

#include <gtest/gtest.h>

#include <string>

#include "http/server.h"

namespace outrigger::controller {
namespace {

/// An API server that answers every create of a pod with 500 and one text.
class ApplierTest : public testing::Test {
 protected:
  Applier::Outcome make_pod(const std::string& answer) {
    http::Server server({.address = "127.0.0.1"});
    server.route("POST", "/api/v1/namespaces/team/pods", [&](const http::Request&) {
      const Json status{{"kind", "Status"}, {"code", 500}, {"message", answer}};
      return http::Response{
          .status = 500, .body = status.dump(), .content_type = "application/json"};
    });
    server.start();
    kube::Client client({.server = "http://127.0.0.1:" + std::to_string(server.port())});
    Plan plan;
    job_.metadata.namespace_name = "team";
    plan.actions.push_back(Create(
        ObjectKind::kPod, {{"metadata", {{"name", "faces-server-0-0"}, {"namespace", "team"}}}}));
    return Applier(client, job_, memory_).apply(plan);
  }

  api::TrainingJob job_;
  JobMemory memory_{"uid"};
};

TEST_F(ApplierTest, AWebhookThatDoesNotAnswerIsARefusalAndItsTextIsKept) {
  const std::string text = "Internal error occurred: failed calling webhook \"pods.example\"";
  EXPECT_EQ(make_pod(text), Applier::Outcome::kRefused);
  const auto refusals = memory_.refusals(api::Time());
  ASSERT_EQ(refusals.size(), 1U);
  EXPECT_EQ(refusals[0].object, "Pod faces-server-0-0");
  EXPECT_EQ(refusals[0].cause, RefusalCause::kOther);
  EXPECT_EQ(refusals[0].message, text);
  EXPECT_GT(refusals[0].patience, Refusal().patience) << "it may be waited for each time";
}

TEST_F(ApplierTest, SoIsAWebhookThatDeniesWithTheCodeOfABrokenServer) {
  EXPECT_EQ(make_pod("admission webhook \"pods.example\" denied the request: no reason given"),
            Applier::Outcome::kRefused);
  ASSERT_EQ(memory_.refusals(api::Time()).size(), 1U);
  EXPECT_EQ(memory_.refusals(api::Time())[0].cause, RefusalCause::kForbidden);
}

TEST_F(ApplierTest, AServerThatIsBrokenRefusesNothing) {
  EXPECT_THROW(make_pod("Internal error occurred: etcdserver: no leader"), kube::ApiError);
  EXPECT_TRUE(memory_.refusals(api::Time()).empty());
}

}  // namespace
}  // namespace outrigger::controller
