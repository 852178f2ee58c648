#include "nn/cpu/own_convolution.h"

#include "nn/cpu/grouped_convolution.h"
#include "nn/cpu/narrow_convolution.h"
#include "nn/cpu/winograd.h"

namespace outrigger::nn::cpu {

std::unique_ptr<const OwnConvolution> make_own_convolution(const ConvolutionShape& shape,
                                                           ConvolutionPass pass) {
  if (is_grouped(shape)) return std::make_unique<GroupedConvolution>(shape, pass);
  if (is_winograd(shape)) return std::make_unique<WinogradConvolution>(shape, pass);
  if (!is_narrow(shape)) return nullptr;
  if (pass == ConvolutionPass::kForward) return std::make_unique<NarrowForward>(shape);
  return std::make_unique<NarrowBackwardData>(shape);
}

std::unique_ptr<const OwnWeightGradient> make_own_weight_gradient(const ConvolutionShape& shape,
                                                                  int64_t samples) {
  if (is_grouped(shape)) return std::make_unique<GroupedWeightGradient>(shape, samples);
  if (is_winograd(shape)) return std::make_unique<WinogradWeightGradient>(shape, samples);
  if (is_narrow(shape)) return std::make_unique<NarrowWeightGradient>(shape, samples);
  return nullptr;
}

}  // namespace outrigger::nn::cpu
