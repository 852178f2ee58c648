#include <algorithm>
#include <cstddef>
#include <variant>

#include "nn/cpu/operations/operation.h"
#include "nn/cpu/run.h"
#include "nn/dropout.h"

namespace outrigger::nn::cpu {
namespace {

// Where no norm or convolution lies before it.
class ReluOperation final : public Operation {
 public:
  explicit ReluOperation(int layer) : layer_(layer) {}
  int output() const override { return layer_; }
  void announce(Compilation& c) override {
    if (c.value(layer_).wants_gradient) c.value(layer_).kept = true;
  }
  void plan_forward(Compilation& c) override {
    in_ = c.input_of(layer_).data;
    out_ = c.create(c.value(layer_));
    with_type(c.value(layer_).bfloat16, [&](auto type) { plan_forward_typed<decltype(type)>(c); });
  }
  void plan_backward(Compilation& c) override {
    if (!c.input_of(layer_).wants_gradient) return;
    with_type(c.value(layer_).bfloat16, [&](auto type) { plan_backward_typed<decltype(type)>(c); });
  }

 private:
  template <typename T>
  void plan_forward_typed(Compilation& c) {
    const int64_t elements = c.value(layer_).elements();
    c.forward().add(
        {PieceKind::kBlock,
         layer_,
         0,
         {in_, out_},
         [=, this, relu = c.kernels().of<T>().relu_forward](const Run& run, const Task& task) {
           relu(run.at<T>(in_, task.first), run.at<T>(out_, task.first), task.samples * elements);
         }});
  }
  template <typename T>
  void plan_backward_typed(Compilation& c) {
    const BufferId dy = c.gradient(layer_, c.value(layer_)),
                   dx = c.create_gradient(c.input_of(layer_));
    const int64_t elements = c.value(layer_).elements();
    c.backward().add(
        {PieceKind::kBlock,
         layer_,
         0,
         {out_, dy, dx},
         [=, this, relu = c.kernels().of<T>().relu_backward](const Run& run, const Task& task) {
           relu(run.at<T>(out_, task.first), run.at<T>(dy, task.first), run.at<T>(dx, task.first),
                task.samples * elements);
         }});
  }
  const int layer_;
  BufferId in_, out_;
};

class PreluOperation final : public Operation {
 public:
  explicit PreluOperation(int layer) : layer_(layer) {}
  int output() const override { return layer_; }
  void announce(Compilation& c) override {
    if (c.value(layer_).wants_gradient) c.input_of(layer_).kept = true;
    channels_ = c.value(layer_).channels;
    period_ = period_of(channels_);
    elements_ = c.value(layer_).elements();
    range_ = c.parameter(layer_, 0);
    trains_ = c.training() && c.trains(layer_, 0);
  }
  void plan_forward(Compilation& c) override {
    in_ = c.input_of(layer_).data;
    const BufferId out = c.create(c.value(layer_));
    slope_ = c.reserve_weights(static_cast<size_t>(period_) * sizeof(float));
    with_type(c.value(layer_).bfloat16, [&](auto type) {
      using T = decltype(type);
      c.forward().add(
          {PieceKind::kBlock,
           layer_,
           0,
           {in_, out},
           [=, this, prelu = c.kernels().of<T>().prelu_forward](const Run& run, const Task& task) {
             prelu(run.at<T>(in_, task.first), run.weight<float>(slope_),
                   run.at<T>(out, task.first), task.samples * elements_, period_);
           }});
    });
  }
  void plan_backward(Compilation& c) override {
    const BufferId dy = c.gradient(layer_, c.value(layer_));
    const BufferId dx =
        c.input_of(layer_).wants_gradient ? c.create_gradient(c.input_of(layer_)) : BufferId{};
    const int blocks = c.blocks().count();
    const BufferId sums = c.buffers().whole_fixed(blocks * period_ * int64_t{sizeof(float)});
    with_type(c.value(layer_).bfloat16, [&](auto type) {
      using T = decltype(type);
      c.backward().add(
          {PieceKind::kBlock,
           layer_,
           0,
           {in_, dy, dx, sums},
           [=, this, prelu = c.kernels().of<T>().prelu_backward](const Run& run, const Task& task) {
             prelu(run.at<T>(in_, task.first), run.weight<float>(slope_), run.at<T>(dy, task.first),
                   dx ? run.at<T>(dx, task.first) : nullptr,
                   run.at<float>(sums) + task.index * period_, task.samples * elements_, period_);
           }});
    });
    if (!trains_) return;
    const auto add_up = [=, this](const Run& run, const Task&) {
      for (int64_t channel = 0; channel < channels_; ++channel) {
        double sum = 0;
        for (int64_t i = channel; i < blocks * period_; i += channels_)
          sum += double{run.at<float>(sums)[i]};
        run.back->gradients[static_cast<size_t>(range_.offset + channel)] = static_cast<float>(sum);
      }
    };
    c.backward().add({PieceKind::kDeferred, layer_, 1, {sums}, add_up, {range_}});
  }
  void load(const LoadArguments& a) const override {
    auto* slope = reinterpret_cast<float*>(a.weights + slope_);
    for (int64_t i = 0; i < period_; ++i)
      slope[i] = a.parameters.data()[range_.offset + i % channels_];
  }

