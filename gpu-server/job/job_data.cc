#include "gpu-server/job/job_data.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "api/exit_codes.h"
#include "common/error.h"
#include "common/log.h"
#include "data/web_dataset.h"
#include "training/evaluation/metrics.h"
#include "training/evaluation/verification.h"
#include "worker/job.h"

namespace outrigger::gpu_server {
namespace {

void warn_of_lonely(const data::Dataset& train) {
  std::vector<uint32_t> images(train.classes().size());
  for (uint32_t i = 0; i < train.size(); ++i) ++images.at(static_cast<size_t>(train.label(i)));
  const auto lonely = std::ranges::find(images, 1u);
  if (lonely == images.end()) return;
  log::warning("{} of {} classes has one image only, among them \"{}\": little can be learnt of it",
               std::ranges::count(images, 1u), images.size(),
               train.classes()[static_cast<size_t>(lonely - images.begin())]);
}

std::vector<int32_t> labels_of(const data::Dataset& dataset) {
  std::vector<int32_t> labels(dataset.size());
  for (uint32_t i = 0; i < dataset.size(); ++i) labels[i] = dataset.label(i);
  return labels;
}

void tell_of_strangers(const std::vector<int32_t>& labels, const data::Dataset& validation,
                       const data::Dataset& train) {
  const std::set<int32_t> people(labels.begin(), labels.end());
  const auto first = people.lower_bound(static_cast<int32_t>(train.classes().size()));
  if (first == people.end()) return;
  log::info(
      "{} of {} people in spec.data.validation are none of the classes of the training data, among "
      "them \"{}\": accuracy and loss, which are the classifier's, are not measured",
      std::distance(first, people.end()), people.size(),
      validation.classes()[static_cast<size_t>(*first)]);
}

}  // namespace

data::Dataset list_data(const api::DataSource& source, const std::filesystem::path& root,
                        const data::ListOptions& options) {
  try {
    if (source.format == api::DataFormat::kWebDataset)
      return data::list_web_dataset(root, "", options.classes, options.unknown);
    return data::list_image_folder(root, options);
  } catch (const InvalidInput& error) {
    throw api::Failure(api::ExitCode::kBadData, error.what());
  }
}

data::Dataset list_validation(const api::TrainingJob& job, const std::filesystem::path& root,
                              const data::Dataset& train) {
  if (!job.spec.data.validation) return {};
  data::ListOptions options;
  options.classes = train.classes();
  if (worker::scores_embeddings(job)) options.unknown = data::UnknownClass::kAppended;
  return list_data(*job.spec.data.validation, root, options);
}

void check_lists(const api::TrainingJob& job, const data::Dataset& train,
                 const data::Dataset& validation) {
  warn_of_lonely(train);
  const auto& evaluate = job.spec.training.evaluate;
  if (!evaluate || validation.size() == 0) return;
  const std::vector<int32_t> labels = labels_of(validation);
  tell_of_strangers(labels, validation, train);
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
