#include "data/pipeline.h"

#include <string>

#include "common/error.h"
#include "common/random.h"
#include "data/pixels/canvas.h"
#include "data/pixels/steps.h"

namespace outrigger::data {
namespace {

constexpr int kMaxSide = 1 << 15;

void check_side(const char* name, int value, int least) {
  if (value >= least && value <= kMaxSide) return;
  throw InvalidInput(std::string(name) + " is " + std::to_string(value) + "; allowed is " +
                     std::to_string(least) + " to " + std::to_string(kMaxSide));
}

/// Brings the view to the wanted shape and writes its pixels.
void finish(pixels::Canvas& canvas, const PipelineOptions& options, std::span<std::byte> out) {
  pixels::View& view = canvas.view();
  if (view.width() != options.width || view.height() != options.height) {
    view.cover(options.width, options.height);
    view.crop_middle(options.width, options.height);
  }
  pixels::pack(canvas.pixels(), reinterpret_cast<uint8_t*>(out.data()));
}

}  // namespace

struct Pipeline::Program {
  std::vector<std::unique_ptr<const pixels::Step>> steps;
};

Pipeline::Scratch::Scratch(const DecodeLimits& limits)
    : canvas_(std::make_unique<pixels::Canvas>(limits)) {}
Pipeline::Scratch::~Scratch() = default;
Pipeline::Scratch::Scratch(Scratch&&) noexcept = default;
Pipeline::Scratch& Pipeline::Scratch::operator=(Scratch&&) noexcept = default;

Pipeline::Pipeline(PipelineOptions options) : options_(std::move(options)) {
  check_side("image.height", options_.height, 1);
  check_side("image.width", options_.width, 1);
  check_side("evaluation resize", options_.evaluation_resize, 0);
  if (options_.channels != 1 && options_.channels != 3) {
    throw InvalidInput("image.channels is " + std::to_string(options_.channels) +
                       "; allowed is 1 or 3");
  }
  auto program = std::make_unique<Program>();
  for (const AugmentStep& step : options_.augment) {
    program->steps.push_back(pixels::make_step(step, {options_.height, options_.width}));
  }
  program_ = std::move(program);
}

Pipeline::~Pipeline() = default;
Pipeline::Pipeline(Pipeline&&) noexcept = default;
Pipeline& Pipeline::operator=(Pipeline&&) noexcept = default;

size_t Pipeline::pixels_size() const {
  return static_cast<size_t>(options_.height) * static_cast<size_t>(options_.width) *
         static_cast<size_t>(options_.channels);
}

void Pipeline::train(std::span<const std::byte> encoded, uint64_t slot, Scratch& scratch,
                     std::span<std::byte> pixels) const {
  ensure(pixels.size() == pixels_size(), "room for the pixels of one image");
  pixels::Canvas& canvas = *scratch.canvas_;
  canvas.load(encoded, options_.channels == 1 ? 1 : 4);
  uint32_t index = 0;
  for (const auto& step : program_->steps) {
    RandomStream random(options_.seed, RandomUse::kAugmentation, slot, index++);
    step->apply(canvas, random);
  }
  finish(canvas, options_, pixels);
}

void Pipeline::evaluate(std::span<const std::byte> encoded, Scratch& scratch,
                        std::span<std::byte> pixels) const {
  ensure(pixels.size() == pixels_size(), "room for the pixels of one image");
  pixels::Canvas& canvas = *scratch.canvas_;
  canvas.load(encoded, options_.channels == 1 ? 1 : 4);
  if (options_.evaluation_resize > 0) {
    canvas.view().resize_shorter(options_.evaluation_resize);
    canvas.view().crop_middle(options_.width, options_.height);
  }
  finish(canvas, options_, pixels);
}

}  // namespace outrigger::data
