#include "nn/cpu/synthetic.h"

#include "common/random.h"
#include "nn/models.h"

namespace outrigger::nn::cpu {
namespace {

void fill(RandomStream& random, Tensor& tensor) {
  if (tensor.type() == ElementType::kUint8) {
    for (uint8_t& value : tensor.as<uint8_t>()) value = static_cast<uint8_t>(random.below(256));
  } else if (tensor.type() == ElementType::kBFloat16) {
    for (uint16_t& value : tensor.as<uint16_t>()) value = to_bfloat16(2 * random.uniform() - 1);
  } else {
    for (float& value : tensor.as<float>()) value = 2 * random.uniform() - 1;
  }
}

}  // namespace

SyntheticPass::SyntheticPass(const Graph& graph, const ProgramOptions& options,
                             const Program& program, uint64_t seed)
    : program_(program),
      training_(options.mode == Mode::kTraining),
      input_(program.input_spec().type, program.input_spec().shape),
      output_(program.output_spec().type, program.output_spec().shape),
      output_gradient_(program.output_spec().type, program.output_spec().shape),
      gradients_(static_cast<size_t>(graph.parameter_range(options.segment).size)),
      statistics_(static_cast<size_t>(graph.buffer_range(options.segment).size)),
      weights_(program.new_weights()),
      tape_(program.new_tape()) {
  std::vector<float> parameters(gradients_.size());
  std::vector<float> buffers(statistics_.size());
  initialize(graph, options.segment, seed, parameters, buffers);
  program.load(*weights_, parameters, buffers);
  RandomStream random(seed, RandomUse::kSyntheticData, 0);
  fill(random, input_);
  fill(random, output_gradient_);
  if (options.input_gradient)
    input_gradient_ = Tensor(program.input_spec().type, program.input_spec().shape);
  const auto classes = static_cast<uint32_t>(program.output_spec().shape.back());
  for (int64_t i = 0; i < options.batch; ++i) {
    slots_.push_back(random.next_u64());
    labels_.push_back(static_cast<int32_t>(random.below(classes)));
  }
}

void SyntheticPass::run() {
  program_.forward(*weights_, *tape_,
                   {input_.view(), static_cast<int64_t>(slots_.size()), slots_, labels_},
                   {output_.view(), statistics_});
  if (!training_) return;
  const TensorView input_gradient = input_gradient_.empty() ? TensorView{} : input_gradient_.view();
  program_.backward(*weights_, *tape_, output_gradient_.view(), {input_gradient, gradients_});
}

}  // namespace outrigger::nn::cpu
