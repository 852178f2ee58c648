#include "host_engine.h"

#include <cstdlib>
#include <cstring>

#include "nn/cuda/arena_plan.h"
#include "nn/cuda/kernels/kernels_over.inc.h"
#include "nn/cuda/program.h"

namespace outrigger::nn::cuda::testing {
namespace {

struct HostLauncher {
  template <typename F>
  void each(uint32_t count, const F& f) const {
    for (uint32_t i = 0; i < count; ++i) f(i);
  }
  template <typename F>
  void columns(Matrix size, const F& f) const {
    for (uint32_t c = 0; c < size.columns; ++c) {
      Sums<double> sums;
      for (uint32_t row = 0; row < size.rows; ++row) {
        const Sums<float> term = f.term(row, c);
        sums.a += term.a;
        sums.b += term.b;
        sums.c += term.c;
      }
      f.finish(c, sums);
    }
  }
  template <typename F>
  void rows(Matrix size, const F& f) const {
    for (uint32_t row = 0; row < size.rows; ++row) {
      double sum = 0;
      for (uint32_t c = 0; c < size.columns; ++c) sum += f.term(row, c).a;
      for (uint32_t c = 0; c < size.columns; ++c)
        f.finish(row, c, Sums<float>{static_cast<float>(sum), 0, 0});
    }
  }
};

float element(ConstArray array, int64_t i) {
  return array.type == ElementType::kBFloat16
             ? to_float(static_cast<const BFloat16*>(array.data)[i])
             : static_cast<const float*>(array.data)[i];
}

class HostEngine final : public Engine {
 public:
  explicit HostEngine(SeenConvolution seen) : seen_(std::move(seen)) {}
  std::unique_lock<std::mutex> enter() override { return std::unique_lock(mutex_); }
  const Kernels& kernels() const override { return host_kernels(); }
  // Filled with what nobody wrote: a program that reads it gives no number.
  void* allocate(size_t bytes, const std::string&, int64_t) override {
    void* memory = std::aligned_alloc(kArenaAlignment, aligned(bytes));
    std::memset(memory, 0xFF, bytes);
    return memory;
  }
  void release(void* memory) override { std::free(memory); }
  void upload(void* device, const void* host, size_t bytes) override { copy(device, host, bytes); }
  void download(void* host, const void* device, size_t bytes) override {
    copy(host, device, bytes);
  }
  void clear(void* device, size_t bytes) override {
    if (bytes > 0) std::memset(device, 0, bytes);
  }
  void synchronize() override {}
  void multiply(const Product& p) override {
    for (int64_t row = 0; row < p.rows; ++row) {
      for (int64_t column = 0; column < p.columns; ++column) {
        double sum = 0;
        for (int64_t k = 0; k < p.inner; ++k) {
          const float a = element(p.a, p.transpose_a ? k * p.rows + row : row * p.inner + k);
          const float b =
              element(p.b, p.transpose_b ? column * p.inner + k : k * p.columns + column);
          sum += double{a} * b;
        }
        static_cast<float*>(p.c.data)[row * p.columns + column] = static_cast<float>(sum);
      }
    }
  }
  std::shared_ptr<PlannedConvolution> plan_convolution(const ConvolutionShape& shape,
                                                       ConvolutionPass pass) override {
    if (seen_) seen_(shape, pass);
    return nullptr;
  }

 private:
  static void copy(void* to, const void* from, size_t bytes) {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  const SeenConvolution seen_;
  std::mutex mutex_;
};

class HostBackend final : public Backend {
 public:
  std::string name() const override { return "cuda on the host"; }
  std::unique_ptr<Program> compile(const Graph& graph, const ProgramOptions& options,
                                   ThreadPool&) const override {
    check_options(graph, options);
    return std::make_unique<CudaProgram>(graph, options, engine_);
  }

 private:
  const std::shared_ptr<Engine> engine_ = make_host_engine();
};

}  // namespace

std::shared_ptr<Engine> make_host_engine(SeenConvolution seen) {
  return std::make_shared<HostEngine>(std::move(seen));
}
std::unique_ptr<Backend> make_host_backend() { return std::make_unique<HostBackend>(); }

const Kernels& host_kernels() {
  static const HostLauncher launcher;
  static const KernelsOver<HostLauncher> kernels(launcher);
  return kernels;
}

}  // namespace outrigger::nn::cuda::testing
