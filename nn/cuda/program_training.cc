#include <algorithm>

#include "common/error.h"
#include "nn/cuda/program.h"
#include "nn/cuda/tape.h"

/// Passes whose loss and gradients stay on the device.
namespace outrigger::nn::cuda {

bool CudaProgram::takes(const ForwardInput& part) const {
  const ElementType type = part.input.type;
  if (part.scales.empty()) return type == input_spec_.type;
  return options_.segment.begin > 0 &&
         (type == ElementType::kInt8 || type == ElementType::kUint8) &&
         part.scales.size() == static_cast<size_t>(input_spec_.shape.back());
}

void CudaProgram::stage(const ResidentPass& pass, std::span<const ForwardInput> parts) const {
  ensure(options_.mode == Mode::kTraining && ends_graph_, "a program that trains ends the graph");
  const int64_t classes = output_spec_.shape.back();
  for (const ForwardInput& part : parts) {
    ensure(takes(part), "the input has the program's type, or scales");
    ensure(std::ranges::all_of(part.labels, [&](int32_t l) { return l >= 0 && l < classes; }),
           "a label is one of the classes");
  }
  if (plan_.backward.empty())
    throw InvalidInput("nothing of the model trains: freeze fewer layers");
  auto& tape = static_cast<CudaTape&>(pass.tape);
  const auto lock = engine_->enter();
  if (!shares_space_ && tape.ring == nullptr)
    tape.ring = std::make_unique<InputRing>(engine_, input_spec_);
  InputRing& ring = shares_space_ ? space_->ring(input_spec_) : *tape.ring;
  ring.put(parts);
}

InputRing& CudaProgram::ring_of(CudaTape& tape) const {
  if (shares_space_) return space_->ring();
  ensure(tape.ring != nullptr, "an input is staged before it is trained on");
  return *tape.ring;
}

void CudaProgram::run_piece(Run run, const Piece& piece, const Sums& sums) const {
  if (piece.forward) {
    run_forward(run, 1, steps());
    engine_->clear(gradients(), parameter_bytes_);
    return;
  }
  run_backward(run, piece.first, piece.last);
  for (size_t i = piece.first_bucket; i < piece.last_bucket; ++i)
    finish_bucket(buckets_[i].range, &sums);
}

void CudaProgram::begin_sum(const Kernels& kernels, const Sums& sums, int64_t first,
                            int64_t count) {
  float* gradients = sums.gradients + first;
  if (sums.rounded == nullptr) {
    sums.ranks->begin_sum({Stored::kFloat32, gradients}, static_cast<size_t>(count));
    return;
  }
  const Array rounded{Stored::kBFloat16, static_cast<uint16_t*>(sums.rounded) + first};
  kernels.convert(Array{Stored::kFloat32, gradients}, rounded, static_cast<uint32_t>(count), false);
  sums.ranks->begin_sum(rounded, static_cast<size_t>(count));
}

void CudaProgram::run_pieces(const Run& run, Tape& tape, const Sums& sums,
                             Instant& forward_done) const {
  auto& mine = static_cast<CudaTape&>(tape);
  const RecordedWith now{run.weights, sums.gradients, sums.loss_scale, run.loss->smoothing,
                         space_->moves()};
  if (mine.recorded_with != now) mine.recordings.clear();
  mine.recorded_with = now;
  if (mine.has_run && mine.recordings.empty()) {
    for (const Piece& piece : pieces_)
      mine.recordings.push_back(engine_->record([&] { run_piece(run, piece, sums); }));
  }
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const NamedRange range(*engine_, pieces_[i].forward ? "forward" : "backward");
    if (mine.recordings.empty()) {
      run_piece(run, pieces_[i], sums);
    } else {
      mine.recordings[i]->run();
    }
    if (pieces_[i].forward) forward_done.set();
    if (sums.ranks == nullptr) continue;
    for (size_t b = pieces_[i].first_bucket; b < pieces_[i].last_bucket; ++b)
      begin_sum(engine_->kernels(), sums, buckets_[b].range.offset, buckets_[b].range.size);
  }
  mine.has_run = true;
}

