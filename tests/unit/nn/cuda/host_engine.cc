#include "host_engine.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "host_convolution.h"
#include "host_queues.h"
#include "nn/cuda/arena_plan.h"
#include "nn/cuda/compiler.h"
#include "nn/cuda/errors.h"
#include "nn/cuda/kernels/kernels_over.inc.h"
#include "nn/cuda/memory_book.h"
#include "nn/cuda/pinned_ranges.h"
#include "nn/cuda/pinned_source.h"
#include "nn/cuda/resident.h"
#include "nn/cuda/work_space.h"

namespace outrigger::nn::cuda::testing {
namespace {

template <typename F>
void each_of(uint32_t count, const F& f) {
  for (uint32_t i = 0; i < count; ++i) f(i);
}
template <typename F>
void columns_of(Matrix size, uint32_t groups, const F& f) {
  constexpr uint32_t kWidth = F::kWidth;
  const uint32_t rows = size.rows / groups;
  for (uint32_t first = 0; first < size.columns; first += kWidth) {
    for (uint32_t group = 0; group < groups; ++group) {
      std::array<std::array<double, F::kSums>, kWidth> sums{};
      const auto column = f.column(group, first);
      for (uint32_t row = group * rows; row < (group + 1) * rows; ++row) {
        std::array<float, F::kSums * kWidth> terms{};
        f.term(column, row, terms.data());
        for (uint32_t j = 0; j < kWidth; ++j) {
          for (uint32_t s = 0; s < F::kSums; ++s) sums[j][s] += terms[s * kWidth + j];
        }
      }
      for (uint32_t j = 0; j < kWidth; ++j) f.finish(group, first + j, sums[j].data());
    }
  }
}
template <typename F>
void rows_of_columns_of(Matrix size, uint32_t groups, const F& f) {
  const uint32_t rows = size.rows / groups;
  for (uint32_t first = 0; first < size.columns; first += F::kWidth) {
    for (uint32_t group = 0; group < groups; ++group) {
      const auto column = f.column(group, first);
      for (uint32_t row = group * rows; row < (group + 1) * rows; ++row) f.apply(column, row);
    }
  }
}
template <typename F>
void rows_of(Matrix size, const F& f) {
  for (uint32_t row = 0; row < size.rows; ++row) {
    double sum = 0;
    for (uint32_t c = 0; c < size.columns; ++c) sum += f.term(row, c);
    for (uint32_t c = 0; c < size.columns; ++c) f.finish(row, c, static_cast<float>(sum));
  }
}
// In strides, as a GPU's threads gather them.
template <typename F>
void row_states_of(Matrix size, const F& f) {
  constexpr uint32_t kLanes = 4;
  for (uint32_t row = 0; row < size.rows; ++row) {
    auto state = f.none();
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      auto part = f.none();
      for (uint32_t c = lane; c < size.columns; c += kLanes) part = f.merge(part, f.term(row, c));
      state = f.merge(state, part);
    }
    for (uint32_t c = 0; c < size.columns; ++c) f.finish(row, c, state);
  }
}

/// Loops on a queue; without one, at once.
struct HostLauncher {
  HostQueues* queues = nullptr;

  template <typename F>
  void each(uint32_t count, const F& f) const {
    start([count, f] { each_of(count, f); });
  }
  template <typename F>
  void columns(Matrix size, uint32_t groups, const F& f) const {
    start([size, groups, f] { columns_of(size, groups, f); });
  }
  template <typename F>
  void rows_of_columns(Matrix size, uint32_t groups, const F& f) const {
    start([size, groups, f] { rows_of_columns_of(size, groups, f); });
  }
  template <typename F>
  void rows(Matrix size, const F& f) const {
    start([size, f] { rows_of(size, f); });
  }
  template <typename F>
  void row_states(Matrix size, const F& f) const {
    start([size, f] { row_states_of(size, f); });
  }

