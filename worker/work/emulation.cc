#include "worker/work/emulation.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "common/error.h"
#include "common/file.h"

namespace outrigger::worker {
namespace {

using nlohmann::json;

Shape batched(int64_t batch, const Shape& shape) {
  Shape all{batch};
  all.insert(all.end(), shape.begin(), shape.end());
  return all;
}

void fill_with_zeros(const TensorView& view) {
  if (view.data != nullptr) std::memset(view.data, 0, view.bytes());
}

struct NoWeights final : nn::Weights {};
struct NoTape final : nn::Tape {};

class EmulatedProgram final : public nn::Program {
 public:
  EmulatedProgram(const EmulatedTimes& times, Pace& pace, const nn::Graph& graph,
                  const nn::ProgramOptions& options)
      : pace_(pace) {
    const auto [begin, end] = options.segment;
    const double part = static_cast<double>(options.batch) / static_cast<double>(times.micro_batch);
    for (int i = begin; i < end; ++i) {
      forward_ += part * times.layers[static_cast<size_t>(i)].forward;
      backward_ += part * times.layers[static_cast<size_t>(i)].backward;
    }
    const ElementType type = options.precision == nn::Precision::kFloat32 ? ElementType::kFloat32
                                                                          : ElementType::kBFloat16;
    const auto output_of = [&](int layer) {
      return batched(options.batch, graph.layers()[static_cast<size_t>(layer)].output);
    };
    input_ = begin == 0 ? nn::TensorSpec{ElementType::kUint8, batched(options.batch, graph.input())}
                        : nn::TensorSpec{type, output_of(begin - 1)};
    output_ = {end == graph.size() ? ElementType::kFloat32 : type, output_of(end - 1)};
  }

  nn::TensorSpec input_spec() const override { return input_; }
  nn::TensorSpec output_spec() const override { return output_; }
  std::unique_ptr<nn::Weights> new_weights() const override {
    return std::make_unique<NoWeights>();
  }
  std::unique_ptr<nn::Tape> new_tape() const override { return std::make_unique<NoTape>(); }
  void load(nn::Weights& /*weights*/, std::span<const float> /*parameters*/,
            std::span<const float> /*buffers*/) const override {}
  void forward(const nn::Weights& /*weights*/, nn::Tape& /*tape*/, const nn::ForwardInput& /*in*/,
               const nn::ForwardOutput& out) const override {
    pace_.work(forward_);
    fill_with_zeros(out.output);
    std::ranges::fill(out.statistics, 0.0f);
  }
  void backward(const nn::Weights& /*weights*/, nn::Tape& /*tape*/,
                ConstTensorView /*output_gradient*/, const nn::BackwardOutput& out) const override {
    pace_.work(backward_);
    fill_with_zeros(out.input_gradient);
    std::ranges::fill(out.gradients, 0.0f);
  }

 private:
  Pace& pace_;
  double forward_ = 0;  // core-seconds
  double backward_ = 0;
  nn::TensorSpec input_;
  nn::TensorSpec output_;
};

class EmulatedBackend final : public nn::Backend {
 public:
  EmulatedBackend(EmulatedTimes times, Pace& pace) : times_(std::move(times)), pace_(pace) {}

  std::string name() const override { return "emulated"; }
  std::unique_ptr<nn::Program> compile(const nn::Graph& graph, const nn::ProgramOptions& options,
                                       ThreadPool& /*threads*/) const override {
    nn::check_options(graph, options);
    check(graph, options);
    return std::make_unique<EmulatedProgram>(times_, pace_, graph, options);
  }

 private:
  void check(const nn::Graph& graph, const nn::ProgramOptions& options) const {
    const auto same = [](const nn::Layer& layer, const EmulatedTimes::Layer& timed) {
      return layer.name == timed.name;
    };
    if (!std::ranges::equal(graph.layers(), times_.layers, same))
      throw InvalidInput("the profile to emulate is of another network: it has " +
                         std::to_string(times_.layers.size()) + " layers, this one (" +
                         graph.name() + ") " + std::to_string(graph.size()) +
                         ", or they have other names" +
                         (times_.layers.size() < graph.layers().size()
                              ? "; one of a GPU has the layers of stems only and is not emulated"
                              : ""));
    if (options.batch != times_.micro_batch && options.mode == nn::Mode::kTraining)
      throw InvalidInput("the profile to emulate is of micro-batches of " +
                         std::to_string(times_.micro_batch) + " samples, the job's have " +
                         std::to_string(options.batch));
  }

