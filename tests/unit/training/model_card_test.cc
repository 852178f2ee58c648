#include "training/checkpoint/model_card.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"

namespace outrigger::training {
namespace {

using testing::HasSubstr;

ModelCard faces() {
  ModelCard card;
  card.model.name = "iresnet18";
  card.model.height = 112;
  card.model.width = 96;
  card.model.channels = 1;
  card.model.classes = 2;
  card.model.embedding = 128;
  card.model.head = nn::HeadKind::kArcFace;
  card.model.arcface_margin = 0.3f;
  card.model.arcface_scale = 30;
  card.classes = {"ann", "b\"o\nb"};
  return card;
}

std::string message_of(const std::map<std::string, std::string>& metadata) {
  try {
    card_of(metadata, "w.safetensors");
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

TEST(ModelCard, ComesBackFromMetadataAsItWas) {
  const ModelCard card = faces();
  const ModelCard back = card_of(to_metadata(card, nn::build_model(card.model)), "file");
  EXPECT_EQ(back.model.name, card.model.name);
  EXPECT_EQ(back.model.height, card.model.height);
  EXPECT_EQ(back.model.width, card.model.width);
  EXPECT_EQ(back.model.channels, card.model.channels);
  EXPECT_EQ(back.model.classes, card.model.classes);
  EXPECT_EQ(back.model.embedding, card.model.embedding);
  EXPECT_EQ(back.model.head, card.model.head);
  EXPECT_EQ(back.model.arcface_margin, card.model.arcface_margin);
  EXPECT_EQ(back.model.arcface_scale, card.model.arcface_scale);
  EXPECT_EQ(back.classes, card.classes);
}

TEST(ModelCard, TellsOthersHowPixelsAreNormalised) {
  ModelCard card = faces();
  const auto metadata = to_metadata(card, nn::build_model(card.model));
  EXPECT_EQ(metadata.at("mean"), "[0.5]");
  EXPECT_EQ(metadata.at("deviation"), "[0.5]");
}

TEST(ModelCard, OfANetworkInLayersCarriesItsJob) {
  ModelCard card = faces();
  const nn::Graph graph = nn::build_model(card.model);
  card.model.name.clear();
  card.job = R"({"spec": {}})";
  const auto metadata = to_metadata(card, graph);
  EXPECT_FALSE(metadata.contains("model"));
  const ModelCard back = card_of(metadata, "file");
  EXPECT_EQ(back.job, card.job);
  EXPECT_EQ(back.model.name, "");
  EXPECT_EQ(back.model.width, card.model.width);
}

TEST(ModelCard, WithoutAHeadNeedsNoClasses) {
  ModelCard card = faces();
  card.model.head = nn::HeadKind::kNone;
  card.model.classes = 0;
  card.classes.clear();
  EXPECT_EQ(card_of(to_metadata(card, nn::build_model(card.model)), "file").model.head,
            nn::HeadKind::kNone);
}

TEST(ModelCard, NamesWhatIsAbsentOrWrong) {
  const auto whole = to_metadata(faces(), nn::build_model(faces().model));
  EXPECT_THAT(message_of({}), HasSubstr("w.safetensors does not say its 'model'"));
  for (const char* key : {"height", "width", "channels", "head", "classes", "arcfaceMargin"}) {
    auto metadata = whole;
    metadata.erase(key);
    EXPECT_THAT(message_of(metadata), HasSubstr("'" + std::string(key) + "'"));
    metadata[key] = "much";
    EXPECT_THAT(message_of(metadata), HasSubstr("'" + std::string(key) + "' is 'much'"));
  }
  auto metadata = whole;
  metadata["height"] = "-3";
  EXPECT_THAT(message_of(metadata), HasSubstr("a positive number"));
  metadata = whole;
  metadata["classNames"] = "[1]";
  EXPECT_THAT(message_of(metadata), HasSubstr("array of names"));
}

}  // namespace
}  // namespace outrigger::training
