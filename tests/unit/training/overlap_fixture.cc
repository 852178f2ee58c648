#include "tests/unit/training/overlap_fixture.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/error.h"
#include "common/tensor.h"
#include "nn/graph_builder.h"
#include "tests/fakes/wrapped_program.h"

namespace outrigger {
namespace {

class ToldProgram final : public fakes::WrappedProgram {
 public:
  ToldProgram(std::unique_ptr<nn::Program> program, Backward backward, Meeting& meeting,
              uint32_t rank, Buckets buckets, int64_t offset, std::vector<WatchedPass>& passes)
      : WrappedProgram(std::move(program)),
        backward_(backward),
        meeting_(meeting),
        rank_(rank),
        buckets_(buckets),
        offset_(offset),
        passes_(passes) {}

  void backward(const nn::Weights& weights, nn::Tape& tape, ConstTensorView output_gradient,
                const nn::BackwardOutput& out) const override {
    nn::BackwardOutput told = out;
    if (backward_ == Backward::kTellsNothing) told.ready = nullptr;
    WatchedPass pass;
    // Of this step's: what a former program of the same micro-batch told of has left by now.
    const int64_t end = offset_ + static_cast<int64_t>(out.gradients.size());
    const int64_t before = meeting_.done(rank_) - buckets_.behind(end);
    if (told.ready) {
      told.ready = [&](int64_t first) {
        out.ready(first);
        pass.could_leave = buckets_.behind(offset_ + first);
        meeting_.wait_for(rank_, before + pass.could_leave);
        pass.left = meeting_.done(rank_) - before;
        if (first > 0) pass.left_early = pass.left;
      };
    }
    WrappedProgram::backward(weights, tape, std::move(output_gradient), told);
    if (told.ready) passes_.push_back(pass);
  }

 private:
  const Backward backward_;
  Meeting& meeting_;
  const uint32_t rank_;
  const Buckets buckets_;
  const int64_t offset_;  // of the segment's parameters
  std::vector<WatchedPass>& passes_;
};

}  // namespace

nn::Graph overlap_graph() {
  nn::GraphBuilder builder("overlap", {6, 6, 1});
  builder.add("normalize", nn::Normalize{{0.5f}, {0.25f}});
  builder.add("conv1", nn::Convolution{.out_channels = 8, .kernel = 3, .padding = 1});
  builder.add("bn1", nn::BatchNorm{});
  const int stem = builder.add("relu1", nn::Relu{});
  builder.add("conv2", nn::Convolution{.out_channels = 8, .kernel = 3, .padding = 1, .bias = true});
  const int branch = builder.add("bn2", nn::BatchNorm{});
  builder.add("add", nn::Add{}, {branch, stem});
  builder.add("pool", nn::MaxPool{2, 2});
  builder.add("prelu", nn::Prelu{});
  builder.add("flatten", nn::Flatten{});
  builder.add("fc", nn::Linear{.out_features = 8});
  builder.add("bn3", nn::BatchNorm{});
  builder.add("head", nn::ArcFace{5, 0.3f, 8});
  return builder.build();
}

int64_t Buckets::behind(int64_t first) const {
  const auto up = [this](int64_t floats) { return (floats + bucket - 1) / bucket; };
  return up(all) - up(std::max(first, least));
}

void Meeting::sum(uint32_t rank, std::span<float> values) {
  std::unique_lock lock(mutex_);
  const auto wait = [&](auto done) {
    changed_.wait(lock, [&] { return broken_up_ || done(); });
    if (!done()) throw IoError("a rank is gone");
  };
  ++begun_[rank];
  theirs_[rank] = values;
  const uint64_t round = round_;
  if (++arrived_ == theirs_.size()) {
    sum_.assign(values.size(), 0.0f);
    for (const auto& one : theirs_)
      for (size_t i = 0; i < sum_.size(); ++i) sum_[i] += one[i];
    arrived_ = 0;
    ++round_;
    changed_.notify_all();
  }
  wait([&] { return round_ != round; });
  std::ranges::copy(sum_, values.begin());
  // The next round begins when all have this one's.
  if (++taken_ == theirs_.size()) {
    taken_ = 0;
    ++round_;
    changed_.notify_all();
  }
  wait([&] { return round_ != round + 1; });
  ++done_[rank];
  changed_.notify_all();
}

void Meeting::break_up() {
  const std::scoped_lock lock(mutex_);
  broken_up_ = true;
  changed_.notify_all();
}

int64_t Meeting::begun(uint32_t rank) {
  const std::scoped_lock lock(mutex_);
  return begun_[rank];
}

int64_t Meeting::done(uint32_t rank) {
  const std::scoped_lock lock(mutex_);
  return done_[rank];
}

void Meeting::wait_for(uint32_t rank, int64_t done) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::seconds(10),
                    [&] { return broken_up_ || done_[rank] >= done; });
}

void MeetingReducer::all_reduce_bfloat16(std::span<float> values) {
  for (float& value : values) value = from_bfloat16(to_bfloat16(value));
  all_reduce(values);
  for (float& value : values) value = from_bfloat16(to_bfloat16(value));
}

void MeetingReducer::broadcast(std::span<std::byte> /*bytes*/) {
  impossible("nothing is to be told");
}

std::unique_ptr<nn::Program> ToldBackend::compile(const nn::Graph& graph,
                                                  const nn::ProgramOptions& options,
                                                  ThreadPool& threads) const {
  return std::make_unique<ToldProgram>(backend_.compile(graph, options, threads), backward_,
                                       meeting_, rank_, buckets_,
                                       graph.parameter_range(options.segment).offset, passes_);
}

}  // namespace outrigger