  const EmulatedTimes times_;
  Pace& pace_;
};

double seconds_of(const json& object, const char* field, const std::string& where) {
  const auto found = object.find(field);
  if (found == object.end() || !found->is_number() || found->get<double>() < 0 ||
      !std::isfinite(found->get<double>()))
    throw InvalidInput(where + "." + field + ": a number from 0 is needed");
  return found->get<double>();
}

}  // namespace

double EmulatedTimes::pass_seconds(int32_t cut) const {
  double sum = 0;
  for (size_t i = 0; i < std::min(layers.size(), static_cast<size_t>(cut)); ++i)
    sum += layers[i].forward + layers[i].backward;
  return sum;
}

EmulatedTimes read_emulated_times(const std::filesystem::path& profile) {
  constexpr size_t kMostBytes = size_t{16} << 20;
  const std::string name = profile.string();
  const json parsed = json::parse(read_file(profile, kMostBytes), nullptr, false);
  if (!parsed.is_object())
    throw InvalidInput(name + ": is no JSON object; `outrigger plan job.yaml -o json` writes one");
  const json& object = parsed.contains("profile") ? parsed["profile"] : parsed;
  const auto layers = object.find("layers");
  if (layers == object.end() || !layers->is_array() || layers->empty())
    throw InvalidInput(name + ": profile.layers: a list is needed");
  EmulatedTimes times;
  for (size_t i = 0; i < layers->size(); ++i) {
    const json& layer = (*layers)[i];
    const std::string where = name + ": profile.layers[" + std::to_string(i) + "]";
    if (!layer.is_object() || !layer.contains("name") || !layer["name"].is_string())
      throw InvalidInput(where + ".name: text is needed");
    times.layers.push_back({layer["name"].get<std::string>(), seconds_of(layer, "forward", where),
                            seconds_of(layer, "backward", where)});
  }
  times.decode = seconds_of(object, "decode", name + ": profile");
  const double samples = seconds_of(object, "microBatch", name + ": profile");
  if (samples < 1 || samples != std::floor(samples))
    throw InvalidInput(name + ": profile.microBatch: a whole number from 1 is needed");
  times.micro_batch = static_cast<int64_t>(samples);
  return times;
}

void Pace::work(double core_seconds) {
  TimePoint until;
  {
    const std::scoped_lock lock(mutex_);
    const TimePoint now = std::chrono::steady_clock::now();
    if (working_++ == 0) busy_until_ = idle_since_ ? busy_until_ + (now - *idle_since_) : now;
    busy_until_ +=
        std::chrono::duration_cast<Duration>(std::chrono::duration<double>(core_seconds / cores_));
    until = busy_until_;
  }
  std::this_thread::sleep_until(until);
  const std::scoped_lock lock(mutex_);
  if (--working_ == 0) idle_since_ = std::chrono::steady_clock::now();
}

std::unique_ptr<nn::Backend> make_emulated_backend(EmulatedTimes times, Pace& pace) {
  return std::make_unique<EmulatedBackend>(std::move(times), pace);
}

Duration EmulatedPixels::make(const feed::LeaseSample& sample, bool /*evaluation*/,
                              std::span<std::byte> pixels) {
  pace_.work(seconds_);
  std::ranges::fill(pixels, std::byte{0});
  const uint64_t told[] = {sample.slot, sample.id};
  std::memcpy(pixels.data(), told, std::min(pixels.size(), sizeof told));
  return Duration{0};
}

transport::LinkOptions link_options(const api::Launch& launch) {
  constexpr double kBytesAMegabit = 1e6 / 8;
  transport::LinkOptions options;
  options.bytes_per_second = launch.link_megabits * kBytesAMegabit;
  options.delay = std::chrono::milliseconds(launch.link_milliseconds);
  return options;
}

}  // namespace outrigger::worker
