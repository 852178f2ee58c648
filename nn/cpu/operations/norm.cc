#include <algorithm>
#include <cmath>
#include <variant>

#include "nn/cpu/operations/operation.h"
#include "nn/cpu/run.h"

namespace outrigger::nn::cpu {
namespace {

/// Batch norm, perhaps with an addition and an activation behind it, as two sweeps over the maps:
/// sums, then values. In between, one task reduces the blocks' partial sums in block order. What
/// only the second sweep would need twice is computed anew rather than stored.
class NormOperation final : public Operation {
 public:
  explicit NormOperation(const Group& group) : group_(group) {}
  int output() const override { return group_.output(); }
  void announce(Compilation& c) override;
  void plan_forward(Compilation& c) override;
  void plan_backward(Compilation& c) override;
  void load(const LoadArguments& a) const override;

 private:
  // Per place of the period; on the tape where the batch is measured, else among the weights.
  struct Coefficients {
    const float *mean, *scale, *shift, *inverse;
  };
  Coefficients coefficients(const Run& run) const {
    const float* all = measures_ ? run.at<float>(measured_) : run.weight<float>(fixed_);
    return {all, all + period_, all + 2 * period_, all + 3 * period_};
  }
  void set_coefficients(float* all, int64_t channel, double mean, double variance, float scale,
                        float shift) const;
  int64_t values_in_column(int block, int64_t column) const;
  template <typename T>
  void plan_forward_typed(Compilation& c);
  template <typename T>
  void plan_backward_typed(Compilation& c);
  void finish_statistics(const Run& run) const;
  void finish_gradients(const Run& run) const;

