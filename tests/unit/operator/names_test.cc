#include "operator/names.h"

#include <gtest/gtest.h>

namespace outrigger::controller {
namespace {

// The longest name that the schema lets a job have.
const std::string kLongest(48, 'x');

TEST(Names, APodsNameSaysJobRoleIndexAndNumber) {
  EXPECT_EQ(pod_name("faces", {api::Role::kServer, 0, 2}), "faces-server-0-2");
  EXPECT_EQ(pod_name("faces", {api::Role::kWorker, 13, 0}), "faces-worker-13-0");
  EXPECT_EQ(pod_number("faces-worker-13-7"), 7);
}

TEST(Names, ANameWithoutANumberAtItsEndHasNone) {
  for (const char* name : {"faces", "faces-", "faces-x1", "faces-1x", ""})
    EXPECT_EQ(pod_number(name), std::nullopt) << name;
}

TEST(Names, TheLongestJobNameLeavesEveryDnsLabelWithin63Characters) {
  EXPECT_LE(server_host(kLongest, 1023).size(), 63U);
  EXPECT_LE(service_name(kLongest).size(), 63U);
}

TEST(Names, AServersAddressDoesNotChangeWithItsPod) {
  EXPECT_EQ(server_address("faces", "team", 0), "faces-server-0.faces-server.team.svc");
}

TEST(Names, AJobMadeAnewUnderItsNameGetsAnotherSecret) {
  EXPECT_NE(secret_name("faces", "0123456789"), secret_name("faces", "9876543210"));
}

}  // namespace
}  // namespace outrigger::controller
