#include "nn/cuda/device/convolution.h"

#include <cudnn_frontend.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nn/cuda/device/convolution_graph.h"
#include "nn/cuda/device/described.h"
#include "nn/cuda/device/plan_timer.h"
#include "nn/cuda/errors.h"

namespace outrigger::nn::cuda {
namespace {

namespace fe = cudnn_frontend;

// A device, or the description of one.
struct Target {
  cudnnHandle_t handle = nullptr;
  std::shared_ptr<const fe::DeviceProperties> described;
};

// What is known of a fused plan that takes longer than its parts, in place of a plan's name.
constexpr const char* kApart = "apart";

struct Timed {
  int64_t plan = 0;
  float milliseconds = 0;
};

class CudnnConvolution final : public PlannedConvolution {
 public:
  CudnnConvolution(const Target& target, const ConvolutionRequest& request, Stored result)
      : handle_(target.handle), request_(request), result_(result) {
    if (target.described) graph_.set_device_properties(target.described);
    ConvolutionGraph(graph_, request, result);
  }

  /// Whether cuDNN has plans that the options allow.
  bool find_plans(const CudaOptions& options) {
    if (graph_.validate().is_bad() || graph_.build_operation_graph(handle_).is_bad() ||
        graph_.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}).is_bad())
      return false;
    // Sums are float32 until they are done, whatever they are stored as.
    std::vector<fe::NumericalNote_t> unwanted{fe::NumericalNote_t::REDUCED_PRECISION_REDUCTION};
    if (options.deterministic) unwanted.push_back(fe::NumericalNote_t::NONDETERMINISTIC);
    if (request_.shape.type == Stored::kFloat32 && !options.tensor_float32) {
      unwanted.push_back(fe::NumericalNote_t::TENSOR_CORE);
      unwanted.push_back(fe::NumericalNote_t::DOWN_CONVERT_INPUTS);
    }
    graph_.deselect_numeric_notes(unwanted);
    return graph_.check_support(handle_).is_good();
  }
  /// Each builds one, whose work space is told then: what cuDNN thinks best, or the one of a name
  /// or a number. The plan that is built last is the one that runs.
  bool build() { return graph_.build_plans(handle_).is_good() && ask_workspace(); }
  bool build(const std::string& name) {
    const int64_t count = graph_.get_execution_plan_count();
    for (int64_t i = 0; i < count; ++i) {
      if (name_of(i) == name) return build(i);
    }
    return false;
  }
  bool build(int64_t plan) {
    return graph_.build_plan_at_index(handle_, plan).is_good() && ask_workspace();
  }

  std::string name_of(int64_t plan) const {
    std::string name;
    return graph_.get_plan_name_at_index(plan, name).is_good() ? name : "";
  }

  /// Of what cuDNN thinks best.
  std::optional<Timed> find_fastest(const PlanTimer& timer) {
    std::optional<Timed> fastest;
    const int64_t count = std::min(graph_.get_execution_plan_count(), kMostTimed);
    for (int64_t i = 0; i < count; ++i) {
      if (graph_.build_plan_at_index(handle_, i).is_bad()) continue;
      const int64_t bytes = graph_.get_workspace_size_plan_at_index(i);
      if (bytes > kMostWorkspace) continue;
      ConvolutionGraph::bind(request_, timer.arrays(request_.pass), pointers_);
      const auto took = timer.time(static_cast<size_t>(bytes), [&](void* workspace) {
        return graph_.execute_plan_at_index(handle_, pointers_, workspace, i).is_good();
      });
      if (!took || (fastest && *took >= fastest->milliseconds)) continue;
      fastest = {i, *took};
    }
    return fastest;
  }
  /// Of the plan that is built.
  std::optional<float> time(const PlanTimer& timer) {
    ConvolutionGraph::bind(request_, timer.arrays(request_.pass), pointers_);
    return timer.time(workspace_bytes(), [&](void* workspace) {
      return graph_.execute(handle_, pointers_, workspace).is_good();
    });
  }

  size_t workspace_bytes() const override { return static_cast<size_t>(workspace_bytes_); }
  Stored result_type() const override { return result_; }

  void run(const ConvolutionArrays& arrays) override {
    ConvolutionGraph::bind(request_, arrays, pointers_);
    auto status = graph_.execute(handle_, pointers_, arrays.workspace);
    if (status.is_bad())
      throw DeviceError("a convolution failed: cuDNN says \"" + status.get_message() + "\"");
  }

 private:
  // What is timed at most, of what cuDNN thinks best first; and what a plan may need beside maps.
  static constexpr int64_t kMostTimed = 8;
  static constexpr int64_t kMostWorkspace = int64_t{1} << 30;

  bool ask_workspace() { return graph_.get_workspace_size(workspace_bytes_).is_good(); }