void CudaProgram::make_told(Told& told) const {
  const size_t gradient_bytes = options_.input_gradient ? input_bytes() : 0;
  if (told.memory.bytes() < told_bytes_ + gradient_bytes)
    told.memory = PinnedMemory(engine_, told_bytes_ + gradient_bytes, "what a pass tells");
  if (told.there != nullptr) return;
  told.there = engine_->make_mark();
  for (auto* instant : {&told.begun, &told.input_there, &told.forward_done, &told.done})
    *instant = engine_->make_instant();
}

void CudaProgram::add_times(const Told& told, ResidentTimes& times) {
  times.input += told.input_there->seconds_since(*told.begun);
  times.forward += told.forward_done->seconds_since(*told.input_there);
  times.backward += told.done->seconds_since(*told.forward_done);
}

void CudaProgram::train(const ResidentPass& pass, float smoothing, const Sums& sums,
                        Told& told) const {
  auto& tape = static_cast<CudaTape&>(pass.tape);
  InputRing& ring = ring_of(tape);
  const auto lock = engine_->enter();
  make_told(told);
  const LossPass loss{smoothing, told_floats()};
  told.begun->set();
  const InputRing::Input input = ring.take();
  told.input_there->set();
  ring.unpack();
  engine_->copy(tape.slots.data(), input.slots, tape.slots.bytes());
  engine_->copy(tape.labels.data(), input.labels, tape.labels.bytes());
  tape.labelled = true;
  Run run = make_run(pass.weights, tape);
  run.loss = &loss;
  run.loss_scale = sums.loss_scale;
  run.input = input.input;
  run.count = options_.batch;
  recalled_ = nullptr;  // backward follows at once
  plan_.steps.front()->forward(run);
  ring.release();
  run_pieces(run, tape, sums, *told.forward_done);
  if (options_.input_gradient) {
    run.pinned_gradient = told.memory.data() + told_bytes_;
    run_backward(run, plan_.backward.size() - 1, plan_.backward.size());
  }
  engine_->download_pinned(told.memory.data(), told_floats(), told_bytes_);
  told.done->set();
  told.there->set(Queue::kWork);
}

LossResult CudaProgram::read(const Told& told, std::span<float> statistics,
                             const TensorView& input_gradient) const {
  const auto lock = engine_->enter();
  told.there->wait();
  const auto* floats = reinterpret_cast<const float*>(told.memory.data());
  LossResult loss;
  for (int64_t i = 0; i < options_.batch; ++i) {
    loss.loss_sum += static_cast<double>(floats[2 * i]);
    loss.correct += floats[2 * i + 1] != 0 ? 1 : 0;
  }
  copy_measured(floats + 2 * options_.batch, statistics, graph_row_);
  if (input_gradient.data != nullptr) {
    ensure(options_.input_gradient && input_gradient.bytes() == input_bytes(),
           "a gradient of the input was asked for, in its size");
    std::copy_n(told.memory.data() + told_bytes_, input_bytes(), input_gradient.data);
  }
  return loss;
}

void CudaProgram::backward_into(const ResidentPass& pass, const ConstTensorView& output_gradient,
                                const Sums& sums) const {
  ensure(options_.mode == Mode::kTraining, "only a training program has a backward pass");
  ensure(output_gradient.type == output_spec_.type, "the gradient has the output's type");
  const auto lock = engine_->enter();
  Run run = make_run(pass.weights, pass.tape);
  run.output_gradient = output_gradient.data;
  run.loss_scale = sums.loss_scale;
  engine_->clear(gradients(), parameter_bytes_);
  recall(run, pass.tape);
  run_backward(run, 0, plan_.backward.size());
  for (const GradientBucket& bucket : buckets_) finish_bucket(bucket.range, &sums);
  engine_->synchronize();
}

}  // namespace outrigger::nn::cuda
