#include "api/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "common/file.h"
#include "sample_job.h"

namespace outrigger::api {
namespace {

using testing::HasSubstr;
using testing::Not;

Environment environment_of(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(std::string(name));
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

Launch parse(Role role, std::vector<const char*> arguments,
             std::map<std::string, std::string> variables = {}) {
  return parse_launch(role, arguments, environment_of(std::move(variables)));
}

std::string fault(Role role, std::vector<const char*> arguments,
                  std::map<std::string, std::string> variables = {}) {
  try {
    parse(role, std::move(arguments), std::move(variables));
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

TEST(Launch, FlagsWinOverTheEnvironment) {
  const Launch launch = parse(Role::kServer, {"--job", "a.yaml", "--status-port=0"},
                              {{"OUTRIGGER_JOB_FILE", "b.yaml"}, {"OUTRIGGER_ATTEMPT", "3"}});
  EXPECT_EQ(launch.job_file, "a.yaml");
  EXPECT_EQ(launch.status_port, 0);
  EXPECT_EQ(launch.attempt, 3);
}

TEST(Launch, MountsAreGatheredFromBoth) {
  const Launch launch = parse(Role::kServer, {"--mount", "faces=/a", "--mount=runs=/c"},
                              {{"OUTRIGGER_MOUNTS", "faces=/b,more=/d"}});
  EXPECT_EQ(launch.mounts, (std::map<std::string, std::filesystem::path>{
                               {"faces", "/a"}, {"more", "/d"}, {"runs", "/c"}}));
}

TEST(Launch, AFolderWithACommaIsOneFolderOfAFlag) {
  const Launch launch = parse(Role::kServer, {"--mount", "faces=sp, ace=x"});
  EXPECT_EQ(launch.mounts, (std::map<std::string, std::filesystem::path>{{"faces", "sp, ace=x"}}));
  EXPECT_EQ(fault(Role::kServer, {}, {{"OUTRIGGER_MOUNTS", "faces=/a,"}}),
            "OUTRIGGER_MOUNTS: \"\" is not allowed; CLAIM=FOLDER is needed, like "
            "faces=/home/me/faces");
}

TEST(Launch, RanksOfOneLaunchAreAmongTheReplicas) {
  EXPECT_EQ(
      parse(Role::kServer, {"--replicas=8", "--rank=4", "--ranks=4", "--rendezvous=h:1"}).ranks, 4);
  EXPECT_EQ(fault(Role::kServer, {"--replicas=8", "--rank=5", "--ranks=4"}),
            "--ranks: 4 from --rank 5 on are too many; --replicas, all of them, is 8");
}

// Rank 0 would listen where its neighbour found it: on this machine only.
TEST(Launch, RanksOfSeveralLaunchesAreToldWhereTheyMeet) {
  EXPECT_EQ(parse(Role::kServer, {"--replicas=2", "--ranks=2"}).ranks, 2);
  EXPECT_EQ(parse(Role::kServer, {"--replicas=4"}).ranks, 1);
  EXPECT_EQ(fault(Role::kServer, {"--replicas=4", "--ranks=2"}),
            "--rendezvous is missing: --ranks 2 of 4 start here, and all must be told an address "
            "of rank 0 that the others reach");
}

TEST(Launch, EveryValueComesBackFromItsArguments) {
  Launch launch = parse(Role::kServer, {"--job=j",
                                        "--token-file=t",
                                        "--control-token-file=c",
                                        "--mount=x=y",
                                        "--output=o",
                                        "--checkpoint=k",
                                        "--resume",
                                        "--rank=1",
                                        "--ranks=2",
                                        "--ranks-on-machine=2",
                                        "--replicas=3",
                                        "--rendezvous=h:1",
                                        "--attempt=4",
                                        "--listen=127.0.0.1",
                                        "--port=0",
                                        "--status-port=0",
                                        "--threads=3",
                                        "--device=cuda",
                                        "--tf32",
                                        "--nondeterministic",
                                        "--emulate=p",
                                        "--emulate-cores=60",
                                        "--link-megabits=100",
                                        "--link-milliseconds=5",
                                        "--termination-file=e",
                                        "--log-level=debug"});
  const auto arguments = launch_arguments(launch);
  std::vector<const char*> pointers;
  for (const auto& argument : arguments) pointers.push_back(argument.c_str());
  EXPECT_EQ(parse(Role::kServer, pointers), launch);
  const Launch worker = parse(Role::kWorker, {"--server=[::1]:29400", "--index=7"});
  EXPECT_EQ(launch_arguments(worker),
            (std::vector<std::string>{"--server", "[::1]:29400", "--index", "7"}));
}

TEST(Launch, AGpuIsExactUnlessItIsToldOtherwise) {
  const Launch usual = parse(Role::kServer, {});
  EXPECT_FALSE(usual.tf32);
  EXPECT_FALSE(usual.nondeterministic);
  const Launch fast = parse(Role::kServer, {"--nondeterministic"}, {{"OUTRIGGER_TF32", "true"}});
  EXPECT_TRUE(fast.tf32);
  EXPECT_TRUE(fast.nondeterministic);
}

TEST(Launch, FaultsNameTheFlagOrTheVariableAndWhatIsAllowed) {
  EXPECT_EQ(fault(Role::kWorker, {"--sever", "h:1"}),
            "\"--sever\" is no flag of this program; did you mean --server?");
  EXPECT_EQ(fault(Role::kWorker, {"--job", "a"}),
            "\"--job\" is no flag of this program; --help lists them");
  EXPECT_EQ(fault(Role::kServer, {"--rank"}), "--rank: a value is missing: N");
  EXPECT_EQ(fault(Role::kServer, {"--rank=x"}),
            "--rank: \"x\" is not allowed; a whole number from 0 to 1000000 is needed");
  EXPECT_EQ(fault(Role::kServer, {"--rank=2", "--replicas=2"}),
            "--rank: 2 is too large; less than --replicas, which is 2");
  EXPECT_EQ(fault(Role::kWorker, {}, {{"OUTRIGGER_SERVER", "host"}}),
            "OUTRIGGER_SERVER: \"host\" is not allowed; HOST:PORT is needed, like 10.0.0.7:29400");
  EXPECT_EQ(fault(Role::kServer, {"--mount", "faces"}),
            "--mount: \"faces\" is not allowed; CLAIM=FOLDER is needed, like faces=/home/me/faces");
  EXPECT_EQ(fault(Role::kServer, {"--resume=maybe"}),
            "--resume: \"maybe\" is not allowed; true or false is needed");
  EXPECT_EQ(fault(Role::kServer, {"--job="}), "--job: an empty value is not allowed");
  EXPECT_EQ(fault(Role::kServer, {"--log-level=loud"}),
            "--log-level: \"loud\" is not allowed; one of debug, info, warning, error");
  EXPECT_EQ(fault(Role::kServer, {"--device=gpu"}),
            "--device: \"gpu\" is not allowed; one of auto, cpu, cuda");
  EXPECT_EQ(fault(Role::kServer, {}, {{"OUTRIGGER_ROLE", "worker"}}),
            "OUTRIGGER_ROLE: \"worker\" is not allowed; this program is the server");
}

TEST(Launch, HelpListsTheFlagsOfTheRoleAlone) {
  const std::string help = launch_help(Role::kWorker, "outrigger-worker");
  EXPECT_THAT(help, HasSubstr("--server HOST:PORT"));
  EXPECT_THAT(help, HasSubstr("[OUTRIGGER_SERVER]"));
  EXPECT_THAT(help, Not(HasSubstr("--job")));
  const std::vector<const char*> arguments{"--job", "x", "--help"};
  EXPECT_TRUE(asks_for_help(arguments));
}

TEST(Launch, RanksThatShareAMachineAreThoseOfAPodAtTheLeast) {
  TrainingJob job = sample_job();
  EXPECT_EQ(ranks_on_machine(job, {}), 1);
  EXPECT_EQ(ranks_on_machine(job, parse(Role::kServer, {"--ranks-on-machine=4"})), 4);
  job.spec.server.gpus = 2;
  EXPECT_EQ(ranks_on_machine(job, {}), 2);
}

TEST(Paths, AMountStandsForItsClaim) {
  TrainingJob job = sample_job();
  job.spec.data.volume_claim_name = "faces";
  job.spec.output = {.path = "/output", .volume_claim_name = "runs"};
  const Launch launch =
      parse(Role::kServer, {"--mount=faces=/home/me/faces", "--mount=runs=/tmp/runs"});
  EXPECT_EQ(data_path(job, launch, "/data/train"), "/home/me/faces/train");
  EXPECT_EQ(data_path(job, launch, "/data//train"), "/home/me/faces/train");
  EXPECT_EQ(data_path(job, launch, "/data"), "/home/me/faces");
  EXPECT_EQ(data_path(job, launch, "/data/"), "/home/me/faces");
  EXPECT_EQ(data_path(job, launch, "/database"), "/database");
  EXPECT_EQ(run_directory(job, launch), "/tmp/runs/faces");
  EXPECT_EQ(checkpoint_directory(job, launch), "/tmp/runs/faces");
}

TEST(Paths, AMountOfNoClaimIsRefusedWithTheClaimsThatThereAre) {
  TrainingJob job = sample_job();
  const auto told = [&](const char* claim) -> std::string {
    try {
      check_mounts(job, {{claim, "/srv"}});
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(
      told("faces"),
      "--mount: \"faces\" is no volume claim of the job; it names none, so its paths are used");
  job.spec.data.volume_claim_name = "faces";
  job.spec.output.volume_claim_name = "runs";
  job.spec.checkpoint.volume_claim_name = "runs";
  EXPECT_EQ(told("face"), "--mount: \"face\" is no volume claim of the job; it names faces, runs");
  EXPECT_EQ(told("faces"), "");
  EXPECT_EQ(told("runs"), "");
}

TEST(Paths, AClaimThatIsMountedNowhereIsRefusedWithTheFlag) {
  TrainingJob job = sample_job();
  TemporaryDirectory directory;
  job.spec.output = {.path = (directory.path() / "none").string(), .volume_claim_name = "runs"};
  try {
    run_directory(job, Launch{});
    FAIL() << "a folder was made up";
  } catch (const InvalidInput& error) {
    EXPECT_STREQ(
        error.what(),
        "the volume claim runs has no folder on this machine; give one with --mount runs=FOLDER");
  }
  job.spec.output.path = directory.path().string();
  EXPECT_EQ(run_directory(job, Launch{}), directory.path() / "faces");
}

TEST(Paths, WithoutClaimsTheJobsOwnPathsHoldUnlessTheLauncherSaysOther) {
  TrainingJob job = sample_job();
  EXPECT_EQ(data_path(job, Launch{}, "/data/train"), "/data/train");
  EXPECT_EQ(run_directory(job, Launch{}), "runs/faces");
  job.spec.checkpoint.path = "states";
  EXPECT_EQ(checkpoint_directory(job, Launch{}), "states/faces");
  const Launch launch = parse(Role::kServer, {"--output=o", "--checkpoint=c"});
  EXPECT_EQ(run_directory(job, launch), "o/faces");
  EXPECT_EQ(checkpoint_directory(job, launch), "c/faces");
}

}  // namespace
}  // namespace outrigger::api
