#include <algorithm>

#include "nn/reference/layer.h"

namespace outrigger::nn::reference {
namespace {

// Work is laid out with the output channel innermost: taps[kernel row][kernel column][input channel
// of a group][out].
class ConvolutionCode final : public LayerCode {
 public:
  ConvolutionCode(const Place& place, const Convolution& operation)
      : in_(place.in),
        out_(place.out),
        operation_(operation),
        group_in_(in_.channels / operation.groups),
        group_out_(out_.channels / operation.groups) {}

  int64_t scratch_doubles() const override {
    return 2 * weight_count() + std::max(in_.channels, out_.channels);
  }

  void forward(const Run& run, const Forward& values) const override {
    const auto taps = values.scratch.first(static_cast<size_t>(weight_count()));
    const auto sums = values.scratch.last(static_cast<size_t>(out_.channels));
    unpack(values.parameters, taps);
    for_each_output(run.samples, [&](int64_t place, int64_t n, int64_t row, int64_t column) {
      start_sums(values.parameters, sums);
      for_each_tap(n, row, column, [&](int64_t tap, int64_t input) {
        for_each_pair(tap, [&](int64_t weight, int64_t i, int64_t first) {
          const double x = values.inputs[0][static_cast<size_t>(input + i)];
          const double* w = &taps[static_cast<size_t>(weight)];
          double* sum = &sums[static_cast<size_t>(first)];
          for (int64_t o = 0; o < group_out_; ++o) sum[o] += x * w[o];
        });
      });
      std::copy(sums.begin(), sums.end(), &values.output[static_cast<size_t>(place)]);
    });
  }

  void backward(const Run& run, const Backward& values) const override {
    if (!values.parameter_gradients.empty()) weight_gradient(run, values);
    if (!values.input_gradients[0].empty()) input_gradient(run, values);
  }

 private:
  int64_t weight_count() const {
    return out_.channels * group_in_ * operation_.kernel * operation_.kernel;
  }

  // visit(index of the place's first channel in the output, sample, row, column)
  template <typename Visit>
  void for_each_output(int64_t samples, const Visit& visit) const {
    int64_t place = 0;
    for (int64_t n = 0; n < samples; ++n) {
      for (int64_t row = 0; row < out_.height; ++row) {
        for (int64_t column = 0; column < out_.width; ++column, place += out_.channels) {
          visit(place, n, row, column);
        }
      }
    }
  }

  // visit(tap, index of the first channel in the input) for the window's places that lie in the
  // input
  template <typename Visit>
  void for_each_tap(int64_t n, int64_t row, int64_t column, const Visit& visit) const {
    for (int64_t y = 0; y < operation_.kernel; ++y) {
      const int64_t in_row = row * operation_.stride - operation_.padding + y;
      if (in_row < 0 || in_row >= in_.height) continue;
      for (int64_t x = 0; x < operation_.kernel; ++x) {
        const int64_t in_column = column * operation_.stride - operation_.padding + x;
        if (in_column < 0 || in_column >= in_.width) continue;
        visit(y * operation_.kernel + x,
              ((n * in_.height + in_row) * in_.width + in_column) * in_.channels);
      }
    }
  }

  // visit(index in taps, input channel, first output channel of its group)
  template <typename Visit>
  void for_each_pair(int64_t tap, const Visit& visit) const {
    for (int64_t group = 0; group < operation_.groups; ++group) {
      const int64_t first = group * group_out_;
      for (int64_t i = 0; i < group_in_; ++i) {
        visit((tap * group_in_ + i) * out_.channels + first, group * group_in_ + i, first);
      }
    }
  }

  // PyTorch's {out, in / groups, kernel, kernel} from and to taps.
  template <typename Visit>
  void for_each_weight(const Visit& visit) const {
    const int64_t area = operation_.kernel * operation_.kernel;
    size_t torch = 0;
    for (int64_t o = 0; o < out_.channels; ++o) {
      for (int64_t i = 0; i < group_in_; ++i) {
        for (int64_t tap = 0; tap < area; ++tap, ++torch) {
          visit(torch, static_cast<size_t>((tap * group_in_ + i) * out_.channels + o));
        }
      }
    }
  }
  void unpack(std::span<const float> weights, std::span<double> taps) const {
    for_each_weight([&](size_t torch, size_t ours) { taps[ours] = weights[torch]; });
  }