  const Group group_;
  Blocks blocks_;
  int64_t channels_ = 0, period_ = 0, elements_ = 0;
  double epsilon_ = 0;
  bool measures_ = false, trains_scale_ = false, trains_shift_ = false, trains_slope_ = false;
  Activation activation_ = Activation::kNone;
  Range scale_range_, shift_range_, slope_range_, statistics_;
  size_t parameters_ = 0;  // scale {C}, shift {C} among the weights
  size_t fixed_ = 0, slope_ = 0;
  BufferId in_, other_, out_;
  BufferId partials_, measured_;            // forward
  BufferId gradient_, gradient2_, z_, dx_;  // backward
  BufferId sums_, factors_;
};

void NormOperation::announce(Compilation& c) {
  Value& out = c.value(output());
  const Layer& layer = c.layer(group_.main);
  blocks_ = c.blocks();
  channels_ = out.channels;
  period_ = period_of(channels_);
  elements_ = out.elements();
  epsilon_ = std::get<BatchNorm>(layer.operation).epsilon;
  measures_ = c.training() && !layer.frozen;
  trains_scale_ = c.training() && c.trains(group_.main, 0);
  trains_shift_ = c.training() && c.trains(group_.main, 1);
  scale_range_ = c.parameter(group_.main, 0);
  shift_range_ = c.parameter(group_.main, 1);
  statistics_ = c.statistics(group_.main);
  if (group_.activation >= 0) {
    const bool relu = std::holds_alternative<Relu>(c.layer(group_.activation).operation);
    activation_ = relu ? Activation::kRelu : Activation::kPrelu;
    if (!relu) {
      slope_range_ = c.parameter(group_.activation, 0);
      trains_slope_ = c.training() && c.trains(group_.activation, 0);
    }
  }
  if (!out.wants_gradient) return;
  c.input_of(group_.main).kept = true;
  if (group_.add >= 0 && activation_ == Activation::kRelu) out.kept = true;
}

void NormOperation::plan_forward(Compilation& c) {
  in_ = c.input_of(group_.main).data;
  if (group_.add >= 0) other_ = c.value(group_.add_input).data;
  out_ = c.create(c.value(output()));
  const auto floats = static_cast<size_t>(period_) * sizeof(float);
  parameters_ = c.reserve_weights(2 * static_cast<size_t>(channels_) * sizeof(float));
  slope_ = c.reserve_weights(floats);
  if (measures_) {
    measured_ = c.buffers().tape_fixed(static_cast<int64_t>(4 * floats));
    partials_ = c.buffers().whole_fixed(blocks_.count() * static_cast<int64_t>(3 * floats));
  } else {
    fixed_ = c.reserve_weights(4 * floats);
  }
  with_type(c.value(output()).bfloat16, [&](auto type) { plan_forward_typed<decltype(type)>(c); });
}

template <typename T>
void NormOperation::plan_forward_typed(Compilation& c) {
  const auto& kernels = c.kernels().of<T>();
  if (measures_) {
    c.forward().add(
        {PieceKind::kBlock,
         group_.main,
         0,
         {in_, partials_},
         [this, statistics = kernels.norm_statistics](const Run& run, const Task& task) {
           statistics(run.at<T>(in_, task.first), task.samples * elements_, period_,
                      run.at<float>(partials_) + task.index * 3 * period_);
         }});
    c.forward().add({PieceKind::kWhole,
                     group_.main,
                     1,
                     {partials_, measured_},
                     [this](const Run& run, const Task&) { finish_statistics(run); }});
  }
  c.forward().add(
      {PieceKind::kBlock,
       group_.main,
       0,
       {in_, other_, out_, measured_},
       [this, norm = kernels.norm_forward](const Run& run, const Task& task) {
         const Coefficients k = coefficients(run);
         norm({run.at<T>(in_, task.first), other_ ? run.at<T>(other_, task.first) : nullptr,
               run.at<T>(out_, task.first), k.mean, k.scale, k.shift, run.weight<float>(slope_),
               task.samples * elements_, period_, activation_});
       }});
}

void NormOperation::set_coefficients(float* all, int64_t channel, double mean, double variance,
                                     float scale, float shift) const {
  const auto inverse = static_cast<float>(1.0 / std::sqrt(variance + epsilon_));
  for (int64_t i = channel; i < period_; i += channels_) {
    all[i] = static_cast<float>(mean);
    all[period_ + i] = scale * inverse;
    all[2 * period_ + i] = shift;
    all[3 * period_ + i] = inverse;
  }
}

int64_t NormOperation::values_in_column(int block, int64_t column) const {
  const int64_t values = blocks_.samples(block) * elements_;
  return values / period_ + (column < values % period_ ? 1 : 0);
}

// Joins groups of values by their means and squared distances, in order (Chan, Golub and LeVeque,
// "Updating formulae and a pairwise algorithm for computing sample variances", 1979).
void NormOperation::finish_statistics(const Run& run) const {
  float* measured = run.at<float>(measured_);
  const auto* parameters = run.weight<float>(parameters_);
  float* statistics = run.out->statistics.data() + statistics_.offset;
  for (int64_t channel = 0; channel < channels_; ++channel) {
    double count = 0, mean = 0, squares = 0;
    for (int block = 0; block < blocks_.count(); ++block) {
      const float* partial = run.at<float>(partials_) + block * 3 * period_;
      for (int64_t column = channel; column < period_; column += channels_) {
        const auto more = static_cast<double>(values_in_column(block, column));
        if (more == 0) continue;
        const double sum = partial[period_ + column];
        const double its_mean = partial[column] + sum / more;
        const double distance = its_mean - mean;
        squares += partial[2 * period_ + column] - sum * sum / more +
                   distance * distance * count * more / (count + more);
        mean += distance * more / (count + more);
        count += more;
      }
    }
    const double variance = std::max(squares / count, 0.0);
    // A NaN must not become 0 by the line above.
    const double safe = squares != squares ? squares : variance;
    statistics[channel] = static_cast<float>(mean);
    statistics[channels_ + channel] = static_cast<float>(safe);
    set_coefficients(measured, channel, mean, safe, parameters[channel],
                     parameters[channels_ + channel]);
  }
}

void NormOperation::load(const LoadArguments& a) const {
  const float* scale = a.parameters.data() + scale_range_.offset;
  const float* shift = a.parameters.data() + shift_range_.offset;
  auto* parameters = reinterpret_cast<float*>(a.weights + parameters_);
  std::copy_n(scale, channels_, parameters);
  std::copy_n(shift, channels_, parameters + channels_);
  if (activation_ == Activation::kPrelu) {
    auto* slope = reinterpret_cast<float*>(a.weights + slope_);
    for (int64_t i = 0; i < period_; ++i)
      slope[i] = a.parameters.data()[slope_range_.offset + i % channels_];
  }
  if (measures_) return;
  const float* averages = a.buffers.data() + statistics_.offset;
  for (int64_t channel = 0; channel < channels_; ++channel) {
    set_coefficients(reinterpret_cast<float*>(a.weights + fixed_), channel, averages[channel],
                     averages[channels_ + channel], scale[channel], shift[channel]);
  }
}

void NormOperation::plan_backward(Compilation& c) {
  Value& out = c.value(output());
  gradient_ = out.gradients[0];
  if (out.gradients.size() == 2) gradient2_ = out.gradients[1];
  if (out.gradients.size() > 2) gradient_ = c.gradient(output(), out);
  const bool acts = activation_ != Activation::kNone;
  if (gradient2_ || (acts && group_.add >= 0)) z_ = c.buffers().blocked(out.bytes());
  if (group_.add >= 0 && c.value(group_.add_input).wants_gradient)
    c.value(group_.add_input).gradients.push_back(z_ ? z_ : gradient_);
  const int64_t floats = period_ * int64_t{sizeof(float)};
  sums_ = c.buffers().whole_fixed(blocks_.count() * 3 * floats);
  factors_ = c.buffers().whole_fixed(3 * floats);
  Value& in = c.input_of(group_.main);
  if (in.wants_gradient) dx_ = c.create_gradient(in);
  with_type(out.bfloat16, [&](auto type) { plan_backward_typed<decltype(type)>(c); });
}

template <typename T>
void NormOperation::plan_backward_typed(Compilation& c) {
  const auto& kernels = c.kernels().of<T>();
  const bool by_output = group_.add >= 0 && activation_ == Activation::kRelu;
  c.backward().add(
      {PieceKind::kBlock,
       group_.main,
       0,
       {in_, out_, gradient_, gradient2_, z_, sums_, measured_},
       [this, by_output, reduce = kernels.norm_reduce](const Run& run, const Task& task) {
         const Coefficients k = coefficients(run);
         reduce({run.at<T>(in_, task.first), by_output ? run.at<T>(out_, task.first) : nullptr,
                 run.at<T>(gradient_, task.first),
                 gradient2_ ? run.at<T>(gradient2_, task.first) : nullptr,
                 z_ ? run.at<T>(z_, task.first) : nullptr, k.mean, k.scale, k.shift,
                 run.weight<float>(slope_), run.at<float>(sums_) + task.index * 3 * period_,
                 task.samples * elements_, period_, activation_});
       }});
  c.backward().add({PieceKind::kWhole,
                    group_.main,
                    1,
                    {sums_, factors_, measured_},
                    [this](const Run& run, const Task&) { finish_gradients(run); },
                    c.trained({group_.main, group_.activation})});
  if (!dx_) return;
  const BufferId from = z_ ? z_ : gradient_;
  const Activation again = z_ ? Activation::kNone : activation_;
  c.backward().add(
      {PieceKind::kBlock,
       group_.main,
       0,
       {in_, from, dx_, factors_, measured_},
       [this, from, again, backward = kernels.norm_backward](const Run& run, const Task& task) {
         const Coefficients k = coefficients(run);
         const float* factors = run.at<float>(factors_);
         backward({run.at<T>(in_, task.first), run.at<T>(from, task.first),
                   run.at<T>(dx_, task.first), k.mean, k.scale, k.shift, run.weight<float>(slope_),
                   factors, factors + period_, factors + 2 * period_, task.samples * elements_,
                   period_, again});
       }});
}

// With N values and x' = (x - mean) * inverse: dx = scale * inverse * (z - sum(z) / N - x' * sum(z
// * x') / N), the sums only where the batch was measured (Ioffe and Szegedy, "Batch normalization",
// ICML 2015).
void NormOperation::finish_gradients(const Run& run) const {
  const Coefficients k = coefficients(run);
  float* factors = run.at<float>(factors_);
  float* gradients = run.back->gradients.data();
  const double places = static_cast<double>(elements_) / static_cast<double>(channels_);
  const double count = static_cast<double>(blocks_.batch) * places;
  for (int64_t channel = 0; channel < channels_; ++channel) {
    double sum = 0, product = 0, slope = 0;
    for (int block = 0; block < blocks_.count(); ++block) {
      const float* sums = run.at<float>(sums_) + block * 3 * period_;
      for (int64_t column = channel; column < period_; column += channels_) {
        sum += double{sums[column]};
        product += double{sums[period_ + column]};
        if (trains_slope_) slope += double{sums[2 * period_ + column]};
      }
    }
    const double scale = k.scale[channel], inverse = k.inverse[channel];
    if (trains_scale_)
      gradients[scale_range_.offset + channel] = static_cast<float>(product * inverse);
    if (trains_shift_) gradients[shift_range_.offset + channel] = static_cast<float>(sum);
    if (trains_slope_) gradients[slope_range_.offset + channel] = static_cast<float>(slope);
    const double mean_product = measures_ ? -scale * inverse * inverse * product / count : 0.0;
    const double mean_sum = measures_ ? -scale * sum / count : 0.0;
    for (int64_t column = channel; column < period_; column += channels_) {
      factors[column] = k.scale[channel];
      factors[period_ + column] = static_cast<float>(mean_product);
      factors[2 * period_ + column] = static_cast<float>(mean_sum);
    }
  }
}

}  // namespace

std::unique_ptr<Operation> make_norm(const Group& group) {
  return std::make_unique<NormOperation>(group);
}

}  // namespace outrigger::nn::cpu
