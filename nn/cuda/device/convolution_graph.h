#pragma once

#include <cudnn_frontend.h>

#include <memory>
#include <unordered_map>
#include <vector>

#include "nn/cuda/engine.h"

/// A convolution, with what is done beside it, as a graph of cuDNN's. For convolution.cc alone: the
/// frontend takes long to compile.
namespace outrigger::nn::cuda {

/// What lies where when a graph runs, by Uid.
using GraphPointers = std::unordered_map<int64_t, void*>;

class ConvolutionGraph {
 public:
  /// `result`: how what the pass gives is stored.
  ConvolutionGraph(cudnn_frontend::graph::Graph& graph, const ConvolutionRequest& request,
                   Stored result);

  static void bind(const ConvolutionRequest& request, const ConvolutionArrays& arrays,
                   GraphPointers& pointers);

 private:
  using Attributes = cudnn_frontend::graph::Tensor_attributes;
  using Tensor = std::shared_ptr<Attributes>;
  enum Uid : int64_t { kMapIn = 1, kMapOut, kWeights, kBias, kSums, kSquares };

  // cuDNN counts {N, C, H, W} whatever lies how in memory; channels lie innermost here.
  struct Layout {
    std::vector<int64_t> sizes, strides;
    Layout(int64_t n, int64_t c, int64_t h, int64_t w)
        : sizes{n, c, h, w}, strides{c * h * w, 1, c * w, c} {}
  };

  static cudnn_frontend::DataType_t data_type(Stored type) {
    if (type == Stored::kFloat16) return cudnn_frontend::DataType_t::HALF;
    return type == Stored::kBFloat16 ? cudnn_frontend::DataType_t::BFLOAT16
                                     : cudnn_frontend::DataType_t::FLOAT;
  }
  Layout map_in() const {
    return {shape_.samples, shape_.in_channels, shape_.in_height, shape_.in_width};
  }
  Layout map_out() const {
    return {shape_.samples, shape_.out_channels, shape_.out_height, shape_.out_width};
  }
  Layout weights() const {
    return {shape_.out_channels, shape_.group_in(), shape_.kernel, shape_.kernel};
  }
  Layout channels() const { return {1, shape_.out_channels, 1, 1}; }

  Tensor input(const Layout& layout, Uid uid, Stored type) {
    Attributes tensor;
    tensor.set_uid(uid)
        .set_dim(layout.sizes)
        .set_stride(layout.strides)
        .set_data_type(data_type(type));
    return graph_.tensor(tensor);
  }
  static void output(const Tensor& tensor, const Layout& layout, Uid uid, Stored type) {
    tensor->set_output(true)
        .set_uid(uid)
        .set_dim(layout.sizes)
        .set_stride(layout.strides)
        .set_data_type(data_type(type));
  }
  template <typename Convolution>
  Convolution window() const {
    Convolution convolution;
    convolution.set_padding({shape_.padding, shape_.padding})
        .set_stride({shape_.stride, shape_.stride})
        .set_dilation({1, 1})
        .set_compute_data_type(cudnn_frontend::DataType_t::FLOAT);
    return convolution;
  }
  void forward(Epilogue epilogue, Stored result);
  Tensor pointwise(const Tensor& x, const Tensor& bias);
  void sum_up(const Tensor& y);

  cudnn_frontend::graph::Graph& graph_;
  const ConvolutionShape shape_;
};

inline ConvolutionGraph::ConvolutionGraph(cudnn_frontend::graph::Graph& graph,
                                          const ConvolutionRequest& request, Stored result)
    : graph_(graph), shape_(request.shape) {
  namespace fe = cudnn_frontend;
  const Stored type = shape_.type;
  graph_.set_io_data_type(data_type(type))
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  switch (request.pass) {
    case ConvolutionPass::kForward:
      forward(request.epilogue, result);
      break;
    case ConvolutionPass::kInputGradient:
      output(graph_.conv_dgrad(input(map_out(), kMapOut, type), input(weights(), kWeights, type),
                               window<fe::graph::Conv_dgrad_attributes>()),
             map_in(), kMapIn, result);
      break;
    case ConvolutionPass::kWeightGradient:
      output(graph_.conv_wgrad(input(map_out(), kMapOut, type), input(map_in(), kMapIn, type),
                               window<fe::graph::Conv_wgrad_attributes>()),
             weights(), kWeights, result);
      break;
  }
}

inline void ConvolutionGraph::forward(Epilogue epilogue, Stored result) {
  namespace fe = cudnn_frontend;
  Tensor y = graph_.conv_fprop(input(map_in(), kMapIn, shape_.type),
                               input(weights(), kWeights, shape_.type),
                               window<fe::graph::Conv_fprop_attributes>());
  if (has_bias(epilogue)) y = pointwise(y, input(channels(), kBias, shape_.type));
  if (epilogue == Epilogue::kBiasRelu) y = pointwise(y, nullptr);
  output(y, map_out(), kMapOut, result);
  if (epilogue == Epilogue::kStatistics) sum_up(y);
}

// With a bias its addition, else a ReLU.
inline ConvolutionGraph::Tensor ConvolutionGraph::pointwise(const Tensor& x, const Tensor& bias) {
  namespace fe = cudnn_frontend;
  x->set_dim(map_out().sizes).set_stride(map_out().strides);
  fe::graph::Pointwise_attributes attributes;
  attributes.set_compute_data_type(fe::DataType_t::FLOAT)
      .set_mode(bias ? fe::PointwiseMode_t::ADD : fe::PointwiseMode_t::RELU_FWD);
  return bias ? graph_.pointwise(x, bias, attributes) : graph_.pointwise(x, attributes);
}

inline void ConvolutionGraph::sum_up(const Tensor& y) {
  namespace fe = cudnn_frontend;
  const auto [sums, squares] = graph_.genstats(
      y, fe::graph::Genstats_attributes().set_compute_data_type(fe::DataType_t::FLOAT));
  output(sums, channels(), kSums, Stored::kFloat32);
  output(squares, channels(), kSquares, Stored::kFloat32);
}

inline void ConvolutionGraph::bind(const ConvolutionRequest& request,
                                   const ConvolutionArrays& arrays, GraphPointers& pointers) {
  // cuDNN reads through these pointers, whatever their types say.
  const auto open = [](const void* pointer) { return const_cast<void*>(pointer); };
  switch (request.pass) {
    case ConvolutionPass::kForward:
      pointers = {{kMapIn, open(arrays.a)}, {kWeights, open(arrays.b)}, {kMapOut, arrays.result}};
      break;
    case ConvolutionPass::kInputGradient:
      pointers = {{kMapOut, open(arrays.a)}, {kWeights, open(arrays.b)}, {kMapIn, arrays.result}};
      break;
    case ConvolutionPass::kWeightGradient:
      pointers = {{kMapOut, open(arrays.a)}, {kMapIn, open(arrays.b)}, {kWeights, arrays.result}};
      break;
  }
  if (has_bias(request.epilogue)) pointers[kBias] = open(arrays.bias);
  if (request.epilogue == Epilogue::kStatistics) {
    pointers[kSums] = arrays.sums;
    pointers[kSquares] = arrays.sums + request.shape.out_channels;
  }
}

}  // namespace outrigger::nn::cuda
