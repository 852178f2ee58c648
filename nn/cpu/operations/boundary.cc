#include <algorithm>
#include <variant>

#include "nn/cpu/operations/operation.h"
#include "nn/cpu/run.h"

namespace outrigger::nn::cpu {
namespace {

// Copies `count` values between float32 and bfloat16, or as they are.
struct Converter {
  Converter(const Kernels& kernels, bool from_bfloat16, bool to_bfloat16)
      : widen(kernels.bfloat16.to_float),
        narrow(kernels.bfloat16.from_float),
        from(from_bfloat16),
        to(to_bfloat16) {}
  void operator()(const std::byte* source, std::byte* target, int64_t count) const {
    if (from == to) {
      std::copy_n(source, count * (from ? 2 : 4), target);
    } else if (from) {
      widen(reinterpret_cast<const uint16_t*>(source), reinterpret_cast<float*>(target), count);
    } else {
      narrow(reinterpret_cast<const float*>(source), reinterpret_cast<uint16_t*>(target), count);
    }
  }
  void (*widen)(const uint16_t*, float*, int64_t);
  void (*narrow)(const float*, uint16_t*, int64_t);
  bool from, to;
};

class InputOperation final : public Operation {
 public:
  explicit InputOperation(int layer) : layer_(layer) {}
  int output() const override { return layer_; }

  void plan_forward(Compilation& c) override {
    const Value& value = c.value(layer_);
    const BufferId out = c.create(c.value(layer_));
    const bool bfloat16 = c.options().precision == Precision::kBFloat16;
    const int64_t elements = value.elements(), outside = elements * (bfloat16 ? 2 : 4),
                  inside = value.bytes();
    c.forward().add(
        {PieceKind::kBlock,
         layer_ + 1,
         0,
         {out},
         [=, copy = Converter(c.kernels(), bfloat16, value.bfloat16)](const Run& run,
                                                                      const Task& task) {
           const int64_t present = std::clamp<int64_t>(run.in->count - task.first, 0, task.samples);
           auto* to = run.at<std::byte>(out, task.first);
           copy(run.in->input.data + task.first * outside, to, present * elements);
           // What is absent is computed on all the same, and must not be what another run left.
           std::fill_n(to + present * inside, (task.samples - present) * inside, std::byte{0});
         }});
  }
  void plan_backward(Compilation& c) override {
    Value& value = c.value(layer_);
    const BufferId gradient = c.gradient(layer_ + 1, value);
    const bool bfloat16 = c.options().precision == Precision::kBFloat16;
    const int64_t elements = value.elements(), outside = elements * (bfloat16 ? 2 : 4);
    c.backward().add({PieceKind::kBlock,
                      layer_ + 1,
                      0,
                      {gradient},
                      [=, copy = Converter(c.kernels(), value.bfloat16, bfloat16)](
                          const Run& run, const Task& task) {
                        copy(run.at<std::byte>(gradient, task.first),
                             run.back->input_gradient.data + task.first * outside,
                             task.samples * elements);
                      }});
  }

 private:
  const int layer_;
};

class OutputOperation final : public Operation {
 public:
  explicit OutputOperation(int layer) : layer_(layer) {}
  int output() const override { return layer_; }

  void plan_forward(Compilation& c) override {
    const Value& value = c.value(layer_);
    const bool outside_bfloat16 = is_bfloat16_outside(c);
    const int64_t elements = value.elements(), outside = elements * (outside_bfloat16 ? 2 : 4);
    c.forward().add(
        {PieceKind::kBlock,
         layer_,
         0,
         {value.data},
         [=, data = value.data, copy = Converter(c.kernels(), value.bfloat16, outside_bfloat16)](
             const Run& run, const Task& task) {
           const int64_t present = std::clamp<int64_t>(run.in->count - task.first, 0, task.samples);
           copy(run.at<std::byte>(data, task.first), run.out->output.data + task.first * outside,
                present * elements);
         }});
  }
  void plan_backward(Compilation& c) override {
    Value& value = c.value(layer_);
    const BufferId gradient = c.create_gradient(value);
    const bool outside_bfloat16 = is_bfloat16_outside(c);
    const int64_t elements = value.elements(), outside = elements * (outside_bfloat16 ? 2 : 4);
    c.backward().add({PieceKind::kBlock,
                      layer_,
                      0,
                      {gradient},
                      [=, copy = Converter(c.kernels(), outside_bfloat16, value.bfloat16)](
                          const Run& run, const Task& task) {
                        copy(run.output_gradient + task.first * outside,
                             run.at<std::byte>(gradient, task.first), task.samples * elements);
                      }});
  }

 private:
  bool is_bfloat16_outside(const Compilation& c) const {
    return c.options().precision == Precision::kBFloat16 &&
           c.options().segment.end != c.graph().size();
  }
  const int layer_;
};

// x / 255 - mean, over deviation, as one subtraction and one factor.
class NormalizeOperation final : public Operation {
 public:
  explicit NormalizeOperation(int layer) : layer_(layer) {}
  int output() const override { return layer_; }

  void plan_forward(Compilation& c) override {
    const Value& value = c.value(layer_);
    const auto& operation = std::get<Normalize>(c.layer(layer_).operation);
    const int64_t elements = value.elements(), channels = value.channels,
                  period = period_of(channels);
    for (int64_t i = 0; i < period; ++i) {
      const auto channel = static_cast<size_t>(i % channels);
      mean_.push_back(255.0f * operation.mean[channel]);
      scale_.push_back(static_cast<float>(1.0 / (255.0 * double{operation.deviation[channel]})));
    }
    const BufferId out = c.create(c.value(layer_));
    with_type(value.bfloat16, [&](auto type) {
      using T = decltype(type);
      const auto normalize = c.kernels().of<T>().normalize;
      c.forward().add(
          {PieceKind::kBlock, layer_, 0, {out}, [=, this](const Run& run, const Task& task) {
             const int64_t present =
                 std::clamp<int64_t>(run.in->count - task.first, 0, task.samples);
             const auto* pixels = reinterpret_cast<const uint8_t*>(run.in->input.data);
             T* y = run.at<T>(out, task.first);
             normalize(pixels + task.first * elements, mean_.data(), scale_.data(), y,
                       present * elements, period);
             std::fill_n(y + present * elements, (task.samples - present) * elements, T{0});
           }});
    });
  }

 private:
  const int layer_;
  std::vector<float> mean_, scale_;
};

}  // namespace

std::unique_ptr<Operation> make_input(int layer) { return std::make_unique<InputOperation>(layer); }
std::unique_ptr<Operation> make_output(int layer) {
  return std::make_unique<OutputOperation>(layer);
}
std::unique_ptr<Operation> make_normalize(int layer) {
  return std::make_unique<NormalizeOperation>(layer);
}

}  // namespace outrigger::nn::cpu
