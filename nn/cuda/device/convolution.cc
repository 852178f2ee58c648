#include "nn/cuda/device/convolution.h"

#include <cudnn_frontend.h>

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "nn/cuda/device/described.h"
#include "nn/cuda/device/plan_timer.h"
#include "nn/cuda/errors.h"

namespace outrigger::nn::cuda {
namespace {

namespace fe = cudnn_frontend;
using Attributes = fe::graph::Tensor_attributes;

enum Uid : int64_t { kMapIn = 1, kMapOut = 2, kWeights = 3 };

fe::DataType_t data_type(Stored type) {
  if (type == Stored::kFloat16) return fe::DataType_t::HALF;
  return type == Stored::kBFloat16 ? fe::DataType_t::BFLOAT16 : fe::DataType_t::FLOAT;
}

// cuDNN counts {N, C, H, W} whatever lies how in memory; channels lie innermost here.
struct Layout {
  std::vector<int64_t> sizes, strides;
  Layout(int64_t n, int64_t c, int64_t h, int64_t w)
      : sizes{n, c, h, w}, strides{c * h * w, 1, c * w, c} {}
};

Layout map_in(const ConvolutionShape& s) {
  return {s.samples, s.in_channels, s.in_height, s.in_width};
}
Layout map_out(const ConvolutionShape& s) {
  return {s.samples, s.out_channels, s.out_height, s.out_width};
}
Layout weights(const ConvolutionShape& s) {
  return {s.out_channels, s.group_in(), s.kernel, s.kernel};
}

Attributes attributes(const Layout& layout, Uid uid, Stored type) {
  Attributes result;
  result.set_uid(uid)
      .set_dim(layout.sizes)
      .set_stride(layout.strides)
      .set_data_type(data_type(type));
  return result;
}

template <typename Convolution>
Convolution window(const ConvolutionShape& s) {
  Convolution convolution;
  convolution.set_padding({s.padding, s.padding})
      .set_stride({s.stride, s.stride})
      .set_dilation({1, 1})
      .set_compute_data_type(fe::DataType_t::FLOAT);
  return convolution;
}

// A device, or the description of one.
struct Target {
  cudnnHandle_t handle = nullptr;
  std::shared_ptr<const fe::DeviceProperties> described;
};

class CudnnConvolution final : public PlannedConvolution {
 public:
  CudnnConvolution(const Target& target, const ConvolutionShape& shape, ConvolutionPass pass,
                   Stored result)
      : handle_(target.handle), pass_(pass), result_(result) {
    if (target.described) graph_.set_device_properties(target.described);
    graph_.set_io_data_type(data_type(shape.type))
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    std::shared_ptr<Attributes> out;
    Layout layout = map_out(shape);
    Uid uid = kMapOut;
    const auto input = [&](const Layout& of, Uid id) {
      return graph_.tensor(attributes(of, id, shape.type));
    };
    if (pass == ConvolutionPass::kForward) {
      out = graph_.conv_fprop(input(map_in(shape), kMapIn), input(weights(shape), kWeights),
                              window<fe::graph::Conv_fprop_attributes>(shape));
    } else if (pass == ConvolutionPass::kInputGradient) {
      out = graph_.conv_dgrad(input(map_out(shape), kMapOut), input(weights(shape), kWeights),
                              window<fe::graph::Conv_dgrad_attributes>(shape));
      layout = map_in(shape);
      uid = kMapIn;
    } else {
      out = graph_.conv_wgrad(input(map_out(shape), kMapOut), input(map_in(shape), kMapIn),
                              window<fe::graph::Conv_wgrad_attributes>(shape));
      layout = weights(shape);
      uid = kWeights;
    }
    out->set_output(true)
        .set_uid(uid)
        .set_dim(layout.sizes)
        .set_stride(layout.strides)
        .set_data_type(data_type(result));
  }

  /// Whether cuDNN has a plan.
  bool build(const CudaOptions& options, const ConvolutionShape& shape, const Tuning& tuning) {
    const Stored type = shape.type;
    if (graph_.validate().is_bad() || graph_.build_operation_graph(handle_).is_bad() ||
        graph_.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}).is_bad())
      return false;
    std::vector<fe::NumericalNote_t> unwanted;
    if (options.deterministic) unwanted.push_back(fe::NumericalNote_t::NONDETERMINISTIC);
    if (type == Stored::kFloat32 && !options.tensor_float32) {
      unwanted.push_back(fe::NumericalNote_t::TENSOR_CORE);
      unwanted.push_back(fe::NumericalNote_t::DOWN_CONVERT_INPUTS);
    }
    graph_.deselect_numeric_notes(unwanted);
    if (graph_.check_support(handle_).is_bad()) return false;
    if (!(tuning.known != nullptr && choose(shape, tuning)) && graph_.build_plans(handle_).is_bad())
      return false;
    return graph_.get_workspace_size(workspace_bytes_).is_good();
  }

  size_t workspace_bytes() const override { return static_cast<size_t>(workspace_bytes_); }
  Stored result_type() const override { return result_; }

