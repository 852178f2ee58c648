#include "kube/client/service_account.h"

#include <gtest/gtest.h>

#include "common/file.h"

namespace outrigger::kube {
namespace {

// As a kubelet puts it into a pod, but for the signature:
// {"aud":["https://kubernetes.default.svc"],"kubernetes.io":{"namespace":"system",
//  "pod":{"name":"operator-0","uid":"p"},"serviceaccount":{"name":"operator","uid":"1b2c"}},
//  "note":"???>>>~~~"}
constexpr const char* kToken =
    "eyJhbGciOiJSUzI1NiJ9."
    "eyJhdWQiOlsiaHR0cHM6Ly9rdWJlcm5ldGVzLmRlZmF1bHQuc3ZjIl0sImt1YmVybmV0ZXMuaW8iOnsibmFtZXNwYW"
    "NlIjoic3lzdGVtIiwicG9kIjp7Im5hbWUiOiJvcGVyYXRvci0wIiwidWlkIjoicCJ9LCJzZXJ2aWNlYWNjb3VudCI6"
    "eyJuYW1lIjoib3BlcmF0b3IiLCJ1aWQiOiIxYjJjIn19LCJub3RlIjoiPz8_Pj4-fn5-In0"
    ".c2lnbmF0dXJl";
const ServiceAccount kAccount{"system", "operator", "1b2c"};

TEST(ServiceAccount, IsWhatTheTokenOfAPodSays) {
  EXPECT_EQ(service_account_of(kToken), kAccount);
  Config config;
  config.token.text = kToken;
  EXPECT_EQ(service_account_of(config), kAccount);
}

TEST(ServiceAccount, OfAFileIsReadAnewEachTime) {
  const TemporaryDirectory folder;
  Config config;
  config.token.file = folder.path() / "token";
  EXPECT_EQ(service_account_of(config), std::nullopt);
  write_file_atomically(config.token.file, std::string(kToken) + "\n");
  EXPECT_EQ(service_account_of(config), kAccount);
}

TEST(ServiceAccount, IsNobodysWhereTheTokenIsOfAnotherKind) {
  EXPECT_EQ(service_account_of(Config()), std::nullopt);
  // {"kubernetes.io":{"namespace":"n","serviceaccount":{"name":"a"}}}
  constexpr const char* kWithoutUid =
      "a.eyJrdWJlcm5ldGVzLmlvIjp7Im5hbWVzcGFjZSI6Im4iLCJzZXJ2aWNlYWNjb3VudCI6eyJuYW1lIjoiYSJ9fX0"
      ".c";
  constexpr const char* kOfAnotherShape =
      "a.eyJrdWJlcm5ldGVzLmlvIjpbXX0.c";     // {"kubernetes.io":[]}
  constexpr const char* kEmpty = "a.e30.c";  // {}
  constexpr const char* kNull = "a.bnVsbA.c";
  for (const char* token :
       {"", ".", "..", "secret", "a.b.c", "a.!.c", kEmpty, kNull, kOfAnotherShape, kWithoutUid})
    EXPECT_EQ(service_account_of(std::string_view(token)), std::nullopt) << token;
}

}  // namespace
}  // namespace outrigger::kube
