#include "worker/fingerprint.h"

#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "common/bytes.h"
#include "common/hash.h"
#include "common/random.h"
#include "common/tensor.h"
#include "nn/models.h"

namespace outrigger::worker {
namespace {

constexpr uint64_t kSeed = 20;

void append(Bytes& all, std::span<const std::byte> more) { all.insert(all.end(), more.begin(), more.end()); }

Tensor made_up(const nn::TensorSpec& spec) {
  Tensor tensor(spec.type, spec.shape);
  RandomStream random(kSeed, RandomUse::kSyntheticData, static_cast<uint64_t>(spec.type));
  const auto count = static_cast<size_t>(element_count(spec.shape));
  for (size_t i = 0; i < count; ++i) {
    const float value = random.uniform() - 0.5f;
    switch (spec.type) {
      case ElementType::kUint8:
        tensor.as<uint8_t>()[i] = static_cast<uint8_t>(random.next_u32() & 255u);
        break;
      case ElementType::kBFloat16:
        tensor.as<uint16_t>()[i] = to_bfloat16(value);
        break;
      default:
        tensor.as<float>()[i] = value;
    }
  }
  return tensor;
}

}  // namespace

std::string numerics_fingerprint(const nn::Graph& graph, const nn::Backend& backend, nn::ProgramOptions options,
                                 int32_t cut, ThreadPool& threads) {
  if (cut == 0) return {};
  options.segment = {0, graph.cut_at(cut).layers};
  options.mode = nn::Mode::kTraining;
  options.input_gradient = false;
  const auto program = backend.compile(graph, options, threads);
  std::vector<float> parameters(static_cast<size_t>(graph.parameter_count()));
  std::vector<float> buffers(static_cast<size_t>(graph.buffer_count()));
  nn::initialize(graph, kSeed, parameters, buffers);
  const auto count = static_cast<size_t>(graph.parameter_range(options.segment).size);
  const auto buffer_count = static_cast<size_t>(graph.buffer_range(options.segment).size);
  const auto weights = program->new_weights();
  program->load(*weights, std::span(parameters).first(count), std::span(buffers).first(buffer_count));

  const Tensor input = made_up(program->input_spec());
  const Tensor gradient = made_up(program->output_spec());
  Tensor output(program->output_spec().type, program->output_spec().shape);
  std::vector<float> statistics(buffer_count);
  std::vector<float> gradients(count);
  std::vector<uint64_t> slots(static_cast<size_t>(options.batch));
  std::iota(slots.begin(), slots.end(), uint64_t{0});
  const std::vector<int32_t> labels(slots.size(), 0);
  const auto tape = program->new_tape();
  program->forward(*weights, *tape, {input.view(), options.batch, slots, labels}, {output.view(), statistics});
  program->backward(*weights, *tape, gradient.view(), {{}, gradients});

  Bytes all;
  append(all, std::as_const(output).view().raw());
  append(all, std::as_bytes(std::span(statistics)));
  append(all, std::as_bytes(std::span(gradients)));
  return to_hex(sha256(all));
}

}  // namespace outrigger::worker
