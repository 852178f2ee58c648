#include "operator/controller/applier.h"

#include <gtest/gtest.h>

#include <string>

#include "http/server.h"
#include "tests/fakes/api_server.h"

namespace outrigger::controller {
namespace {

/// An API server that answers every create of a kind with one code and text.
class ApplierTest : public testing::Test {
 protected:
  struct Answer {
    int code = 0;
    std::string text;
  };

  Applier::Outcome make(Create create, const std::string& plural, const Answer& answer) {
    http::Server server({.address = "127.0.0.1"});
    server.route("POST", "/api/v1/namespaces/team/" + plural, [&](const http::Request&) {
      const Json status{{"kind", "Status"},
                        {"code", answer.code},
                        {"reason", answer.code == 403 ? "Forbidden" : ""},
                        {"message", answer.text}};
      return http::Response{
          .status = answer.code, .body = status.dump(), .content_type = "application/json"};
    });
    server.start();
    kube::Client client({.server = "http://127.0.0.1:" + std::to_string(server.port())});
    Plan plan;
    job_.metadata.namespace_name = "team";
    plan.actions.emplace_back(std::move(create));
    return Applier(client, job_, memory_).apply(plan);
  }
  Applier::Outcome make_pod(const std::string& text) {
    return make(Create(ObjectKind::kPod,
                       {{"metadata", {{"name", "faces-server-0-0"}, {"namespace", "team"}}}}),
                "pods", {500, text});
  }
  /// One that there are pods for.
  Applier::Outcome make_secret(const Answer& answer) {
    Create create(
        ObjectKind::kSecret,
        {{"kind", "Secret"}, {"metadata", {{"name", "faces-tokens"}, {"namespace", "team"}}}});
    create.likely_there = true;
    return make(std::move(create), "secrets", answer);
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

TEST_F(ApplierTest, ASecretThatPodsWantIsTakenToBeThereWhereAQuotaRefusesItAndByNobodyElse) {
  EXPECT_EQ(make_secret({403, "secrets \"faces-tokens\" is forbidden: exceeded quota: few"}),
            Applier::Outcome::kDone);
  EXPECT_TRUE(memory_.had_secret());
  EXPECT_TRUE(memory_.refusals(api::Time()).empty());
  const std::pair<Answer, RefusalCause> others[] = {
      {{400, "admission webhook \"policy.example\" denied the request"}, RefusalCause::kForbidden},
      {{403, "secrets is forbidden: User \"operator\" cannot create"}, RefusalCause::kForbidden},
      {{403, "because it is being terminated"}, RefusalCause::kNamespaceEnds},
      {{422, "data: Too long"}, RefusalCause::kInvalid}};
  for (const auto& [answer, cause] : others) {
    EXPECT_EQ(make_secret(answer), Applier::Outcome::kRefused) << answer.text;
    ASSERT_EQ(memory_.refusals(api::Time()).size(), 1U) << answer.text;
    EXPECT_EQ(memory_.refusals(api::Time())[0].cause, cause) << answer.text;
  }
}

/// A job whose Secret is made, or is there, on an API server that may refuse it.
class SecretTest : public testing::Test {
 protected:
  static constexpr const char* kSecretsPath = "/api/v1/namespaces/team/secrets";

  SecretTest() { job_.metadata.namespace_name = "team"; }

  Applier::Outcome make_secret(int attempt, bool likely_there = false) {
    kube::Client client(server_.config());
    Plan plan;
    plan.status.execution_attempts = attempt;
    Create create(ObjectKind::kSecret, secret());
    create.likely_there = likely_there;
    plan.actions.emplace_back(std::move(create));
    return Applier(client, job_, memory_).apply(plan);
  }
  static Json secret() {
    return {{"kind", "Secret"}, {"metadata", {{"name", "faces-tokens"}, {"namespace", "team"}}}};
  }
  void put_secret() { server_.store().create(*fakes::ApiPath::parse(kSecretsPath), secret()); }
  bool is_stored() {
    return server_.store()
               .get(*fakes::ApiPath::parse(kSecretsPath + std::string("/faces-tokens")))
               .status == 200;
  }
  size_t requests() const { return server_.requests("POST").size(); }
  size_t counted() const { return requests() - server_.requests("dryRun=All").size(); }
  bool is_known() const { return memory_.had_secret(); }

  fakes::ApiServer server_;
  api::TrainingJob job_;
  JobMemory memory_{"uid"};
};

TEST_F(SecretTest, OfAFirstAttemptIsOneRequest) {
  EXPECT_EQ(make_secret(1), Applier::Outcome::kDone);
  EXPECT_TRUE(is_stored());
  EXPECT_EQ(requests(), 1U);
}

TEST_F(SecretTest, ThatIsThereIsCountedByNoQuotaAgain) {
  put_secret();
  EXPECT_EQ(make_secret(1, true), Applier::Outcome::kDone) << "another process made it";
  EXPECT_TRUE(is_known());
  EXPECT_EQ(make_secret(1), Applier::Outcome::kDone) << "this one found it";
  EXPECT_EQ(make_secret(2), Applier::Outcome::kDone);
  EXPECT_EQ(requests(), 3U);
  EXPECT_EQ(counted(), 0U);
}

TEST_F(SecretTest, ThatSomebodyDeletedIsMadeAgain) {
  EXPECT_EQ(make_secret(2, true), Applier::Outcome::kDone);
  EXPECT_TRUE(is_stored());
  EXPECT_EQ(counted(), 1U);
}

TEST_F(SecretTest, IsTriedForWhereAWebhookTakesNoDryRun) {
  server_.fail("dryRun=All", {.status = 400, .reason = "BadRequest"});
  EXPECT_EQ(make_secret(2), Applier::Outcome::kDone);
  EXPECT_TRUE(is_stored());
}

TEST_F(SecretTest, ThatMayNotBeMadeAtFirstIsRefused) {
  server_.fail("POST", {.status = 403, .reason = "Forbidden"});
  EXPECT_EQ(make_secret(1), Applier::Outcome::kRefused);
  EXPECT_EQ(memory_.refusals(api::Time()).size(), 1U);
}

}  // namespace
}  // namespace outrigger::controller