  void start_sums(std::span<const float> parameters, std::span<double> sums) const {
    if (operation_.bias) {
      std::copy_n(parameters.end() - out_.channels, out_.channels, sums.begin());
    } else {
      std::fill(sums.begin(), sums.end(), 0.0);
    }
  }

  void weight_gradient(const Run& run, const Backward& values) const {
    const auto taps = values.scratch.first(static_cast<size_t>(weight_count()));
    const auto bias = values.scratch.last(static_cast<size_t>(out_.channels));
    std::fill(taps.begin(), taps.end(), 0.0);
    std::fill(bias.begin(), bias.end(), 0.0);
    for_each_output(run.samples, [&](int64_t place, int64_t n, int64_t row, int64_t column) {
      const float* dy = &values.output_gradient[static_cast<size_t>(place)];
      for (size_t o = 0; o < bias.size(); ++o) bias[o] += dy[o];
      for_each_tap(n, row, column, [&](int64_t tap, int64_t input) {
        for_each_pair(tap, [&](int64_t weight, int64_t i, int64_t first) {
          const double x = values.inputs[0][static_cast<size_t>(input + i)];
          double* sum = &taps[static_cast<size_t>(weight)];
          for (int64_t o = 0; o < group_out_; ++o) sum[o] += x * dy[first + o];
        });
      });
    });
    for_each_weight([&](size_t torch, size_t ours) {
      values.parameter_gradients[torch] = static_cast<float>(taps[ours]);
    });
    if (operation_.bias) {
      std::copy(bias.begin(), bias.end(), values.parameter_gradients.end() - out_.channels);
    }
  }

  // Gathers, so that each input's sum is made in double and in one place: for every input place,
  // the outputs whose window holds it.
  void input_gradient(const Run& run, const Backward& values) const {
    const auto taps = values.scratch.first(static_cast<size_t>(weight_count()));
    const auto sums = values.scratch.last(static_cast<size_t>(in_.channels));
    unpack(values.parameters, taps);
    size_t place = 0;
    for (int64_t n = 0; n < run.samples; ++n) {
      for (int64_t row = 0; row < in_.height; ++row) {
        for (int64_t column = 0; column < in_.width; ++column, place += sums.size()) {
          std::fill(sums.begin(), sums.end(), 0.0);
          for_each_window(n, row, column, [&](int64_t tap, int64_t output) {
            for_each_pair(tap, [&](int64_t weight, int64_t i, int64_t first) {
              const float* dy = &values.output_gradient[static_cast<size_t>(output + first)];
              const double* w = &taps[static_cast<size_t>(weight)];
              double sum = 0;
              for (int64_t o = 0; o < group_out_; ++o) sum += w[o] * dy[o];
              sums[static_cast<size_t>(i)] += sum;
            });
          });
          for (size_t i = 0; i < sums.size(); ++i) {
            values.input_gradients[0][place + i] += static_cast<float>(sums[i]);
          }
        }
      }
    }
  }

  // visit(tap, index of the first channel in the output) for the windows that hold an input place
  template <typename Visit>
  void for_each_window(int64_t n, int64_t in_row, int64_t in_column, const Visit& visit) const {
    for (int64_t y = 0; y < operation_.kernel; ++y) {
      const int64_t rows = in_row + operation_.padding - y;
      if (rows < 0 || rows % operation_.stride != 0 || rows / operation_.stride >= out_.height)
        continue;
      for (int64_t x = 0; x < operation_.kernel; ++x) {
        const int64_t columns = in_column + operation_.padding - x;
        if (columns < 0 || columns % operation_.stride != 0) continue;
        if (columns / operation_.stride >= out_.width) continue;
        const int64_t row = n * out_.height + rows / operation_.stride;
        visit(y * operation_.kernel + x,
              (row * out_.width + columns / operation_.stride) * out_.channels);
      }
    }
  }

  const Extent in_, out_;
  const Convolution operation_;
  const int64_t group_in_, group_out_;
};

}  // namespace

std::unique_ptr<LayerCode> make_convolution(const Place& place, const Convolution& operation) {
  return std::make_unique<ConvolutionCode>(place, operation);
}

}  // namespace outrigger::nn::reference
