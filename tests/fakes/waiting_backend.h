#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "nn/program.h"
#include "nn/reference/backend.h"

namespace outrigger::fakes {

/// Its forward passes wait for what a test says.
class WaitingProgram final : public nn::Program {
 public:
  WaitingProgram(std::unique_ptr<nn::Program> program, const std::function<void()>& wait)
      : program_(std::move(program)), wait_(wait) {}
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
    wait_();
    program_->forward(weights, tape, in, out);
  }
  void backward(const nn::Weights& weights, nn::Tape& tape, ConstTensorView gradient,
                const nn::BackwardOutput& out) const override {
    program_->backward(weights, tape, gradient, out);
  }

 private:
  const std::unique_ptr<nn::Program> program_;
  const std::function<void()>& wait_;
};

/// The reference backend with such programs.
class WaitingBackend final : public nn::Backend {
 public:
  explicit WaitingBackend(std::function<void()> wait) : wait_(std::move(wait)) {}
  std::string name() const override { return "waiting"; }
  std::unique_ptr<nn::Program> compile(const nn::Graph& graph, const nn::ProgramOptions& options,
                                       ThreadPool& threads) const override {
    return std::make_unique<WaitingProgram>(backend_->compile(graph, options, threads), wait_);
  }

 private:
  const std::unique_ptr<nn::Backend> backend_ = nn::make_reference_backend();
  const std::function<void()> wait_;
};

}  // namespace outrigger::fakes
