#include "nn/recompute.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <mutex>
#include <set>
#include <utility>

#include "common/error.h"

namespace outrigger::nn {
namespace {

/// Micro-batches whose stems wait for a gradient on one worker, more or less.
constexpr int kStemsInFlight = 4;

/// What enters a program's pieces, for one micro-batch.
struct RecomputingTape final : Tape {
  std::vector<Tensor> inputs;  // of every piece
  std::vector<uint64_t> slots;
  std::vector<int32_t> labels;
};

struct RecomputingWeights final : Weights {
  std::vector<std::unique_ptr<Weights>> pieces;
};

void copy(const ConstTensorView& from, Tensor& to) {
  std::copy_n(from.data, to.bytes(), to.view().data);
}

class RecomputingProgram final : public Program {
 public:
  RecomputingProgram(const Backend& backend, const Graph& graph, const ProgramOptions& options,
                     ThreadPool& threads)
      : space_(backend.make_work_space()) {
    std::vector<int> ends = recompute_cuts(graph, options.segment);
    ends.push_back(options.segment.end);
    const Range parameters = graph.parameter_range(options.segment);
    const Range buffers = graph.buffer_range(options.segment);
    const int trained =
        options.input_gradient ? options.segment.begin : recompute_begin(graph, options.segment);
    int begin = options.segment.begin;
    for (const int end : ends) {
      if (begin < trained) ++first_;
      ProgramOptions piece = options;
      piece.segment = {begin, end};
      piece.input_gradient = options.input_gradient || begin > trained;
      piece.work_space = space_;
      const Range of_parameters = graph.parameter_range(piece.segment);
      const Range of_buffers = graph.buffer_range(piece.segment);
      pieces_.push_back({backend.compile(graph, piece, threads),
                         nullptr,
                         {of_parameters.offset - parameters.offset, of_parameters.size},
                         {of_buffers.offset - buffers.offset, of_buffers.size}});
      begin = end;
    }
    for (Piece& piece : pieces_) piece.tape = piece.program->new_tape();
    for (size_t i = 0; i < pieces_.size(); ++i) {
      const TensorSpec spec = pieces_[i].program->input_spec();
      gradients_.push_back(i > first_ ? Tensor(spec.type, spec.shape) : Tensor());
    }
    const TensorSpec out = output_spec();
    output_ = Tensor(out.type, out.shape);
    statistics_.resize(static_cast<size_t>(buffers.size));
  }

  TensorSpec input_spec() const override { return pieces_.front().program->input_spec(); }
  TensorSpec output_spec() const override { return pieces_.back().program->output_spec(); }

  std::unique_ptr<Weights> new_weights() const override {
    auto weights = std::make_unique<RecomputingWeights>();
    for (const Piece& piece : pieces_) weights->pieces.push_back(piece.program->new_weights());
    return weights;
  }
  std::unique_ptr<Tape> new_tape() const override {
    auto tape = std::make_unique<RecomputingTape>();
    for (const Piece& piece : pieces_) {
      const TensorSpec spec = piece.program->input_spec();
      tape->inputs.emplace_back(spec.type, spec.shape);
    }
    return tape;
  }
  ProgramMemory memory() const override {
    ProgramMemory all{.work_space = output_.bytes() + (space_ ? space_->bytes() : 0)};
    for (const Piece& piece : pieces_) {
      all.weights += piece.program->memory().weights;
      const TensorSpec spec = piece.program->input_spec();
      const auto entering =
          static_cast<size_t>(element_count(spec.shape)) * element_size(spec.type);
      all.kept += entering;
    }
    for (const Tensor& gradient : gradients_) all.work_space += gradient.bytes();
    return all;
  }

  void load(Weights& weights, std::span<const float> parameters,
            std::span<const float> buffers) const override {
    for (size_t i = 0; i < pieces_.size(); ++i) {
      const Piece& piece = pieces_[i];
      piece.program->load(*static_cast<RecomputingWeights&>(weights).pieces[i],
                          part_of(parameters, piece.parameters), part_of(buffers, piece.buffers));
    }
  }