 private:
  template <typename Work>
  void start(const Work& work) const {
    if (queues == nullptr) {
      work();
    } else {
      queues->push(Queue::kWork, work);
    }
  }
};

float element(ConstArray array, int64_t i) {
  float value = 0;
  with_type(array.type, [&]<typename T>(T) { value = to_float(in<T>(array)[i]); });
  return value;
}

void multiply_now(const Product& p) {
  for (int64_t row = 0; row < p.rows; ++row) {
    for (int64_t column = 0; column < p.columns; ++column) {
      double sum = 0;
      for (int64_t k = 0; k < p.inner; ++k) {
        const float a = element(p.a, p.transpose_a ? k * p.rows + row : row * p.inner + k);
        const float b = element(p.b, p.transpose_b ? column * p.inner + k : k * p.columns + column);
        sum += double{a} * b;
      }
      with_type(p.c.type, [&]<typename T>(T) {
        store(out<T>(p.c) + row * p.columns + column, static_cast<float>(sum), p.add);
      });
    }
  }
}

class HostCollective final : public Collective {
 public:
  HostCollective(HostQueues& queues, HostRanks& ranks, int rank)
      : queues_(queues), ranks_(ranks), rank_(rank) {}
  void begin_sum(Array values, size_t count) override {
    queues_.push(Queue::kWork, [this, values, count] {
      if (values.type == Stored::kFloat32) {
        ranks_.sum(rank_, {static_cast<float*>(values.data), count});
        return;
      }
      auto* rounded = static_cast<uint16_t*>(values.data);
      std::vector<float> sums(count);
      std::transform(rounded, rounded + count, sums.begin(), from_bfloat16);
      ranks_.sum(rank_, sums);
      std::ranges::transform(sums, rounded, to_bfloat16);
    });
  }
  void finish() override { queues_.run_all(); }

 private:
  HostQueues& queues_;
  HostRanks& ranks_;
  const int rank_;
};

class HostEngine final : public Engine {
 public:
  explicit HostEngine(SeenConvolution seen, HostRanks* ranks = nullptr,
                      size_t most_pinned = SIZE_MAX, HostPlans plans = HostPlans::kNone)
      : seen_(std::move(seen)), ranks_(ranks), plans_(plans), pinned_left_(most_pinned) {}
  ~HostEngine() override { queues_.run_all(); }
  std::unique_lock<std::mutex> enter() override { return std::unique_lock(mutex_); }
  const Kernels& kernels() const override { return kernels_; }
  // Filled with what nobody wrote: a program that reads it gives no number.
  void* allocate(size_t bytes, const std::string& what, int64_t) override {
    ensure(!queues_.is_recording(), "who records takes no memory");
    constexpr size_t kMost = size_t{1} << 40;
    if (bytes > kMost) throw OutOfDeviceMemory("the host has no room for " + what);
    void* memory = std::aligned_alloc(kArenaAlignment, aligned(bytes));
    std::memset(memory, 0xFF, bytes);
    book_.taken(memory, bytes, what);
    return memory;
  }
  void release(void* memory) override {
    queues_.run_all();
    book_.released(memory);
    std::free(memory);
  }
  std::vector<MemoryUse> memory() const override { return book_.uses(); }
  void upload(void* device, const void* host, size_t bytes) override {
    ensure(!queues_.is_recording(), "who records moves no data");
    const auto* from = static_cast<const std::byte*>(host);
    queues_.push(Queue::kWork, [device, data = std::vector<std::byte>(from, from + bytes)] {
      copy_bytes(device, data.data(), data.size());
    });
  }
  void download(void* host, const void* device, size_t bytes) override {
    synchronize();
    copy_bytes(host, device, bytes);
  }
  // Other threads take it while work is queued, or recorded.
  void* allocate_pinned(size_t bytes, const std::string& what) override {
    if (pinned_left_.fetch_sub(bytes) < bytes) {
      pinned_left_ += bytes;
      throw OutOfDeviceMemory("taking " + std::to_string(bytes) + " bytes of pinned memory for " +
                              what);
    }
    void* memory = std::aligned_alloc(kArenaAlignment, aligned(bytes));
    std::memset(memory, 0xFF, bytes);
    pinned_.given(memory, bytes);
    return memory;
  }
  void release_pinned(void* memory) override {
    ensure(!queues_.is_recording(), "who records waits for nothing");
    queues_.run_all();
    pinned_.released(memory);
    std::free(memory);
  }
  bool is_pinned(const void* data, size_t bytes) const override {
    return pinned_.hold(data, bytes);
  }
  void upload_pinned(Queue queue, void* device, const void* pinned, size_t bytes) override {
    ensure(!queues_.is_recording(), "who records moves no data");
    queues_.push(queue, [=] { copy_bytes(device, pinned, bytes); });
  }
  void download_pinned(void* pinned, const void* device, size_t bytes) override {
    upload_pinned(Queue::kWork, pinned, device, bytes);
  }
  std::unique_ptr<Mark> make_mark() override { return std::make_unique<HostMark>(queues_); }
  std::unique_ptr<Instant> make_instant() override {
    return std::make_unique<HostInstant>(queues_);
  }
  void begin_range(const char*) override { ++ranges_; }
  void end_range() override { ensure(ranges_-- > 0, "a range that ends has begun"); }
  std::unique_ptr<Recording> record(const std::function<void()>& work) override {
    return std::make_unique<HostRecording>(queues_, queues_.record(work));
  }
  void copy(void* to, const void* from, size_t bytes) override {
    queues_.push(Queue::kWork, [=] { copy_bytes(to, from, bytes); });
  }
  void clear(void* device, size_t bytes) override {
    queues_.push(Queue::kWork, [=] {
      if (bytes > 0) std::memset(device, 0, bytes);
    });
  }
  void synchronize() override { queues_.run_all(); }
  void multiply(const Product& p) override {
    queues_.push(Queue::kWork, [p] { multiply_now(p); });
  }
  std::shared_ptr<PlannedConvolution> plan_convolution(const ConvolutionRequest& request) override {
    if (seen_) seen_(request);
    if (plans_ == HostPlans::kNone || request.pass != ConvolutionPass::kForward) return nullptr;
    return std::make_shared<HostConvolution>(queues_, request);
  }
  std::unique_ptr<Collective> join(const RankGroup& ranks) override {
    if (ranks_ == nullptr) return nullptr;
    return std::make_unique<HostCollective>(queues_, *ranks_, ranks.rank);
  }

