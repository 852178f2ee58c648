#include "gpu-server/job/job_data.h"

#include <algorithm>

#include "api/exit_codes.h"
#include "common/error.h"
#include "common/log.h"
#include "data/image_folder.h"
#include "data/web_dataset.h"
#include "training/evaluation/metrics.h"
#include "training/evaluation/verification.h"

namespace outrigger::gpu_server {

data::Dataset list_data(const api::DataSource& source, const std::filesystem::path& root,
                        const std::vector<std::string>& classes) {
  try {
    if (source.format == api::DataFormat::kWebDataset)
      return data::list_web_dataset(root, "", classes);
    data::ListOptions options;
    options.classes = classes;
    return data::list_image_folder(root, options);
  } catch (const InvalidInput& error) {
    throw api::Failure(api::ExitCode::kBadData, error.what());
  }
}

void check_lists(const api::TrainingJob& job, const data::Dataset& train,
                 const data::Dataset& validation) {
  std::vector<uint32_t> images(train.classes().size());
  for (uint32_t i = 0; i < train.size(); ++i) ++images.at(static_cast<size_t>(train.label(i)));
  const auto lonely = std::ranges::find(images, 1u);
  if (lonely != images.end()) {
    log::warning(
        "{} of {} classes has one image only, among them \"{}\": little can be learnt of it",
        std::ranges::count(images, 1u), images.size(),
        train.classes()[static_cast<size_t>(lonely - images.begin())]);
  }
  const auto& evaluate = job.spec.training.evaluate;
  if (!evaluate || validation.size() == 0) return;
  std::vector<int32_t> labels(validation.size());
  for (uint32_t i = 0; i < validation.size(); ++i) labels[i] = validation.label(i);
  if (evaluate->metric == api::EvaluationMetric::kVerification) {
    try {
      static_cast<void>(training::draw_pairs(labels));
    } catch (const InvalidInput& error) {
      throw InvalidInput(
          "spec.training.evaluate.metric: Verification cannot be measured on "
          "spec.data.validation: " +
          std::string(error.what()));
    }
  }
  if (evaluate->metric == api::EvaluationMetric::kIdentification &&
      training::split_gallery(labels).probes.empty()) {
    throw InvalidInput(
        "spec.training.evaluate.metric: Identification cannot be measured on spec.data.validation: "
        "every class has one image, and it is looked for among the others of its class");
  }
}

}  // namespace outrigger::gpu_server
