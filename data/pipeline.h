#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/augment.h"
#include "data/decode.h"

namespace outrigger::data {

struct PipelineOptions {
  /// The shape of what comes out; channels 1 or 3.
  int height = 224;
  int width = 224;
  int channels = 3;
  /// Training's steps, in order.
  std::vector<AugmentStep> augment;
  uint64_t seed = 1;
  /// Evaluation resizes the shorter side to this before the centre crop; 0: just enough to cover
  /// height x width.
  int evaluation_resize = 0;
};

/// From the bytes of an encoded image to uint8 pixels {height, width, channels}, in integer
/// arithmetic from the DCT on: the same bytes, slot and options give the same pixels on every
/// machine and with every instruction set.
///
/// Neighbouring resizes, crops and flips are done as one resampling, and JPEGs are decoded only
/// where that looks, at 1/2, 1/4 or 1/8 of their size when it shrinks them that much. So damage
/// that lies below the part looked at may go unseen, the same way everywhere; a JPEG that does not
/// end with its end marker is always broken (NoImage). When the list leaves another size than
/// wanted, the image is resized to cover it and cut to its middle.
///
/// Constant after construction; threads share it, each with its own Scratch. The hot path takes no
/// memory of its own once the scratch has seen the largest image.
class Pipeline {
 public:
  /// What one thread needs to work; costly, so keep it.
  class Scratch {
   public:
    explicit Scratch(const DecodeLimits& limits = {});
    ~Scratch();
    Scratch(Scratch&&) noexcept;
    Scratch& operator=(Scratch&&) noexcept;

   private:
    friend class Pipeline;
    std::unique_ptr<pixels::Canvas> canvas_;
  };

  /// Throws InvalidInput that names the field whose value is not allowed.
  explicit Pipeline(PipelineOptions options);
  ~Pipeline();
  Pipeline(Pipeline&&) noexcept;
  Pipeline& operator=(Pipeline&&) noexcept;

  /// Bytes of one result: height * width * channels.
  size_t pixels_size() const;
  const PipelineOptions& options() const { return options_; }

  /// Decodes and augments for training; everything random comes from (seed, slot). `pixels` has
  /// pixels_size() bytes. Throws BrokenImage.
  void train(std::span<const std::byte> encoded, uint64_t slot, Scratch& scratch,
             std::span<std::byte> pixels) const;

  /// Decodes for evaluation: resize, centre crop, nothing random. Throws BrokenImage.
  void evaluate(std::span<const std::byte> encoded, Scratch& scratch,
                std::span<std::byte> pixels) const;

 private:
  struct Program;
  PipelineOptions options_;
  std::unique_ptr<const Program> program_;
};

}  // namespace outrigger::data