  void run(const void* a, const void* b, void* result, void* workspace) override {
    // cuDNN reads through these pointers, whatever their types say.
    const auto open = [](const void* pointer) { return const_cast<void*>(pointer); };
    switch (pass_) {
      case ConvolutionPass::kForward:
        pointers_ = {{kMapIn, open(a)}, {kWeights, open(b)}, {kMapOut, result}};
        break;
      case ConvolutionPass::kInputGradient:
        pointers_ = {{kMapOut, open(a)}, {kWeights, open(b)}, {kMapIn, result}};
        break;
      case ConvolutionPass::kWeightGradient:
        pointers_ = {{kMapOut, open(a)}, {kMapIn, open(b)}, {kWeights, result}};
        break;
    }
    auto status = graph_.execute(handle_, pointers_, workspace);
    if (status.is_bad())
      throw DeviceError("a convolution failed: cuDNN says \"" + status.get_message() + "\"");
  }

 private:
  // What is timed at most, of what cuDNN thinks best first; and what a plan may need beside maps.
  static constexpr int64_t kMostTimed = 8;
  static constexpr int64_t kMostWorkspace = int64_t{1} << 30;

  /// Builds the plan that is known to be the fastest, or finds it; false where neither can be.
  bool choose(const ConvolutionShape& shape, const Tuning& tuning) {
    const int64_t count = graph_.get_execution_plan_count();
    if (const auto name = tuning.known->find(shape, pass_)) {
      for (int64_t i = 0; i < count; ++i) {
        if (name_of(i) == *name) return graph_.build_plan_at_index(handle_, i).is_good();
      }
    }
    const std::optional<int64_t> fastest = find_fastest(std::min(count, kMostTimed), shape, tuning);
    // The plan that is built last is the one that runs.
    if (!fastest || graph_.build_plan_at_index(handle_, *fastest).is_bad()) return false;
    tuning.known->put(shape, pass_, name_of(*fastest));
    return true;
  }

  std::string name_of(int64_t plan) const {
    std::string name;
    return graph_.get_plan_name_at_index(plan, name).is_good() ? name : "";
  }

  std::optional<int64_t> find_fastest(int64_t count, const ConvolutionShape& shape,
                                      const Tuning& tuning) {
    const PlanTimer timer(tuning.stream, shape);
    if (!timer.ready()) return std::nullopt;
    std::optional<int64_t> fastest;
    float least = 0;
    for (int64_t i = 0; i < count; ++i) {
      if (graph_.build_plan_at_index(handle_, i).is_bad()) continue;
      const int64_t bytes = graph_.get_workspace_size_plan_at_index(i);
      if (bytes > kMostWorkspace) continue;
      std::unordered_map<int64_t, void*> pointers{
          {kMapIn, timer.map_in()}, {kMapOut, timer.map_out()}, {kWeights, timer.weights()}};
      const auto took = timer.time(static_cast<size_t>(bytes), [&](void* workspace) {
        return graph_.execute_plan_at_index(handle_, pointers, workspace, i).is_good();
      });
      if (!took || (fastest && *took >= least)) continue;
      fastest = i;
      least = *took;
    }
    return fastest;
  }

  const cudnnHandle_t handle_;
  const ConvolutionPass pass_;
  const Stored result_;
  fe::graph::Graph graph_;
  std::unordered_map<int64_t, void*> pointers_;
  int64_t workspace_bytes_ = 0;
};

std::unique_ptr<PlannedConvolution> plan(const Target& target, const CudaOptions& options,
                                         const ConvolutionShape& shape, ConvolutionPass pass,
                                         const Tuning& tuning) {
  std::vector<Stored> results{shape.type};
  // Gradients of weights are summed in float32; the fewest roundings are those that nobody makes.
  if (pass == ConvolutionPass::kWeightGradient && shape.type != Stored::kFloat32)
    results.insert(results.begin(), Stored::kFloat32);
  for (const Stored result : results) {
    auto plan = std::make_unique<CudnnConvolution>(target, shape, pass, result);
    if (plan->build(options, shape, tuning)) return plan;
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<PlannedConvolution> plan_with_cudnn(cudnnHandle_t handle,
                                                    const CudaOptions& options,
                                                    const ConvolutionShape& shape,
                                                    ConvolutionPass pass, const Tuning& tuning) {
  return plan({handle, nullptr}, options, shape, pass, tuning);
}

std::unique_ptr<PlannedConvolution> plan_for_described(const std::string& device,
                                                       const CudaOptions& options,
                                                       const ConvolutionShape& shape,
                                                       ConvolutionPass pass) {
  auto described = std::make_shared<fe::DeviceProperties>();
  auto status = described->deserialize({device.begin(), device.end()});
  if (status.is_bad())
    throw DeviceError("cuDNN does not take the device's description: " + status.get_message());
  return plan({nullptr, described}, options, shape, pass, {});
}

}  // namespace outrigger::nn::cuda