  void forward(const Weights& weights, Tape& tape, const ForwardInput& in,
               const ForwardOutput& out) const override {
    auto& kept = static_cast<RecomputingTape&>(tape);
    const std::scoped_lock lock(one_pass_);
    copy(in.input, kept.inputs.front());
    kept.slots.assign(in.slots.begin(), in.slots.end());
    kept.labels.assign(in.labels.begin(), in.labels.end());
    for (size_t i = 0; i < pieces_.size(); ++i) run_piece(weights, kept, i, out);
  }

  void backward(const Weights& weights, Tape& tape, ConstTensorView output_gradient,
                const BackwardOutput& out) const override {
    auto& kept = static_cast<RecomputingTape&>(tape);
    const std::scoped_lock lock(one_pass_);
    for (size_t i = 0; i < first_; ++i)
      std::ranges::fill(part_of(out.gradients, pieces_[i].parameters), 0.0f);
    for (size_t i = pieces_.size(); i-- > first_;) {
      const Piece& piece = pieces_[i];
      if (held_ != Held{&tape, i})
        run_piece(weights, kept, i, {output_.view(), std::span(statistics_)});
      const bool last = i + 1 == pieces_.size();
      BackwardOutput to{i > first_ ? gradients_[i].view() : out.input_gradient,
                        part_of(out.gradients, piece.parameters)};
      // What lies behind this piece is done.
      if (out.ready) to.ready = [&](int64_t first) { out.ready(piece.parameters.offset + first); };
      piece.program->backward(weights_of(weights, i), *piece.tape,
                              last ? output_gradient : std::as_const(gradients_[i + 1]).view(), to);
    }
    held_ = {};
  }

 private:
  struct Piece {
    std::unique_ptr<Program> program;
    std::unique_ptr<Tape> tape;  // in the memory that all share
    Range parameters, buffers;   // within the segment's
  };
  /// Whose forward pass the shared memory holds.
  struct Held {
    const Tape* tape = nullptr;
    size_t piece = 0;
    bool operator==(const Held&) const = default;
  };

  static const Weights& weights_of(const Weights& weights, size_t piece) {
    return *static_cast<const RecomputingWeights&>(weights).pieces[piece];
  }

  /// Forward through one piece, from what the tape keeps to the next piece's input or to `out`.
  void run_piece(const Weights& weights, RecomputingTape& tape, size_t i,
                 const ForwardOutput& out) const {
    const Piece& piece = pieces_[i];
    const bool last = i + 1 == pieces_.size();
    const ForwardInput in{std::as_const(tape.inputs[i]).view(),
                          static_cast<int64_t>(tape.slots.size()), tape.slots, tape.labels};
    piece.program->forward(
        weights_of(weights, i), *piece.tape, in,
        {last ? out.output : tape.inputs[i + 1].view(), part_of(out.statistics, piece.buffers)});
    held_ = {&tape, i};
  }

  const std::shared_ptr<WorkSpace> space_;
  std::vector<Piece> pieces_;
  size_t first_ = 0;  // piece with anything to do in a backward pass
  mutable std::mutex one_pass_;
  mutable Held held_;
  mutable std::vector<Tensor> gradients_;  // of what enters each piece behind that one
  mutable Tensor output_;                  // of what is computed again: not looked at
  mutable std::vector<float> statistics_;  // likewise
};

class RecomputingBackend final : public Backend {
 public:
  explicit RecomputingBackend(std::unique_ptr<Backend> backend) : backend_(std::move(backend)) {}
  std::string name() const override { return backend_->name(); }
  std::unique_ptr<Program> compile(const Graph& graph, const ProgramOptions& options,
                                   ThreadPool& threads) const override {
    if (options.mode == Mode::kInference) return backend_->compile(graph, options, threads);
    check_options(graph, options);
    return std::make_unique<RecomputingProgram>(*backend_, graph, options, threads);
  }

