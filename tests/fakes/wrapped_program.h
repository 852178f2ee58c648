#pragma once

#include <memory>
#include <span>
#include <utility>

#include "nn/program.h"

namespace outrigger::fakes {

/// Does what another program does; a test changes one thing of it.
class WrappedProgram : public nn::Program {
 public:
  explicit WrappedProgram(std::unique_ptr<nn::Program> program) : program_(std::move(program)) {}
  nn::TensorSpec input_spec() const override { return program_->input_spec(); }
  nn::TensorSpec output_spec() const override { return program_->output_spec(); }
  std::unique_ptr<nn::Weights> new_weights() const override { return program_->new_weights(); }
  std::unique_ptr<nn::Tape> new_tape() const override { return program_->new_tape(); }
  void load(nn::Weights& weights, std::span<const float> parameters,
            std::span<const float> buffers) const override {
    program_->load(weights, parameters, buffers);
  }
  void forward(const nn::Weights& weights, nn::Tape& tape, const nn::ForwardInput& in,
               const nn::ForwardOutput& out) const override {
    program_->forward(weights, tape, in, out);
  }
  void backward(const nn::Weights& weights, nn::Tape& tape, ConstTensorView output_gradient,
                const nn::BackwardOutput& out) const override {
    program_->backward(weights, tape, std::move(output_gradient), out);
  }

 private:
  const std::unique_ptr<nn::Program> program_;
};

}  // namespace outrigger::fakes
