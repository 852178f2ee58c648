#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "nn/program.h"
#include "nn/reference/backend.h"
#include "tests/fakes/wrapped_program.h"

namespace outrigger::fakes {

/// Its forward passes wait for what a test says.
class WaitingProgram final : public WrappedProgram {
 public:
  WaitingProgram(std::unique_ptr<nn::Program> program, const std::function<void()>& wait)
      : WrappedProgram(std::move(program)), wait_(wait) {}
  void forward(const nn::Weights& weights, nn::Tape& tape, const nn::ForwardInput& in,
               const nn::ForwardOutput& out) const override {
    wait_();
    WrappedProgram::forward(weights, tape, in, out);
  }

 private:
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