 private:
  const int layer_;
  int64_t channels_ = 0, period_ = 0, elements_ = 0;
  Range range_;
  bool trains_ = false;
  size_t slope_ = 0;
  BufferId in_;
};

class AddOperation final : public Operation {
 public:
  explicit AddOperation(int layer) : layer_(layer) {}
  int output() const override { return layer_; }
  void plan_forward(Compilation& c) override {
    const BufferId a = c.input_of(layer_, 0).data, b = c.input_of(layer_, 1).data;
    const BufferId out = c.create(c.value(layer_));
    const int64_t elements = c.value(layer_).elements();
    with_type(c.value(layer_).bfloat16, [&](auto type) {
      using T = decltype(type);
      c.forward().add({PieceKind::kBlock,
                       layer_,
                       0,
                       {a, b, out},
                       [=, add = c.kernels().of<T>().add](const Run& run, const Task& task) {
                         add(run.at<T>(a, task.first), run.at<T>(b, task.first),
                             run.at<T>(out, task.first), task.samples * elements);
                       }});
    });
  }
  void plan_backward(Compilation& c) override {
    const BufferId gradient = c.gradient(layer_, c.value(layer_));
    for (size_t i = 0; i < 2; ++i) {
      if (c.input_of(layer_, i).wants_gradient) c.input_of(layer_, i).gradients.push_back(gradient);
    }
  }

 private:
  const int layer_;
};

// Over feature vectors and maps alike; the mask is drawn in {C, H, W} order. Identity in inference.
class DropoutOperation final : public Operation {
 public:
  explicit DropoutOperation(int layer) : layer_(layer) {}
  int output() const override { return layer_; }
  void plan_forward(Compilation& c) override;
  void plan_backward(Compilation& c) override;

 private:
  template <typename T>
  void plan_training(Compilation& c, BufferId in, BufferId out);
  void plan_inference(Compilation& c, BufferId in);
  void draw(const Run& run, int64_t sample, std::span<float> drawn) const;