 private:
  static void copy_bytes(void* to, const void* from, size_t bytes) {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  const SeenConvolution seen_;
  HostRanks* const ranks_;
  const HostPlans plans_;
  std::mutex mutex_;
  int ranges_ = 0;
  HostQueues queues_;
  std::atomic<size_t> pinned_left_;
  PinnedRanges pinned_;
  MemoryBook book_;
  const HostLauncher launcher_{&queues_};
  const KernelsOver<HostLauncher> kernels_{launcher_};
};

class HostBackend final : public Backend {
 public:
  HostBackend(HostRanks* ranks, bool recompute, HostPlans plans)
      : engine_(std::make_shared<HostEngine>(SeenConvolution(), ranks, SIZE_MAX, plans)),
        compiler_(engine_, recompute),
        pinned_(PinnedSource::create(engine_, SIZE_MAX)) {}
  std::string name() const override { return "cuda on the host"; }
  std::unique_ptr<Program> compile(const Graph& graph, const ProgramOptions& options,
                                   ThreadPool&) const override {
    return compiler_.compile(graph, options);
  }
  std::shared_ptr<WorkSpace> make_work_space() const override {
    return std::make_shared<CudaWorkSpace>(engine_);
  }
  std::shared_ptr<MemorySource> input_memory() const override { return pinned_; }
  bool unpacks_int8() const override { return true; }
  std::unique_ptr<Resident> make_resident(const Graph& graph,
                                          const ResidentOptions& options) const override {
    return std::make_unique<CudaResident>(graph, options, engine_);
  }

 private:
  const std::shared_ptr<Engine> engine_;
  const Compiler compiler_;
  const std::shared_ptr<PinnedSource> pinned_;
};

}  // namespace

std::shared_ptr<Engine> make_host_engine(SeenConvolution seen, size_t most_pinned,
                                         HostPlans plans) {
  return std::make_shared<HostEngine>(std::move(seen), nullptr, most_pinned, plans);
}
std::unique_ptr<Backend> make_host_backend(HostRanks* ranks, bool recompute, HostPlans plans) {
  return std::make_unique<HostBackend>(ranks, recompute, plans);
}

void HostRanks::sum(int rank, std::span<float> values) {
  values_[static_cast<size_t>(rank)] = values;
  barrier_.arrive_and_wait();
  std::vector<float> sums(values.size());
  for (const auto& theirs : values_) {
    ensure(theirs.size() == sums.size(), "all ranks sum the same");
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += theirs[i];
  }
  barrier_.arrive_and_wait();
  std::copy(sums.begin(), sums.end(), values.begin());
  barrier_.arrive_and_wait();
}

const Kernels& host_kernels() {
  static const HostLauncher launcher;
  static const KernelsOver<HostLauncher> kernels(launcher);
  return kernels;
}

}  // namespace outrigger::nn::cuda::testing
