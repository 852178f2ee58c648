#include "worker/job.h"

#include <map>
#include <string>
#include <utility>

#include "api/parse.h"
#include "common/error.h"
#include "nn/cpu/backend.h"
#include "nn/cpu/blocks.h"
#include "nn/graph_builder.h"
#include "nn/recompute.h"

namespace outrigger::worker {
namespace {

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

nn::Operation operation_of(const api::LayerKind& kind) {
  return std::visit(
      Overloaded{
          [](const api::ConvolutionLayer& l) -> nn::Operation {
            return nn::Convolution{l.channels, l.kernel, l.stride, l.padding, l.groups, l.bias};
          },
          [](const api::BatchNormLayer& l) -> nn::Operation {
            return nn::BatchNorm{static_cast<float>(l.epsilon), static_cast<float>(l.momentum)};
          },
          [](const api::ReluLayer&) -> nn::Operation { return nn::Relu{}; },
          [](const api::PReluLayer&) -> nn::Operation { return nn::Prelu{}; },
          [](const api::AddLayer&) -> nn::Operation { return nn::Add{}; },
          [](const api::MaxPoolLayer& l) -> nn::Operation {
            return nn::MaxPool{l.kernel, l.stride, l.padding};
          },
          [](const api::AveragePoolLayer& l) -> nn::Operation {
            return nn::AveragePool{l.kernel, l.stride, l.padding};
          },
          [](const api::GlobalAveragePoolLayer&) -> nn::Operation {
            return nn::GlobalAveragePool{};
          },
          [](const api::LinearLayer& l) -> nn::Operation {
            return nn::Linear{l.features, l.bias};
          },
          [](const api::DropoutLayer& l) -> nn::Operation {
            return nn::Dropout{static_cast<float>(l.rate)};
          },
          [](const api::FlattenLayer&) -> nn::Operation { return nn::Flatten{}; },
      },
      kind);
}

nn::Graph build_layers(const api::TrainingJob& job, int64_t classes) {
  const auto& spec = job.spec;
  const auto channels = static_cast<size_t>(spec.data.image.channels);
  nn::GraphBuilder builder(
      "layers", {spec.data.image.height, spec.data.image.width, spec.data.image.channels});
  std::map<std::string, int> by_name;
  int last = builder.add("input", nn::Normalize{std::vector<float>(channels, 0.5f),
                                                std::vector<float>(channels, 0.5f)});
  by_name["input"] = last;
  for (const api::LayerSpec& layer : spec.model.layers) {
    std::vector<int> inputs;
    for (const std::string& input : layer.inputs) {
      const auto found = by_name.find(input);
      if (found == by_name.end()) {
        throw InvalidInput("spec.model.layers: layer '" + layer.name + "' reads '" + input +
                           "', which is no layer before it");
      }
      inputs.push_back(found->second);
    }
    last = builder.add(layer.name, operation_of(layer.kind), inputs);
    by_name[layer.name] = last;
  }
  if (const auto* arcface = std::get_if<api::ArcFace>(&spec.training.loss)) {
    builder.mark_embedding(last);
    builder.add("arcface", nn::ArcFace{classes, static_cast<float>(arcface->margin),
                                       static_cast<float>(arcface->scale)});
  }
  if (spec.model.freeze_until) builder.freeze_until(*spec.model.freeze_until);
  nn::Graph graph = builder.build();
  const Shape output = graph.layers().back().output;
  if (output != Shape{classes}) {
    throw InvalidInput("spec.model.layers: the last layer gives " +
                       (output.size() == 1 ? std::to_string(output[0]) : to_string(output)) +
                       " values, the data has " + std::to_string(classes) + " classes");
  }
  return graph;
}

}  // namespace

api::TrainingJob read_job(const std::string& text) {
  auto parsed = api::parse_training_job(text);
  if (!parsed.errors.empty())
    throw InvalidInput("the server's job cannot be read: " + parsed.errors.front().message);
  return std::move(parsed.job);
}

nn::ModelOptions model_options(const api::TrainingJob& job, int64_t classes) {
  const auto& spec = job.spec;
  if (!spec.model.name)
    throw InvalidInput("spec.model.name: absent; a model given as layers has no name");
  nn::ModelOptions options;
  options.name = *spec.model.name;
  options.height = spec.data.image.height;
  options.width = spec.data.image.width;
  options.channels = spec.data.image.channels;
  options.classes = classes;
  if (spec.model.embedding) options.embedding = *spec.model.embedding;
  if (const auto* arcface = std::get_if<api::ArcFace>(&spec.training.loss)) {
    options.head = nn::HeadKind::kArcFace;
    options.arcface_margin = static_cast<float>(arcface->margin);
    options.arcface_scale = static_cast<float>(arcface->scale);
  }
  options.freeze_until = spec.model.freeze_until;
  return options;
}

nn::Graph build_graph(const api::TrainingJob& job, int64_t classes) {
  return job.spec.model.name ? nn::build_model(model_options(job, classes))
                             : build_layers(job, classes);
}

data::PipelineOptions pipeline_options(const api::TrainingJob& job) {
  data::PipelineOptions options;
  options.height = job.spec.data.image.height;
  options.width = job.spec.data.image.width;
  options.channels = job.spec.data.image.channels;
  options.seed = seed(job);
  for (const api::Augmentation& step : job.spec.data.augment) {
    options.augment.push_back(std::visit(
        Overloaded{
            [](const api::RandomHorizontalFlip& a) -> data::AugmentStep {
              return data::RandomHorizontalFlip{a.probability};
            },
            [](const api::RandomResizedCrop& a) -> data::AugmentStep {
              return data::RandomResizedCrop{a.min_scale, a.max_scale, a.min_ratio, a.max_ratio};
            },
            [](const api::Resize& a) -> data::AugmentStep { return data::Resize{a.shorter_side}; },
            [](const api::CenterCrop&) -> data::AugmentStep { return data::CenterCrop{}; },
            [](const api::ColorJitter& a) -> data::AugmentStep {
              return data::ColorJitter{a.brightness, a.contrast, a.saturation, a.hue};
            },
            [](const api::RandomRotation& a) -> data::AugmentStep {
              return data::RandomRotation{.degrees = a.degrees};
            },
            [](const api::RandomErasing& a) -> data::AugmentStep {
              return data::RandomErasing{.probability = a.probability,
                                         .min_area = a.min_area,
                                         .max_area = a.max_area,
                                         .min_ratio = a.min_ratio,
                                         .max_ratio = a.max_ratio};
            },
        },
        step));
  }
  return options;
}

nn::Precision precision(const api::TrainingJob& job) {
  switch (job.spec.training.precision) {
    case api::Precision::kFloat32:
      return nn::Precision::kFloat32;
    case api::Precision::kBFloat16:
      return nn::Precision::kBFloat16;
    case api::Precision::kFloat16:
      return nn::Precision::kFloat32;
  }
  impossible("a precision");
}

ElementType activation_type(const api::TrainingJob& job) {
  return precision(job) == nn::Precision::kBFloat16 ? ElementType::kBFloat16
                                                    : ElementType::kFloat32;
}

std::unique_ptr<nn::Backend> cpu_backend(const api::TrainingJob& job) {
  auto backend = nn::cpu::make_cpu_backend();
  return job.spec.training.recompute == api::Recompute::kActivations
             ? nn::make_recomputing(std::move(backend))
             : std::move(backend);
}

uint64_t seed(const api::TrainingJob& job) { return static_cast<uint64_t>(job.spec.training.seed); }

bool scores_embeddings(const api::TrainingJob& job) {
  const auto& evaluate = job.spec.training.evaluate;
  return evaluate && evaluate->metric != api::EvaluationMetric::kAccuracy;
}

int64_t micro_batch(const api::TrainingJob& job) {
  ensure(job.spec.training.micro_batch_size.has_value(), "a resolved job has a micro-batch size");
  return *job.spec.training.micro_batch_size;
}

int stem_threads(const api::TrainingJob& job, const nn::Graph& graph) {
  return nn::cpu::choose_blocks(graph, micro_batch(job)).count();
}

}  // namespace outrigger::worker