  const int layer_;
  int64_t places_ = 0, channels_ = 0, elements_ = 0;
  float probability_ = 0;
  uint64_t seed_ = 0;
  BufferId factors_;
};

// Factors in the tensor's own order.
void DropoutOperation::draw(const Run& run, int64_t sample, std::span<float> drawn) const {
  dropout_factors({seed_, run.in->slots[static_cast<size_t>(sample)], layer_}, probability_, drawn);
  float* factors = run.at<float>(factors_, sample);
  for (int64_t place = 0; place < places_; ++place) {
    for (int64_t channel = 0; channel < channels_; ++channel)
      factors[place * channels_ + channel] = drawn[static_cast<size_t>(channel * places_ + place)];
  }
}

template <typename T>
void DropoutOperation::plan_training(Compilation& c, BufferId in, BufferId out) {
  const auto& kernels = c.kernels();
  c.forward().add({PieceKind::kBlock,
                   layer_,
                   0,
                   {in, out, factors_},
                   [=, this, &kernels](const Run& run, const Task& task) {
                     auto* pad = reinterpret_cast<float*>(run.scratchpad(task.slot));
                     for (int64_t i = task.first; i < task.first + task.samples; ++i) {
                       draw(run, i, {pad, static_cast<size_t>(elements_)});
                       kernels.of<T>().to_float(run.at<T>(in, i), pad, elements_);
                       kernels.multiply(pad, run.at<float>(factors_, i), pad, elements_);
                       kernels.of<T>().from_float(pad, run.at<T>(out, i), elements_);
                     }
                   }});
}

// The input itself, but where a reader wants all samples side by side and they do not lie so.
void DropoutOperation::plan_inference(Compilation& c, BufferId in) {
  Value& value = c.value(layer_);
  if (!value.whole || c.buffers().contiguous(in)) {
    value.data = in;
    return;
  }
  const BufferId out = c.create(value);
  c.forward().add({PieceKind::kBlock,
                   layer_,
                   0,
                   {in, out},
                   [=, bytes = value.bytes()](const Run& run, const Task& task) {
                     std::copy_n(run.at<std::byte>(in, task.first), task.samples * bytes,
                                 run.at<std::byte>(out, task.first));
                   }});
}

void DropoutOperation::plan_forward(Compilation& c) {
  const Value& value = c.value(layer_);
  places_ = value.places, channels_ = value.channels, elements_ = value.elements();
  probability_ = std::get<Dropout>(c.layer(layer_).operation).probability;
  seed_ = c.options().seed;
  const BufferId in = c.input_of(layer_).data;
  if (!c.training()) return plan_inference(c, in);
  const BufferId out = c.create(c.value(layer_));
  factors_ = c.buffers().tape(elements_ * int64_t{sizeof(float)});
  c.reserve_slot(static_cast<size_t>(elements_) * sizeof(float));
  with_type(value.bfloat16, [&](auto type) { plan_training<decltype(type)>(c, in, out); });
}

void DropoutOperation::plan_backward(Compilation& c) {
  if (!c.input_of(layer_).wants_gradient) return;
  const BufferId dy = c.gradient(layer_, c.value(layer_)),
                 dx = c.create_gradient(c.input_of(layer_));
  const auto& kernels = c.kernels();
  with_type(c.value(layer_).bfloat16, [&](auto type) {
    using T = decltype(type);
    c.backward().add({PieceKind::kBlock,
                      layer_,
                      0,
                      {dy, dx, factors_},
                      [=, this, &kernels](const Run& run, const Task& task) {
                        auto* pad = reinterpret_cast<float*>(run.scratchpad(task.slot));
                        for (int64_t i = task.first; i < task.first + task.samples; ++i) {
                          kernels.of<T>().to_float(run.at<T>(dy, i), pad, elements_);
                          kernels.multiply(pad, run.at<float>(factors_, i), pad, elements_);
                          kernels.of<T>().from_float(pad, run.at<T>(dx, i), elements_);
                        }
                      }});
  });
}

}  // namespace

std::unique_ptr<Operation> make_relu(int layer) { return std::make_unique<ReluOperation>(layer); }
std::unique_ptr<Operation> make_prelu(int layer) { return std::make_unique<PreluOperation>(layer); }
std::unique_ptr<Operation> make_add(int layer) { return std::make_unique<AddOperation>(layer); }
std::unique_ptr<Operation> make_dropout(int layer) {
  return std::make_unique<DropoutOperation>(layer);
}

}  // namespace outrigger::nn::cpu
