#include "nn/cpu/onednn/convolution.h"

#include <string_view>

namespace outrigger::nn::cpu::onednn {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using Tag = memory::format_tag;
using Type = memory::data_type;

memory::dims weight_sizes(const ConvolutionShape& s) {
  if (s.groups == 1) return {s.out_channels, s.in_channels, s.kernel, s.kernel};
  return {s.groups, s.out_channels / s.groups, s.in_channels / s.groups, s.kernel, s.kernel};
}

// Everything that the three passes are described by.
struct Description {
  Description(const ConvolutionShape& s, int64_t samples)
      : x({samples, s.in_channels, s.in_height, s.in_width}, data_type(s.bfloat16), Tag::nhwc),
        y({samples, s.out_channels, s.out_height, s.out_width}, data_type(s.bfloat16), Tag::nhwc),
        any_weights(weight_sizes(s), data_type(s.bfloat16), Tag::any),
        bias({s.out_channels}, Type::f32, Tag::a),
        strides{s.stride, s.stride},
        padding{s.padding, s.padding} {}

  dnnl::convolution_forward::primitive_desc forward(bool with_bias) const {
    const auto kind = dnnl::prop_kind::forward_training;
    const auto direct = algorithm::convolution_direct;
    if (with_bias)
      return {engine(), kind,    direct,  x,       any_weights, bias,
              y,        strides, padding, padding, attributes()};
    return {engine(), kind, direct, x, any_weights, y, strides, padding, padding, attributes()};
  }

  memory::desc x, y, any_weights, bias;
  memory::dims strides, padding;
};

template <typename PrimitiveDescription>
bool is_slow(const PrimitiveDescription& description) {
  return std::string_view(description.impl_info_str()).starts_with("ref");
}

}  // namespace

memory::desc plain_weights(const ConvolutionShape& shape) {
  return {weight_sizes(shape), Type::f32, shape.groups == 1 ? Tag::oihw : Tag::goihw};
}

ConvolutionPrimitive convolution_forward(const ConvolutionShape& shape, int64_t samples,
                                         int slots) {
  return translated("making a convolution", [&] {
    const Description d(shape, samples);
    const auto made = d.forward(shape.bias);
    std::vector<Primitive::Argument> arguments{{DNNL_ARG_SRC, d.x},
                                               {DNNL_ARG_WEIGHTS, made.weights_desc()}};
    if (shape.bias) arguments.emplace_back(DNNL_ARG_BIAS, d.bias);
    arguments.emplace_back(DNNL_ARG_DST, d.y);
    return ConvolutionPrimitive{
        Primitive(dnnl::convolution_forward(made), arguments, made.scratchpad_desc(), slots),
        made.weights_desc(), is_slow(made)};
  });
}

ConvolutionPrimitive convolution_backward_data(const ConvolutionShape& shape, int64_t samples,
                                               int slots) {
  return translated("making a convolution's backward pass", [&] {
    const Description d(shape, samples);
    const dnnl::convolution_backward_data::primitive_desc made(
        engine(), algorithm::convolution_direct, d.x, d.any_weights, d.y, d.strides, d.padding,
        d.padding, d.forward(false), attributes());
    const std::vector<Primitive::Argument> arguments{{DNNL_ARG_DIFF_DST, d.y},
                                                     {DNNL_ARG_WEIGHTS, made.weights_desc()},
                                                     {DNNL_ARG_DIFF_SRC, d.x}};
    return ConvolutionPrimitive{
        Primitive(dnnl::convolution_backward_data(made), arguments, made.scratchpad_desc(), slots),
        made.weights_desc(), is_slow(made)};
  });
}

ConvolutionPrimitive convolution_backward_weights(const ConvolutionShape& shape, int64_t samples,
                                                  int slots,
                                                  const std::optional<memory::desc>& layout) {
  return translated("making a convolution's weight gradient", [&] {
    const Description d(shape, samples);
    const memory::desc wanted =
        layout ? *layout : memory::desc(weight_sizes(shape), Type::f32, Tag::any);
    const dnnl::convolution_backward_weights::primitive_desc made(
        engine(), algorithm::convolution_direct, d.x, wanted, d.y, d.strides, d.padding, d.padding,
        d.forward(false), attributes());
    const std::vector<Primitive::Argument> arguments{
        {DNNL_ARG_SRC, d.x},
        {DNNL_ARG_DIFF_DST, d.y},
        {DNNL_ARG_DIFF_WEIGHTS, made.diff_weights_desc()}};
    return ConvolutionPrimitive{Primitive(dnnl::convolution_backward_weights(made), arguments,
                                          made.scratchpad_desc(), slots),
                                made.diff_weights_desc(), is_slow(made)};
  });
}

}  // namespace outrigger::nn::cpu::onednn