  const cudnnHandle_t handle_;
  const ConvolutionRequest request_;
  const Stored result_;
  fe::graph::Graph graph_;
  GraphPointers pointers_;
  int64_t workspace_bytes_ = 0;
};

using Planned = std::unique_ptr<CudnnConvolution>;

class ConvolutionPlanner {
 public:
  ConvolutionPlanner(Target target, const CudaOptions& options, const Tuning& tuning)
      : target_(std::move(target)), options_(options), tuning_(tuning) {}

  Planned plan(const ConvolutionRequest& request) const {
    if (request.epilogue != Epilogue::kNone) return plan_fused(request);
    std::vector<Stored> results{request.shape.type};
    // Gradients of weights are summed in float32, and rounded last: what gives all of it is
    // compiled when it is wanted, and took ten times as long on an H200.
    if (request.pass == ConvolutionPass::kWeightGradient && request.shape.type != Stored::kFloat32)
      results.push_back(Stored::kFloat32);
    for (const Stored result : results) {
      auto plan = std::make_unique<CudnnConvolution>(target_, request, result);
      if (!plan->find_plans(options_)) continue;
      if (build_known(*plan, request) || build_fastest(*plan, request) || plan->build())
        return plan;
    }
    return nullptr;
  }

 private:
  bool build_known(CudnnConvolution& plan, const ConvolutionRequest& request) const {
    if (tuning_.known == nullptr) return false;
    const auto name = tuning_.known->find(request);
    return name && plan.build(*name);
  }
  bool build_fastest(CudnnConvolution& plan, const ConvolutionRequest& request) const {
    if (tuning_.known == nullptr) return false;
    const PlanTimer timer(tuning_.stream, request.shape);
    const auto fastest = timer.ready() ? plan.find_fastest(timer) : std::nullopt;
    return fastest && take(plan, request, fastest->plan);
  }
  bool take(CudnnConvolution& plan, const ConvolutionRequest& request, int64_t number) const {
    if (!plan.build(number)) return false;
    tuning_.known->put(request, plan.name_of(number));
    return true;
  }

  // Where nothing is timed, what cuDNN has is taken.
  Planned plan_fused(const ConvolutionRequest& request) const {
    // Sums of other bits every time, seen on an H200, whatever cuDNN's notes say.
    if (request.epilogue == Epilogue::kStatistics && options_.deterministic) return nullptr;
    if (tuning_.known != nullptr && tuning_.known->find(request) == kApart) return nullptr;
    auto plan = std::make_unique<CudnnConvolution>(target_, request, request.shape.type);
    if (!plan->find_plans(options_)) return nullptr;
    if (build_known(*plan, request)) return plan;
    if (tuning_.known != nullptr) {
      const auto parts = time_parts(request);
      const PlanTimer timer(tuning_.stream, request.shape);
      const auto fastest = timer.ready() ? plan->find_fastest(timer) : std::nullopt;
      if (timer.ready() && !fastest) return nullptr;  // none of them runs
      if (fastest && parts && fastest->milliseconds > *parts) {
        tuning_.known->put(request, kApart);
        return nullptr;
      }
      if (fastest && take(*plan, request, fastest->plan)) return plan;
    }
    return plan->build() ? std::move(plan) : nullptr;
  }
  /// Milliseconds of the convolution alone and, at least, of what would be done beside it.
  std::optional<float> time_parts(ConvolutionRequest request) const {
    const bool writes = request.epilogue != Epilogue::kStatistics;
    request.epilogue = Epilogue::kNone;
    const Planned alone = plan(request);
    const PlanTimer timer(tuning_.stream, request.shape);
    if (alone == nullptr || !timer.ready()) return std::nullopt;
    const auto convolution = alone->time(timer), pass = timer.time_pass(writes);
    if (!convolution || !pass) return std::nullopt;
    return *convolution + *pass;
  }

  const Target target_;
  const CudaOptions& options_;
  const Tuning& tuning_;
};

}  // namespace

std::unique_ptr<PlannedConvolution> plan_with_cudnn(cudnnHandle_t handle,
                                                    const CudaOptions& options,
                                                    const ConvolutionRequest& request,
                                                    const Tuning& tuning) {
  return ConvolutionPlanner({handle, nullptr}, options, tuning).plan(request);
}

std::unique_ptr<PlannedConvolution> plan_for_described(const std::string& device,
                                                       const CudaOptions& options,
                                                       const ConvolutionRequest& request) {
  auto described = std::make_shared<fe::DeviceProperties>();
  auto status = described->deserialize({device.begin(), device.end()});
  if (status.is_bad())
    throw DeviceError("cuDNN does not take the device's description: " + status.get_message());
  return ConvolutionPlanner({nullptr, described}, options, {}).plan(request);
}

}  // namespace outrigger::nn::cuda
