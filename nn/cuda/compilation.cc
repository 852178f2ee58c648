#include "nn/cuda/compilation.h"

#include <algorithm>
#include <limits>

#include "common/error.h"

namespace outrigger::nn::cuda {
namespace {

Extent to_extent(const Shape& shape) {
  return shape.size() == 3 ? Extent{shape[0], shape[1], shape[2]} : Extent{1, 1, shape[0]};
}

}  // namespace

BufferId BufferPlan::add(size_t bytes, int owner) {
  Buffer buffer;
  buffer.owner = owner;
  buffer.request.bytes = bytes;
  buffers_.push_back(buffer);
  return {static_cast<int>(buffers_.size()) - 1};
}

void BufferPlan::use(BufferId id, int moment) {
  ArenaRequest& request = buffers_[static_cast<size_t>(id.index)].request;
  request.first = request.first < 0 ? moment : std::min(request.first, moment);
  request.last = std::max(request.last, moment);
}

void BufferPlan::finish(int last_forward, int not_kept_from) {
  ensure(not_kept_from <= last_forward + 1, "a tape has nothing that backward creates");
  last_forward_ = last_forward;
  std::vector<ArenaRequest> scratch;
  for (Buffer& buffer : buffers_) {
    const ArenaRequest& request = buffer.request;
    buffer.on_tape =
        request.first >= 0 && request.first < not_kept_from && request.last > last_forward;
    if (buffer.on_tape) {
      buffer.offset = tape_bytes_;
      tape_bytes_ += aligned(request.bytes);
    } else if (request.first >= 0) {
      scratch.push_back(request);
    }
  }
  const ArenaPlan plan = plan_arena(scratch);
  scratch_bytes_ = plan.bytes;
  size_t next = 0;
  for (Buffer& buffer : buffers_) {
    if (!buffer.on_tape && buffer.request.first >= 0) buffer.offset = plan.offsets[next++];
  }
}

std::map<int, int64_t> BufferPlan::kept_by_owner() const {
  std::map<int, int64_t> kept;
  for (const Buffer& buffer : buffers_) {
    const ArenaRequest& request = buffer.request;
    if (request.first >= 0 && request.first <= last_forward_ && request.last > last_forward_)
      kept[buffer.owner] += static_cast<int64_t>(aligned(request.bytes));
  }
  return kept;
}

std::byte* BufferPlan::address(BufferId id, int moment, std::byte* tape, std::byte* scratch) const {
  ensure(static_cast<bool>(id), "a buffer that is used was created");
  const Buffer& buffer = buffers_[static_cast<size_t>(id.index)];
  ensure(buffer.request.first <= moment && moment <= buffer.request.last,
         "a buffer is used only while it is planned to be there");
  return (buffer.on_tape ? tape : scratch) + buffer.offset;
}

Compilation::Compilation(const Graph& graph, const ProgramOptions& options, Engine& engine)
    : graph_(graph),
      options_(options),
      engine_(engine),
      begin_(options.segment.begin),
      gradient_moments_(static_cast<size_t>(options.segment.end - begin_), -1) {
  describe_values();
  weight_bytes_ = aligned(parameter_bytes()) + aligned(average_bytes());
}

void Compilation::describe_values() {
  const Segment segment = options_.segment;
  const auto describe = [&](const Shape& shape) {
    Value value;
    value.extent = to_extent(shape);
    value.type = shape.size() == 3 ? map_type() : Stored::kFloat32;
    if (options_.batch * value.extent.size() > std::numeric_limits<int32_t>::max()) {
      throw InvalidInput(
          "a micro-batch of " + std::to_string(options_.batch) +
          " is too large for the GPU: a layer's output has more than 2^31 - 1 values; " +
          "give training.microBatchSize " +
          std::to_string(std::numeric_limits<int32_t>::max() / value.extent.size()) + " at most");
    }
    values_.push_back(value);
  };
  describe(begin_ == 0 ? graph_.input() : layer(begin_ - 1).output);
  values_[0].wants_gradient = training() && options_.input_gradient;
  for (int i = begin_; i < segment.end; ++i) {
    describe(layer(i).output);
    bool wanted = trains(i);
    for (const int input : layer(i).inputs) wanted = wanted || value(input).wants_gradient;
    values_.back().wants_gradient = training() && wanted;
  }
}

Stored Compilation::map_type() const {
  switch (options_.precision) {
    case Precision::kFloat32:
      return Stored::kFloat32;
    case Precision::kBFloat16:
      return Stored::kBFloat16;
    case Precision::kFloat16:
      return Stored::kFloat16;
  }
  impossible("a precision");
}

bool Compilation::trains(int i) const {
  return std::ranges::any_of(layer(i).parameters, [&](int p) {
    return graph_.parameters()[static_cast<size_t>(p)].trainable;
  });
}

int Compilation::sole_reader(int i) const {
  if (i + 1 == options_.segment.end) return -1;
  int reader = -1;
  for (int j = i + 1; j < options_.segment.end; ++j) {
    for (const int input : layer(j).inputs) {
      if (input != i) continue;
      if (reader >= 0) return -1;
      reader = j;
    }
  }
  return reader;
}

Matrix Compilation::matrix(const Value& value) const {
  return {static_cast<uint32_t>(options_.batch * value.extent.area()),
          static_cast<uint32_t>(value.extent.channels)};
}

size_t Compilation::bytes(const Value& value) const {
  return static_cast<size_t>(options_.batch * value.extent.size()) * element_size(value.type);
}

BufferId Compilation::create(size_t bytes) {
  const BufferId id = buffers_.add(bytes, step_layer_);
  buffers_.use(id, moment_);
  return id;
}

BufferId Compilation::create(Value& value) {
  if (!value.kept) return value.data = create(bytes(value));
  use(value.data);
  return value.data;
}

void Compilation::use(BufferId id) { buffers_.use(id, moment_); }

GradientTarget Compilation::gradient(Value& value) {
  if (!value.wants_gradient) return {};
  if (value.gradient) {
    use(value.gradient);
    return {value.gradient, true};
  }
  return {value.gradient = create(bytes(value)), false};
}

void Compilation::begin_step(size_t i, int layer) {
  step_ = i;
  step_layer_ = layer;
  next_reserved_ = 0;
  reserved_.resize(std::max(reserved_.size(), i + 1));
}

size_t Compilation::reserve(size_t bytes) {
  auto& places = reserved_[step_];
  if (next_reserved_ == places.size()) {
    places.push_back(weight_bytes_);
    weight_bytes_ += aligned(bytes);
  }
  return places[next_reserved_++];
}

int64_t Compilation::parameter_offset(int i) const {
  return graph_.parameter_range({i, i + 1}).offset -
         graph_.parameter_range(options_.segment).offset;
}
int64_t Compilation::gradient_offset(int i) {
  gradient_moments_[static_cast<size_t>(i - begin_)] = moment_;
  return parameter_offset(i);
}
int Compilation::gradient_moment(int i) const {
  return gradient_moments_[static_cast<size_t>(i - begin_)];
}
int64_t Compilation::statistics_offset(int i) const {
  return graph_.buffer_range({i, i + 1}).offset - graph_.buffer_range(options_.segment).offset;
}
size_t Compilation::parameters_at(int i) const {
  return static_cast<size_t>(parameter_offset(i)) * sizeof(float);
}
size_t Compilation::averages_at(int i) const {
  return aligned(parameter_bytes()) + static_cast<size_t>(statistics_offset(i)) * sizeof(float);
}
size_t Compilation::parameter_bytes() const {
  return static_cast<size_t>(graph_.parameter_range(options_.segment).size) * sizeof(float);
}
size_t Compilation::average_bytes() const {
  return static_cast<size_t>(graph_.buffer_range(options_.segment).size) * sizeof(float);
}

}  // namespace outrigger::nn::cuda
