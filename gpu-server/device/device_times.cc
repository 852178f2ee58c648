#include "gpu-server/device/device_times.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "common/error.h"
#include "common/log.h"
#include "nn/cuda/errors.h"
#include "nn/resident.h"

namespace outrigger::gpu_server {
namespace {

/// The first pass loads what libraries need, the second is recorded.
constexpr int kWarmUp = 2;
constexpr int kTimed = 3;

/// A segment that ends the graph, with what its passes are given and leave.
class TimedPass {
 public:
  TimedPass(const nn::Backend& backend, const nn::Graph& graph,
            const training::DeviceOptions& options, const HeadToTime& head, ThreadPool& threads,
            std::shared_ptr<nn::WorkSpace> space)
      : groups_(options.most_at_once),
        samples_(options.micro_batch * groups_),
        program_(backend.compile(graph,
                                 {.segment = {head.cut, graph.size()},
                                  .batch = samples_,
                                  .precision = options.precision,
                                  .mode = nn::Mode::kTraining,
                                  .input_gradient = head.cut > 0 && head.stem_trains,
                                  .seed = options.seed,
                                  .work_space = std::move(space),
                                  .groups = groups_},
                                 threads)),
        weights_(program_->new_weights()),
        tape_(program_->new_tape()),
        buffers_(static_cast<size_t>(graph.buffer_range({head.cut, graph.size()}).size)),
        statistics_(static_cast<size_t>(groups_ * graph.buffer_count())),
        input_(program_->input_spec().type, program_->input_spec().shape),
        slots_(static_cast<size_t>(samples_)),
        labels_(static_cast<size_t>(samples_)) {
    std::ranges::fill(std::span(input_.view().data, input_.bytes()), std::byte{0});
    if (head.cut > 0 && head.stem_trains) input_gradient_ = Tensor(input_.type(), input_.shape());
  }

  /// Seconds of the device for one micro-batch.
  double time(nn::Resident& resident) {
    resident.load(*program_, *weights_, buffers_);
    for (int i = 0; i < kWarmUp; ++i) run(resident);
    resident.take_times();
    for (int i = 0; i < kTimed; ++i) run(resident);
    const nn::ResidentTimes times = resident.take_times();
    return (times.forward + times.backward) / (kTimed * static_cast<double>(groups_));
  }

 private:
  void run(nn::Resident& resident) {
    const nn::ResidentPass pass{*program_, *weights_, *tape_};
    const nn::ForwardInput input{input_.view(), samples_, slots_, labels_};
    resident.stage(pass, {&input, 1});
    resident.train(
        pass, {statistics_, input_gradient_.empty() ? TensorView{} : input_gradient_.view()}, 1);
    resident.collect();
  }

  const int64_t groups_;
  const int64_t samples_;
  const std::unique_ptr<nn::Program> program_;
  const std::unique_ptr<nn::Weights> weights_;
  const std::unique_ptr<nn::Tape> tape_;
  const std::vector<float> buffers_;
  std::vector<float> statistics_;
  Tensor input_;
  Tensor input_gradient_;  // empty where nobody wants it
  const std::vector<uint64_t> slots_;
  const std::vector<int32_t> labels_;
};

double time_optimizer(nn::Resident& resident) {
  for (int i = 0; i < kWarmUp; ++i) resident.update({});
  resident.take_times();
  for (int i = 0; i < kTimed; ++i) resident.update({});
  return resident.take_times().optimizer / kTimed;
}

void put_zeros(nn::Resident& resident, const nn::Graph& graph,
               const training::DeviceOptions& options) {
  std::vector<float> zeros(static_cast<size_t>(graph.parameter_count()));
  resident.put({zeros, zeros, options.average_decay ? std::span(zeros) : std::span<float>()});
  resident.clear_gradients();
}

}  // namespace

DeviceTimes time_device(const nn::Backend& backend, const nn::Graph& graph,
                        const training::DeviceOptions& options, std::span<const HeadToTime> heads,
                        ThreadPool& threads) {
  const auto resident = backend.make_resident(
      graph, {options.optimizer, options.average_decay, options.label_smoothing});
  ensure(resident != nullptr, "only a device with arrays of its own is timed so");
  put_zeros(*resident, graph, options);
  DeviceTimes times;
  times.optimizer = time_optimizer(*resident);
  // As in training, where passes of all plans take what the largest takes.
  const auto space = backend.make_work_space();
  TimedPass whole(backend, graph, options, {}, threads, space);
  times.whole = whole.time(*resident);
  for (const HeadToTime& head : heads) {
    try {
      times.heads.emplace_back(
          TimedPass(backend, graph, options, head, threads, space).time(*resident));
    } catch (const nn::cuda::OutOfDeviceMemory& error) {
      log::info("no plan cuts behind layer {}: {}", head.cut, error.what());
      times.heads.emplace_back();
    }
  }
  return times;
}

}  // namespace outrigger::gpu_server
