#include "nn/cpu/compilation.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/error.h"
#include "nn/cpu/instruction_set.h"
#include "nn/cpu/run.h"

namespace outrigger::nn::cpu {
namespace {

Value to_value(const Shape& shape, Precision precision) {
  Value value;
  value.channels = shape.back();
  if (shape.size() == 3) {
    value.height = shape[0];
    value.width = shape[1];
    value.places = shape[0] * shape[1];
    value.bfloat16 = precision == Precision::kBFloat16 && computes_bfloat16();
  }
  return value;
}

}  // namespace

int64_t period_of(int64_t channels) { return std::lcm(channels, int64_t{16}); }

Compilation::Compilation(const Graph& graph, const ProgramOptions& options, int slots)
    : graph_(graph),
      options_(options),
      blocks_(choose_blocks(graph, options.batch)),
      kernels_(cpu::kernels()),
      slots_(slots),
      buffers_(blocks_) {
  const Segment segment = options.segment;
  values_.push_back(to_value(segment.begin == 0 ? graph.input() : layer(segment.begin - 1).output,
                             options.precision));
  values_[0].wants_gradient = training() && options.input_gradient;
  for (int i = segment.begin; i < segment.end; ++i) {
    Value value = to_value(layer(i).output, options.precision);
    for (size_t p = 0; p < layer(i).parameters.size(); ++p)
      value.wants_gradient |= training() && trains(i, p);
    for (const int input : layer(i).inputs)
      value.wants_gradient |= this->value(input).wants_gradient;
    values_.push_back(std::move(value));
  }
}

BufferId Compilation::create(Value& value) {
  value.data = value.kept    ? buffers_.tape(value.bytes())
               : value.whole ? buffers_.whole(value.bytes())
                             : buffers_.blocked(value.bytes());
  return value.data;
}

BufferId Compilation::create_gradient(Value& value) {
  const BufferId id =
      value.whole_gradient ? buffers_.whole(value.bytes()) : buffers_.blocked(value.bytes());
  value.gradients.push_back(id);
  return id;
}

size_t Compilation::reserve_weights(size_t bytes) {
  const size_t offset = weight_bytes_;
  weight_bytes_ += aligned(bytes);
  return offset;
}

void Compilation::reserve_slot(size_t bytes) {
  slot_bytes_ = std::max(slot_bytes_, aligned(bytes));
}

Range Compilation::parameter(int layer_index, size_t which) const {
  const auto number = static_cast<size_t>(layer(layer_index).parameters[which]);
  Range range = graph_.parameters()[number].range;
  range.offset -= graph_.parameter_range(options_.segment).offset;
  return range;
}

bool Compilation::trains(int layer_index, size_t which) const {
  return graph_.parameters()[static_cast<size_t>(layer(layer_index).parameters[which])].trainable;
}

std::vector<Range> Compilation::trained(std::initializer_list<int> layers) const {
  std::vector<Range> ranges;
  for (const int index : layers) {
    if (index < 0) continue;
    for (size_t i = 0; i < layer(index).parameters.size(); ++i) {
      if (trains(index, i)) ranges.push_back(parameter(index, i));
    }
  }
  return ranges;
}

Range Compilation::statistics(int layer_index) const {
  Range range = graph_.buffers()[static_cast<size_t>(layer(layer_index).buffer)].range;
  range.offset -= graph_.buffer_range(options_.segment).offset;
  return range;
}

BufferId Compilation::combine(int layer_index, const Value& value, BufferId a, BufferId b,
                              bool whole) {
  const BufferId sum = whole ? buffers_.whole(value.bytes()) : buffers_.blocked(value.bytes());
  const int64_t elements = value.elements();
  with_type(value.bfloat16, [&](auto type) {
    using T = decltype(type);
    const auto add = kernels_.of<T>().add;
    backward_.add(
        {PieceKind::kBlock, layer_index, 0, {a, b, sum}, [=](const Run& run, const Task& task) {
           add(run.at<T>(a, task.first), run.at<T>(b, task.first), run.at<T>(sum, task.first),
               task.samples * elements);
         }});
  });
  return sum;
}

BufferId Compilation::gradient(int layer_index, Value& value) {
  ensure(!value.gradients.empty(), "a wanted gradient was given by some reader");
  BufferId sum = value.gradients[0];
  for (size_t i = 1; i < value.gradients.size(); ++i) {
    const bool last = i + 1 == value.gradients.size();
    sum = combine(layer_index, value, sum, value.gradients[i], last && value.whole_gradient);
  }
  if (value.whole_gradient && !buffers_.contiguous(sum)) {
    const BufferId copy = buffers_.whole(value.bytes());
    backward_.add({PieceKind::kBlock,
                   layer_index,
                   0,
                   {sum, copy},
                   [=, bytes = value.bytes()](const Run& run, const Task& task) {
                     std::copy_n(run.at<std::byte>(sum, task.first), task.samples * bytes,
                                 run.at<std::byte>(copy, task.first));
                   }});
    sum = copy;
  }
  return sum;
}

}  // namespace outrigger::nn::cpu