 private:
  const std::unique_ptr<Backend> backend_;
};

/// What a division of a segment takes, in elements of one sample, more or less.
class Divider {
 public:
  Divider(const Graph& graph, Segment segment) : begin_(segment.begin), end_(segment.end) {
    for (const Layer& layer : graph.layers())
      upto_.push_back(upto_.back() + element_count(layer.output));
    for (const Cut& cut : graph.cuts()) {
      if (cut.layers > begin_ && cut.layers < end_) cuts_.push_back(cut);
    }
  }

  /// Where a piece may begin or end, rising.
  std::vector<int> places() const {
    std::vector<int> all{begin_};
    for (const Cut& cut : cuts_) all.push_back(cut.layers);
    all.push_back(end_);
    return all;
  }
  /// A piece keeps what its layers give.
  int64_t kept(int begin, int end) const {
    return upto_[static_cast<size_t>(end)] - upto_[static_cast<size_t>(begin)];
  }

  struct Division {
    std::vector<int> cuts;
    int64_t entering = 0;  // the pieces but the first
    int64_t largest = 0;   // piece
  };
  /// For every bound that two places give, from two pieces to many; those alike once.
  std::vector<Division> divisions() const {
    const std::vector<int> all = places();
    std::set<int64_t, std::greater<>> bounds;
    for (size_t from = 0; from < all.size(); ++from)
      for (size_t to = from + 1; to < all.size(); ++to) bounds.insert(kept(all[from], all[to]));
    std::vector<Division> found;
    for (const int64_t most : bounds) {
      Division division = divide(most);
      if (division.cuts.empty()) continue;
      if (found.empty() || found.back().cuts != division.cuts) found.push_back(std::move(division));
    }
    return found;
  }

 private:
  /// As few pieces as go, from the front, where none is to keep more than `most`.
  Division divide(int64_t most) const {
    Division division;
    int begin = begin_;
    const auto close = [&](int end) {
      division.largest = std::max(division.largest, kept(begin, end));
      begin = end;
    };
    for (size_t i = 0; i < cuts_.size(); ++i) {
      const int next = i + 1 < cuts_.size() ? cuts_[i + 1].layers : end_;
      if (kept(begin, next) <= most) continue;
      close(cuts_[i].layers);
      division.cuts.push_back(begin);
      division.entering += element_count(cuts_[i].shape);
    }
    close(end_);
    return division;
  }

  const int begin_, end_;
  std::vector<int64_t> upto_{0};
  std::vector<Cut> cuts_;
};

}  // namespace

int recompute_begin(const Graph& graph, Segment segment) {
  if (graph.frozen_before(segment.end)) return segment.end;
  int begin = segment.begin;
  for (const Cut& cut : graph.cuts()) {
    if (cut.layers > begin && cut.layers < segment.end && graph.frozen_before(cut.layers))
      begin = cut.layers;
  }
  return begin;
}

std::vector<int> recompute_cuts(const Graph& graph, Segment segment, int in_flight) {
  const int begin = recompute_begin(graph, segment);
  if (begin == segment.end) return {};
  const Divider divider(graph, {begin, segment.end});
  std::vector<int> best;
  int64_t least = divider.kept(begin, segment.end);
  for (auto& division : divider.divisions()) {
    const int64_t takes = in_flight * division.entering + division.largest;
    if (takes >= least) continue;
    least = takes;
    best = std::move(division.cuts);
  }
  if (begin > segment.begin) best.insert(best.begin(), begin);
  return best;
}

std::vector<int> recompute_cuts(const Graph& graph, Segment segment) {
  const bool stem = segment.end < graph.size();
  return recompute_cuts(graph, segment, stem ? kStemsInFlight : 1);
}

std::vector<std::vector<int>> recompute_divisions(const Graph& graph, Segment segment) {
  std::vector<std::vector<int>> all;
  for (auto& division : Divider(graph, segment).divisions())
    all.push_back(std::move(division.cuts));
  return all;
}

std::unique_ptr<Backend> make_recomputing(std::unique_ptr<Backend> backend) {
  return std::make_unique<RecomputingBackend>(std::move(backend));
}

}  // namespace outrigger::nn
