#include "gpu-server/job/job_data.h"

#include <gtest/gtest.h>

#include "api/exit_codes.h"
#include "common/file.h"

namespace outrigger::gpu_server {
namespace {

api::ExitCode end_of_listing(const std::filesystem::path& root) {
  try {
    list_data({}, root, {});
    return api::ExitCode::kDone;
  } catch (const std::exception& error) {
    return api::exit_code_of(error);
  }
}

TEST(JobData, ThatIsNoDataSetIsBadDataAndNoInvalidJob) {
  const TemporaryDirectory folder;
  EXPECT_EQ(end_of_listing(folder.path() / "missing"), api::ExitCode::kBadData);
  EXPECT_EQ(end_of_listing(folder.path()), api::ExitCode::kBadData) << "no class";
  std::filesystem::create_directory(folder.path() / "ann");
  EXPECT_EQ(end_of_listing(folder.path()), api::ExitCode::kBadData) << "a class without an image";
}

}  // namespace
}  // namespace outrigger::gpu_server
