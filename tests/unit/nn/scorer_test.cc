#include "nn/scorer.h"

#include <gmock/gmock.h>

#include <utility>

#include "nn/graph_builder.h"
#include "nn/models.h"
#include "nn/reference/backend.h"

namespace outrigger::nn {
namespace {

constexpr int32_t kClasses = 3;

Graph tiny_recogniser() {
  GraphBuilder builder("tiny", {4, 4, 1});
  builder.add("normalize", Normalize{{0.5f}, {0.25f}});
  builder.add("conv", Convolution{.out_channels = 2, .kernel = 3, .padding = 1});
  builder.mark_embedding(builder.add("flatten", Flatten{}));
  builder.add("classifier", Linear{kClasses});
  return builder.build();
}

TEST(Scorer, SaysOfPeopleWhoAreNoneOfTheClassesNothingButTheirEmbeddings) {
  const Graph graph = tiny_recogniser();
  const auto backend = make_reference_backend();
  ThreadPool threads(2);
  Scorer scorer(graph, *backend, threads, {.batch = 4, .embeddings = true});
  std::vector<float> parameters(static_cast<size_t>(graph.parameter_count()));
  std::vector<float> buffers(static_cast<size_t>(graph.buffer_count()));
  initialize(graph, 5, parameters, buffers);
  scorer.load(parameters, buffers);
  Tensor pixels(ElementType::kUint8, {4, 4, 4, 1});
  for (size_t i = 0; i < 4 * 16; ++i) pixels.as<uint8_t>()[i] = static_cast<uint8_t>(7 * i % 64);
  const auto rows_of = [&](const std::vector<int32_t>& labels) {
    const auto rows = scorer.score(std::as_const(pixels).view(), labels);
    return std::vector<float>(rows.begin(), rows.end());
  };
  const std::vector<float> all_known = rows_of({0, 1, 2, 0});
  const std::vector<float> mixed = rows_of({0, kClasses, -1, 1'000'000});
  const size_t width = scorer.width();
  for (size_t image = 0; image < 4; ++image) {
    for (size_t at = 0; at < width; ++at) {
      const bool absent = image > 0 && at < Score::kEmbedding;
      EXPECT_EQ(mixed[image * width + at], absent ? 0 : all_known[image * width + at])
          << "image " << image << ", place " << at;
    }
  }
  EXPECT_GT(all_known[width + Score::kLoss], 0);
}

}  // namespace
}  // namespace outrigger::nn
