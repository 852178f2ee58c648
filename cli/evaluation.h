#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/image_runner.h"
#include "cli/trained_model.h"
#include "data/sample.h"
#include "training/evaluation/verification.h"

namespace outrigger::cli {

/// One measure, or why there is none.
template <typename T>
struct Measure {
  std::optional<T> value;
  std::string why_not;
};

struct Identification {
  double rank1 = 0;
  int64_t known = 0;  // photos in the gallery
  int64_t asked = 0;
  int64_t strangers = 0;  // photos beside these, of people who are not in the gallery
};

/// How good a model is on a folder of photos by person.
struct Evaluation {
  int64_t images = 0;
  int64_t people = 0;
  int64_t broken = 0;
  Measure<double> top1;
  Measure<training::Verification> verification;
  Measure<Identification> identification;
};

/// What a network said of one data set.
struct EvaluatedSet {
  const data::Dataset& dataset;
  const ImageOutputs& outputs;
};

/// Which of the model's classes each class of the data set is, by its name as the model's file has
/// it, where U+FFFD stands for what is not UTF-8. None where the model has no head or no names,
/// does not know somebody, or where a name may be of two people.
Measure<std::vector<int32_t>> labels_in_model(const TrainedModel& model,
                                              const data::Dataset& dataset);

/// Judges `probes`; identification looks in `gallery` where given, for those who are in it, else
/// for each person in their first photo. Top-1 is there where labels_in_model() has labels; the
/// head has been run on the probes then.
Evaluation evaluate_outputs(const TrainedModel& model, const EvaluatedSet& probes,
                            const std::optional<EvaluatedSet>& gallery,
                            const training::PairOptions& pairs);

}  // namespace outrigger::cli
