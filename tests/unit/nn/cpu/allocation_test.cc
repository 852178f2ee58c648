#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "network_run.h"
#include "nn/cpu/backend.h"
#include "nn/cpu/onednn/allocation_guard.h"
#include "nn/models.h"

namespace {

// Allocations of this process outside oneDNN's own calls, while counting.
std::atomic<bool> counting = false;
std::atomic<int> allocations = 0;

void* allocate(size_t size, size_t alignment) {
  if (counting && !outrigger::nn::cpu::onednn::is_inside_onednn()) ++allocations;
  void* memory = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(size_t size) { return allocate(size, alignof(std::max_align_t)); }
void* operator new(size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

namespace outrigger::nn {
namespace {

Graph faces() {
  ModelOptions options;
  options.name = "mobilefacenet";
  options.height = options.width = 32;
  options.classes = 7;
  options.embedding = 32;
  options.head = HeadKind::kArcFace;
  options.dropout = 0.3f;
  return build_model(options);
}

TEST(Allocation, NoneInAStepAfterTheFirst) {
  for (const Graph& graph : {testing::narrow_resnet(), faces()}) {
    const auto values = testing::draw_network_values(graph, 6);
    ThreadPool threads(2);
    const auto program =
        cpu::make_cpu_backend()->compile(graph, {.segment = graph.whole(), .batch = 6}, threads);
    const auto weights = program->new_weights();
    const auto tape = program->new_tape();
    program->load(*weights, values.parameters, values.buffers);
    Tensor output(ElementType::kFloat32, program->output_spec().shape);
    std::vector<float> statistics(values.buffers.size()), gradients(values.parameters.size());
    const ForwardInput in = testing::input_of(*program, values);
    const ForwardOutput out{output.view(), statistics};
    const ConstTensorView gradient{
        ElementType::kFloat32, program->output_spec().shape,
        reinterpret_cast<const std::byte*>(values.output_gradient.data())};
    int told = 0;
    const BackwardOutput back{{}, gradients, [&told](int64_t) { ++told; }};
    for (int step = 0; step < 3; ++step) {
      counting = step > 0;
      // The views hold their shapes by value: they are made outside what is counted.
      program->forward(*weights, *tape, in, out);
      counting = false;
      ConstTensorView passed = gradient;
      counting = step > 0;
      program->backward(*weights, *tape, std::move(passed), back);
      counting = false;
    }
    EXPECT_EQ(allocations, 0) << graph.name();
    EXPECT_GT(told, 0);
  }
}

}  // namespace
}  // namespace outrigger::nn
