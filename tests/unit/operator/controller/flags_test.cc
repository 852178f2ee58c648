#include "operator/flags.h"

#include <gmock/gmock.h>

#include "api/exit_codes.h"
#include "common/error.h"
#include "common/file.h"

namespace outrigger::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

Flags parse(std::vector<const char*> arguments) {
  for (const char* needed : {"--token-key-file=key", "--server-image=s:1", "--worker-image=w:1"})
    arguments.insert(arguments.begin(), needed);
  return parse_flags(arguments);
}

std::string refusal(std::vector<const char*> arguments) {
  try {
    parse(std::move(arguments));
  } catch (const api::Failure& error) {
    EXPECT_EQ(error.code(), api::ExitCode::kBadUsage);
    return error.what();
  }
  return "";
}

TEST(Flags, SayWhatTheOperatorNeeds) {
  const Flags flags =
      parse({"--namespace", "team", "--namespace=other", "--workers=8", "--leader-elect=false",
             "--image-pull-secret=a", "--image-pull-secret", "b", "--gpu", "--health-port=8081"});
  EXPECT_EQ(flags.health_port, 8081);
  EXPECT_EQ(parse({}).health_port, std::nullopt) << "two on one machine would meet";
  EXPECT_THAT(flags.namespaces, ElementsAre("team", "other"));
  EXPECT_EQ(flags.workers, 8);
  EXPECT_FALSE(flags.elect_leader);
  EXPECT_TRUE(flags.jobs.gpu);
  EXPECT_EQ(flags.jobs.server_image, "s:1");
  EXPECT_THAT(flags.jobs.image_pull_secrets, ElementsAre("a", "b"));
}

TEST(Flags, TheGroupOfVolumesIsTheClustersUnlessItIsGiven) {
  EXPECT_EQ(parse({"--fs-group=1000"}).jobs.fs_group, 1000);
  EXPECT_EQ(parse({}).jobs.fs_group, std::nullopt);
  EXPECT_THAT(refusal({"--fs-group=all"}), HasSubstr("--fs-group: 'all' is not allowed"));
}

TEST(Flags, SayWhatTheClusterHasForGradientsBetweenPods) {
  const RdmaOptions rdma =
      parse({"--rdma-resource=rdma/shared=1", "--rdma-resource-per-gpu", "nvidia.com/hca=2",
             "--rdma-variable=NCCL_IB_HCA==mlx5_0:1,mlx5_1:1",
             "--rdma-variable=NCCL_DEBUG=", "--rdma-lock-memory"})
          .jobs.rdma;
  EXPECT_THAT(rdma.resources, ElementsAre(Pair("rdma/shared", 1)));
  EXPECT_THAT(rdma.resources_per_gpu, ElementsAre(Pair("nvidia.com/hca", 2)));
  EXPECT_THAT(rdma.variables,
              ElementsAre(Pair("NCCL_DEBUG", ""), Pair("NCCL_IB_HCA", "=mlx5_0:1,mlx5_1:1")));
  EXPECT_TRUE(rdma.lock_memory);
  EXPECT_TRUE(parse({}).jobs.rdma.resources.empty());
  EXPECT_FALSE(parse({}).jobs.rdma.lock_memory);
}

TEST(Flags, AResourceThatNoPluginHasAndAVariableThatIsNoneAreRefused) {
  EXPECT_THAT(refusal({"--rdma-resource=rdma/hca"}), HasSubstr("NAME=VALUE is needed"));
  EXPECT_THAT(refusal({"--rdma-resource=rdma/hca=0"}), HasSubstr("from 1 to 1024"));
  EXPECT_THAT(refusal({"--rdma-resource=memory=1"}), HasSubstr("such as rdma/hca"));
  EXPECT_THAT(refusal({"--rdma-variable=3D=x"}), HasSubstr("no name of a variable"));
  EXPECT_THAT(refusal({"--rdma-variable=A-B=x"}), HasSubstr("no name of a variable"));
  EXPECT_THAT(refusal({"--rdma-variable==x"}), HasSubstr("NAME=VALUE is needed"));
  EXPECT_THAT(refusal({"--rdma-variable=OUTRIGGER_RANK=1"}), HasSubstr("the operator itself"));
}

TEST(Flags, WhatIsWrongIsNamedWithWhatIsAllowed) {
  EXPECT_THAT(refusal({"--worker=3"}), HasSubstr("did you mean --workers?"));
  EXPECT_THAT(refusal({"--workers=0"}), HasSubstr("from 1 to 256"));
  EXPECT_THAT(refusal({"--workers"}), HasSubstr("a value is missing"));
  EXPECT_THAT(refusal({"--log-level=loud"}), HasSubstr("debug, info, warning, error"));
  EXPECT_THAT(refusal({"--leader-elect=maybe"}), HasSubstr("true or false"));
}

TEST(Flags, ImagesAndKeyMustBeGiven) { EXPECT_THROW(parse_flags({}), api::Failure); }

TEST(Flags, HelpListsEveryFlagThatIsRead) {
  EXPECT_THAT(flags_help(), HasSubstr("--token-key-file FILE"));
  EXPECT_THAT(flags_help(), HasSubstr("--leader-elect true|false"));
}

TEST(Flags, AKeyTooShortToBeOneIsRefused) {
  const TemporaryDirectory folder;
  write_file_atomically(folder.path() / "short", "secret\n");
  write_file_atomically(folder.path() / "long", std::string(32, 'k') + "\n");
  EXPECT_THROW(read_token_key(folder.path() / "short"), api::Failure);
  EXPECT_THROW(read_token_key(folder.path() / "none"), IoError);
  EXPECT_EQ(read_token_key(folder.path() / "long"), std::string(32, 'k'));
}

}  // namespace
}  // namespace outrigger::controller
