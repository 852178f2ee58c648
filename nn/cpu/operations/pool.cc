#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/error.h"
#include "nn/cpu/operations/operation.h"
#include "nn/cpu/run.h"

namespace outrigger::nn::cpu {
namespace {

template <typename Pool>
Window window_of(Compilation& c, int layer) {
  const Value &in = c.input_of(layer), &out = c.value(layer);
  const auto& pool = std::get<Pool>(c.layer(layer).operation);
  return {in.height,    in.width,    out.height,  out.width,
          out.channels, pool.kernel, pool.stride, pool.padding};
}

// Adds a piece that calls call(run, sample) for each of a block's samples.
template <typename Call>
void add_per_sample(Schedule& schedule, int layer, std::vector<BufferId> uses, const Call& call) {
  schedule.add(
      {PieceKind::kBlock, layer, 0, std::move(uses), [call](const Run& run, const Task& task) {
         for (int64_t i = task.first; i < task.first + task.samples; ++i) call(run, i);
       }});
}

class MaxPoolOperation final : public Operation {
 public:
  explicit MaxPoolOperation(int layer) : layer_(layer) {}
  int output() const override { return layer_; }
  void plan_forward(Compilation& c) override {
    window_ = window_of<MaxPool>(c, layer_);
    // A place fits a byte, and a value lies in at most 64 windows.
    const int64_t overlap = (window_.kernel + window_.stride - 1) / window_.stride;
    if (window_.kernel > 16 || overlap > 8) {
      throw InvalidInput("layer \"" + c.layer(layer_).name +
                         "\": the engine's max pools have kernels of at most 16 and strides of at "
                         "least an eighth");
    }
    const BufferId in = c.input_of(layer_).data, out = c.create(c.value(layer_));
    const int64_t elements = c.value(layer_).elements();
    places_ =
        c.value(layer_).wants_gradient ? c.buffers().tape(elements) : c.buffers().blocked(elements);
    with_type(c.value(layer_).bfloat16, [&](auto type) {
      using T = decltype(type);
      add_per_sample(c.forward(), layer_, {in, out, places_},
                     [=, window = window_, places = places_,
                      pool = c.kernels().of<T>().max_pool_forward](const Run& run, int64_t i) {
                       pool(window, run.at<T>(in, i), run.at<T>(out, i),
                            run.at<uint8_t>(places, i));
                     });
    });
  }
  void plan_backward(Compilation& c) override {
    if (!c.input_of(layer_).wants_gradient) return;
    const BufferId dy = c.gradient(layer_, c.value(layer_)),
                   dx = c.create_gradient(c.input_of(layer_));
    with_type(c.value(layer_).bfloat16, [&](auto type) {
      using T = decltype(type);
      add_per_sample(c.backward(), layer_, {dy, dx, places_},
                     [=, window = window_, places = places_,
                      pool = c.kernels().of<T>().max_pool_backward](const Run& run, int64_t i) {
                       pool(window, run.at<uint8_t>(places, i), run.at<T>(dy, i), run.at<T>(dx, i));
                     });
    });
  }

 private:
  const int layer_;
  Window window_{};
  BufferId places_;
};

class AveragePoolOperation final : public Operation {
 public:
  explicit AveragePoolOperation(int layer) : layer_(layer) {}
  int output() const override { return layer_; }
  void plan_forward(Compilation& c) override {
    window_ = window_of<AveragePool>(c, layer_);
    const BufferId in = c.input_of(layer_).data, out = c.create(c.value(layer_));
    with_type(c.value(layer_).bfloat16, [&](auto type) {
      using T = decltype(type);
      add_per_sample(
          c.forward(), layer_, {in, out},
          [=, window = window_, pool = c.kernels().of<T>().average_pool_forward](
              const Run& run, int64_t i) { pool(window, run.at<T>(in, i), run.at<T>(out, i)); });
    });
  }
  void plan_backward(Compilation& c) override {
    if (!c.input_of(layer_).wants_gradient) return;
    const BufferId dy = c.gradient(layer_, c.value(layer_)),
                   dx = c.create_gradient(c.input_of(layer_));
    with_type(c.value(layer_).bfloat16, [&](auto type) {
      using T = decltype(type);
      add_per_sample(
          c.backward(), layer_, {dy, dx},
          [=, window = window_, pool = c.kernels().of<T>().average_pool_backward](
              const Run& run, int64_t i) { pool(window, run.at<T>(dy, i), run.at<T>(dx, i)); });
    });
  }

 private:
  const int layer_;
  Window window_{};
};

// From a map to a feature vector: kernels {places, channels} to floats and back.
class ToFeaturesOperation final : public Operation {
 public:
  ToFeaturesOperation(int layer, bool average) : layer_(layer), average_(average) {}
  int output() const override { return layer_; }
  void plan_forward(Compilation& c) override {
    const Value& map = c.input_of(layer_);
    const BufferId in = map.data, out = c.create(c.value(layer_));
    with_type(map.bfloat16, [&](auto type) {
      using T = decltype(type);
      const auto& kernels = c.kernels().of<T>();
      const auto run_kernel = average_ ? kernels.global_average_forward : kernels.flatten_forward;
      add_per_sample(c.forward(), layer_, {in, out},
                     [=, places = map.places, channels = map.channels](const Run& run, int64_t i) {
                       run_kernel(run.at<T>(in, i), places, channels, run.at<float>(out, i));
                     });
    });
  }
  void plan_backward(Compilation& c) override {
    Value& map = c.input_of(layer_);
    if (!map.wants_gradient) return;
    const BufferId dy = c.gradient(layer_, c.value(layer_)), dx = c.create_gradient(map);
    with_type(map.bfloat16, [&](auto type) {
      using T = decltype(type);
      const auto& kernels = c.kernels().of<T>();
      const auto run_kernel = average_ ? kernels.global_average_backward : kernels.flatten_backward;
      add_per_sample(c.backward(), layer_, {dy, dx},
                     [=, places = map.places, channels = map.channels](const Run& run, int64_t i) {
                       run_kernel(run.at<float>(dy, i), places, channels, run.at<T>(dx, i));
                     });
    });
  }

 private:
  const int layer_;
  const bool average_;
};

}  // namespace

std::unique_ptr<Operation> make_max_pool(int layer) {
  return std::make_unique<MaxPoolOperation>(layer);
}
std::unique_ptr<Operation> make_average_pool(int layer) {
  return std::make_unique<AveragePoolOperation>(layer);
}
std::unique_ptr<Operation> make_global_average_pool(int layer) {
  return std::make_unique<ToFeaturesOperation>(layer, true);
}
std::unique_ptr<Operation> make_flatten(int layer) {
  return std::make_unique<ToFeaturesOperation>(layer, false);
}

}  // namespace outrigger::nn::cpu
