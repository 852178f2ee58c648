#include "cli/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outrigger::cli {
namespace {

using testing::HasSubstr;

data::Dataset dataset_of(const std::vector<std::string>& people, int photos) {
  data::Dataset dataset;
  dataset.set_classes(people);
  for (size_t person = 0; person < people.size(); ++person) {
    dataset.begin_container(people[person], false);
    for (int photo = 0; photo < photos; ++photo) {
      dataset.add_file(std::to_string(photo) + ".png", static_cast<int32_t>(person));
    }
  }
  dataset.finish();
  return dataset;
}

/// Embeddings that point along an axis of their own for each person, and the class that the head
/// names for each photo; empty: it was not run.
ImageOutputs outputs_of(const data::Dataset& dataset, std::vector<int32_t> named) {
  ImageOutputs outputs;
  outputs.features = 8;
  outputs.named = std::move(named);
  for (uint32_t i = 0; i < dataset.size(); ++i) {
    for (int64_t f = 0; f < outputs.features; ++f)
      outputs.embeddings.push_back(f == dataset.label(i) ? 1.0f : 0.0f);
    outputs.images.push_back(i);
  }
  return outputs;
}

TrainedModel model_of(std::vector<std::string> classes) {
  TrainedModel model;
  model.card.model.head = nn::HeadKind::kLinear;
  model.card.classes = std::move(classes);
  return model;
}

TEST(Evaluation, CountsTop1ByTheNamesOfPeople) {
  const data::Dataset dataset = dataset_of({"bob", "eve"}, 2);
  // The model counts eve as 0 and bob as 2; one photo of eve is called ann.
  const ImageOutputs outputs = outputs_of(dataset, {2, 2, 0, 1});
  const Evaluation result =
      evaluate_outputs(model_of({"eve", "ann", "bob"}), {dataset, outputs}, {}, {});
  EXPECT_EQ(result.top1.value, 0.75);
  EXPECT_EQ(result.images, 4);
  EXPECT_EQ(result.people, 2);
}

TEST(Evaluation, CountsThePeopleThatHaveAPhoto) {
  data::Dataset shards;
  shards.set_classes({"0", "1", "2"});
  shards.begin_container("a.tar", true);
  for (const int32_t label : {2, 0, 2}) shards.add_range(512, 10, label);
  shards.finish();
  const ImageOutputs outputs = outputs_of(shards, {2, 0, 2});
  EXPECT_EQ(evaluate_outputs(model_of({"0", "1", "2"}), {shards, outputs}, {}, {}).people, 2);
}

TEST(Evaluation, HasNoTop1ForPeopleTheModelDoesNotKnow) {
  const data::Dataset dataset = dataset_of({"bob", "eve"}, 2);
  const ImageOutputs outputs = outputs_of(dataset, {0, 0, 1, 1});
  const Evaluation strange = evaluate_outputs(model_of({"ann", "bob"}), {dataset, outputs}, {}, {});
  EXPECT_FALSE(strange.top1.value.has_value());
  EXPECT_THAT(strange.top1.why_not, HasSubstr("'eve'"));
  TrainedModel headless = model_of({"bob", "eve"});
  headless.card.model.head = nn::HeadKind::kNone;
  EXPECT_FALSE(evaluate_outputs(headless, {dataset, outputs}, {}, {}).top1.value.has_value());
}

TEST(Evaluation, KnowsAPersonByTheNameThatTheModelsFileHasForBytesThatAreNotText) {
  const data::Dataset dataset = dataset_of({"bob", "caf\xe9"}, 2);
  const TrainedModel model = model_of({"caf\xef\xbf\xbd", "ann", "bob"});
  const ImageOutputs outputs = outputs_of(dataset, {2, 2, 0, 1});
  EXPECT_EQ(evaluate_outputs(model, {dataset, outputs}, {}, {}).top1.value, 0.75);
}

TEST(Evaluation, HasNoTop1WhereANameMayBeOfTwoPeople) {
  const std::string replaced = "caf\xef\xbf\xbd";
  const auto why_not = [](const TrainedModel& model, const data::Dataset& dataset) {
    const ImageOutputs outputs = outputs_of(dataset, {});
    const auto top1 = evaluate_outputs(model, {dataset, outputs}, {}, {}).top1;
    return top1.value ? "" : top1.why_not;
  };
  EXPECT_THAT(why_not(model_of({replaced, "bob"}), dataset_of({"caf\xe8", "caf\xe9"}, 2)),
              HasSubstr("two of the people are called '" + replaced));
  const TrainedModel two = model_of({replaced, replaced, "bob"});
  EXPECT_THAT(why_not(two, dataset_of({"bob", "caf\xe9"}, 2)),
              HasSubstr("two of the people that the model was trained on are called '" + replaced));
  const data::Dataset others = dataset_of({"bob"}, 2);
  EXPECT_TRUE(labels_in_model(two, others).value.has_value())
      << "who is not asked for, matters not";
}

TEST(Evaluation, VerifiesAndIdentifiesPeopleWhoAreApart) {
  const data::Dataset dataset = dataset_of({"a", "b", "c", "d"}, 5);
  const ImageOutputs outputs = outputs_of(dataset, {});
  const Evaluation result = evaluate_outputs(model_of({}), {dataset, outputs}, {}, {});
  ASSERT_TRUE(result.verification.value.has_value()) << result.verification.why_not;
  EXPECT_EQ(result.verification.value->accuracy, 1.0);
  ASSERT_TRUE(result.identification.value.has_value()) << result.identification.why_not;
  EXPECT_EQ(result.identification.value->rank1, 1.0);
  EXPECT_EQ(result.identification.value->known, 4);
  EXPECT_EQ(result.identification.value->asked, 16);
}

TEST(Evaluation, SaysWhyThereIsNoVerificationOfOnePhotoEach) {
  const data::Dataset dataset = dataset_of({"a", "b"}, 1);
  const ImageOutputs outputs = outputs_of(dataset, {});
  const Evaluation result = evaluate_outputs(model_of({}), {dataset, outputs}, {}, {});
  EXPECT_FALSE(result.verification.value.has_value());
  EXPECT_THAT(result.verification.why_not, HasSubstr("2 images give 0"));
  EXPECT_FALSE(result.identification.value.has_value());
}

TEST(Evaluation, LooksForPeopleInTheGalleryByName) {
  const data::Dataset known = dataset_of({"b", "a"}, 1);
  const data::Dataset asked = dataset_of({"a", "b", "stranger"}, 2);
  ImageOutputs gallery = outputs_of(known, {});
  // The gallery's b lies on axis 0, where the probes' a lies; swap it, so that names and places
  // agree.
  std::swap_ranges(gallery.embeddings.begin(), gallery.embeddings.begin() + 8,
                   gallery.embeddings.begin() + 8);
  const ImageOutputs probes = outputs_of(asked, {});
  const Evaluation result =
      evaluate_outputs(model_of({}), {asked, probes}, EvaluatedSet{known, gallery}, {});
  ASSERT_TRUE(result.identification.value.has_value());
  EXPECT_EQ(result.identification.value->rank1, 1.0) << "who is not in it cannot be found there";
  EXPECT_EQ(result.identification.value->known, 2);
  EXPECT_EQ(result.identification.value->asked, 4);
  EXPECT_EQ(result.identification.value->strangers, 2);
}

TEST(Evaluation, SaysThatNobodyIsInTheGallery) {
  const data::Dataset known = dataset_of({"a", "b"}, 1);
  const data::Dataset asked = dataset_of({"stranger", "other"}, 2);
  ImageOutputs gallery = outputs_of(known, {});
  const ImageOutputs probes = outputs_of(asked, {});
  const auto identification = [&] {
    return evaluate_outputs(model_of({}), {asked, probes}, EvaluatedSet{known, gallery}, {})
        .identification;
  };
  EXPECT_FALSE(identification().value.has_value());
  EXPECT_THAT(identification().why_not,
              HasSubstr("the gallery has no photo of anybody in the 4 photos"));
}

TEST(Evaluation, CountsAPersonWhoseOnlyPhotoInTheGalleryIsBrokenAsNotInIt) {
  const data::Dataset known = dataset_of({"a", "b"}, 1);
  ImageOutputs gallery = outputs_of(known, {});
  gallery.images = {0};  // b's could not be decoded
  gallery.embeddings.resize(8);
  const data::Dataset asked = dataset_of({"a", "b"}, 2);
  const ImageOutputs probes = outputs_of(asked, {});
  const Evaluation result =
      evaluate_outputs(model_of({}), {asked, probes}, EvaluatedSet{known, gallery}, {});
  ASSERT_TRUE(result.identification.value.has_value());
  EXPECT_EQ(result.identification.value->rank1, 1.0);
  EXPECT_EQ(result.identification.value->strangers, 2);
}

TEST(Evaluation, LeavesOutBrokenImagesAndCountsThem) {
  const data::Dataset dataset = dataset_of({"bob", "eve"}, 2);
  ImageOutputs outputs = outputs_of(dataset, {0, 0, 1, 1});
  outputs.images = {0, 2, 3};  // the second could not be decoded
  outputs.embeddings.erase(outputs.embeddings.begin() + 8, outputs.embeddings.begin() + 16);
  outputs.named.erase(outputs.named.begin() + 1);
  outputs.broken = {"bob/1.png: cut short"};
  const Evaluation result = evaluate_outputs(model_of({"bob", "eve"}), {dataset, outputs}, {}, {});
  EXPECT_EQ(result.top1.value, 1.0);
  EXPECT_EQ(result.images, 3);
  EXPECT_EQ(result.broken, 1);
}

}  // namespace
}  // namespace outrigger::cli
