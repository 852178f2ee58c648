#include "operator/controller/refusal.h"

#include <gtest/gtest.h>

namespace outrigger::controller {
namespace {

kube::ApiError error(int code, const std::string& message, const Json& details = nullptr) {
  return {"create pods faces-server-0-0",
          {.code = code, .reason = "Forbidden", .message = message, .details = details}};
}

// Texts as a 1.34 API server writes them.
TEST(Refusal, EachAnswerOfTheApiServerHasItsCause) {
  EXPECT_EQ(cause_of(error(422, "Pod \"x\" is invalid: spec.containers[0].image: Required value")),
            RefusalCause::kInvalid);
  EXPECT_EQ(cause_of(error(403,
                           "pods \"x\" is forbidden: violates PodSecurity \"restricted:latest\": "
                           "allowPrivilegeEscalation != false")),
            RefusalCause::kPodSecurity);
  EXPECT_EQ(cause_of(error(403,
                           "pods \"x\" is forbidden: exceeded quota: q, requested: pods=1, used: "
                           "pods=2, limited: pods=2")),
            RefusalCause::kQuota);
  EXPECT_EQ(cause_of(error(
                403, "pods \"x\" is forbidden: failed quota: q: must specify cpu for: server")),
            RefusalCause::kQuota);
  EXPECT_EQ(cause_of(error(403,
                           "pods \"x\" is forbidden: unable to create new content in namespace "
                           "team because it is being terminated",
                           {{"causes", Json::array({{{"reason", "NamespaceTerminating"}}})}})),
            RefusalCause::kNamespaceEnds);
  EXPECT_EQ(cause_of(error(403, "pods is forbidden: User \"x\" cannot create resource \"pods\"")),
            RefusalCause::kForbidden);
  EXPECT_EQ(cause_of(error(418, "teapot")), RefusalCause::kOther);
}

TEST(Refusal, AWebhookThatDoesNotAnswerIsToldFromAServerThatIsBroken) {
  const auto webhook =
      error(500,
            "Internal error occurred: failed calling webhook \"pods.example\": failed to call "
            "webhook: Post \"https://hook.example.svc:443/\": connection refused");
  EXPECT_TRUE(is_of_webhook(webhook));
  EXPECT_EQ(cause_of(webhook), RefusalCause::kOther);
  EXPECT_FALSE(is_of_webhook(error(500, "Internal error occurred: etcdserver: no leader")));
}

TEST(Refusal, WhatAWebhookDeniesIsAskedForAgainWhateverItsCode) {
  for (const int code : {400, 403, 422, 500}) {
    const auto denied = error(
        code, "admission webhook \"images.example\" denied the request: cannot verify the image");
    EXPECT_EQ(cause_of(denied), RefusalCause::kForbidden) << code;
    EXPECT_EQ(is_of_webhook(denied), code == 500) << code;
  }
}

Json owned_by(const std::string& kind, const std::string& name, const std::string& uid,
              const std::string& version = "outrigger.dev/v1alpha1") {
  return {{"metadata",
           {{"ownerReferences", Json::array({{{"apiVersion", version},
                                              {"kind", kind},
                                              {"name", name},
                                              {"uid", uid},
                                              {"controller", true}}})}}}};
}

TEST(Refusal, WhatBearsOurNameIsOursAFormerJobsOrSomebodyElses) {
  api::Metadata job;
  job.name = "faces";
  job.uid = "new";
  EXPECT_EQ(collision_with(owned_by("TrainingJob", "faces", "new"), job), std::nullopt);
  EXPECT_EQ(collision_with(owned_by("TrainingJob", "faces", "old"), job), RefusalCause::kLeftover);
  EXPECT_EQ(collision_with(owned_by("TrainingJob", "faces", "old", "outrigger.dev/v1"), job),
            RefusalCause::kLeftover);
  EXPECT_EQ(collision_with(owned_by("TrainingJob", "faces", "old", "kubedl.io/v1alpha1"), job),
            RefusalCause::kForeign);
  EXPECT_EQ(collision_with(owned_by("TrainingJob", "other", "old"), job), RefusalCause::kForeign);
  EXPECT_EQ(collision_with(owned_by("ReplicaSet", "faces", "x"), job), RefusalCause::kForeign);
  EXPECT_EQ(collision_with(Json{{"metadata", Json::object()}}, job), RefusalCause::kForeign);
}

}  // namespace
}  // namespace outrigger::controller
