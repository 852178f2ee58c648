#include "gpu-server/job/job_data.h"

#include <gmock/gmock.h>
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

/// Ann and Bob to train on; Abel, whom nobody trains on, and Bob to recognise.
class JobDataOfPeople : public testing::Test {
 protected:
  JobDataOfPeople() {
    for (const char* photo :
         {"train/ann/1.jpg", "train/ann/2.jpg", "train/bob/1.jpg", "train/bob/2.jpg",
          "val/abel/1.jpg", "val/abel/2.jpg", "val/bob/3.jpg"}) {
      std::filesystem::create_directories((folder_.path() / photo).parent_path());
      write_file_atomically(folder_.path() / photo, "x");
    }
    job_.spec.data.validation.emplace();
  }
  data::Dataset train() const { return list_data({}, folder_.path() / "train", {}); }
  data::Dataset validation_by(api::EvaluationMetric metric) {
    job_.spec.training.evaluate = api::EvaluateSpec{.metric = metric};
    return list_validation(job_, folder_.path() / "val", train());
  }

  const TemporaryDirectory folder_;
  api::TrainingJob job_;
};

TEST_F(JobDataOfPeople, WhoAreNotTrainedOnMayBeRecognisedByTheirEmbeddingsAlone) {
  for (const auto metric :
       {api::EvaluationMetric::kVerification, api::EvaluationMetric::kIdentification}) {
    const data::Dataset validation = validation_by(metric);
    ASSERT_EQ(validation.size(), 3u);
    EXPECT_EQ(validation.label(0), 2) << "Abel, behind the classes of training";
    EXPECT_EQ(validation.label(2), 1) << "Bob, as in training";
  }
  try {
    validation_by(api::EvaluationMetric::kAccuracy);
    ADD_FAILURE() << "the classifier can name nobody else";
  } catch (const api::Failure& failure) {
    EXPECT_EQ(failure.code(), api::ExitCode::kBadData);
    EXPECT_THAT(failure.what(), testing::HasSubstr("\"abel\" is not one of the 2 classes"));
  }
}

TEST_F(JobDataOfPeople, WhoAreNotTrainedOnAreToldOf) {
  const data::Dataset validation = validation_by(api::EvaluationMetric::kIdentification);
  testing::internal::CaptureStderr();
  check_lists(job_, train(), validation);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("1 of 2 people in spec.data.validation are none of the classes of "
                                 "the training data, among them \"abel\""));
  testing::internal::CaptureStderr();
  check_lists(job_, train(), train());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(JobDataOfPeople, WithoutAValidationSetListNone) {
  job_.spec.data.validation.reset();
  EXPECT_EQ(validation_by(api::EvaluationMetric::kVerification).size(), 0u);
}

}  // namespace
}  // namespace outrigger::gpu_server
