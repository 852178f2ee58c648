#include "cli/image_runner.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "common/error.h"
#include "common/thread_pool.h"
#include "data/pipeline.h"
#include "data/sample_reader.h"
#include "nn/cpu/backend.h"
#include "nn/program.h"

namespace outrigger::cli {
namespace {

/// One part of the network, compiled for inference, with its weights.
class Part {
 public:
  Part(const nn::Backend& backend, const TrainedModel& model, nn::Segment segment, int64_t batch,
       ThreadPool& threads)
      : program_(backend.compile(model.graph,
                                 {.segment = segment, .batch = batch, .mode = nn::Mode::kInference},
                                 threads)),
        weights_(program_->new_weights()),
        tape_(program_->new_tape()),
        output_(program_->output_spec().type, program_->output_spec().shape) {
    program_->load(*weights_,
                   nn::part_of(std::span(model.parameters), model.graph.parameter_range(segment)),
                   nn::part_of(std::span(model.buffers), model.graph.buffer_range(segment)));
  }

  nn::TensorSpec input_spec() const { return program_->input_spec(); }
  int64_t width() const { return element_count(output_.shape()) / output_.shape().front(); }

  ConstTensorView run(const ConstTensorView& input, int64_t count) {
    program_->forward(*weights_, *tape_,
                      {.input = input, .count = count, .slots = {}, .labels = {}},
                      {.output = output_.view(), .statistics = {}});
    return std::as_const(output_).view();
  }

 private:
  std::unique_ptr<nn::Program> program_;
  std::unique_ptr<nn::Weights> weights_;
  std::unique_ptr<nn::Tape> tape_;
  Tensor output_;
};

/// Decodes images on all threads, each with what it needs to work kept from batch to batch.
class Decoder {
 public:
  Decoder(const nn::ModelOptions& model, const std::filesystem::path& root, ThreadPool& threads)
      : pipeline_({.height = static_cast<int>(model.height),
                   .width = static_cast<int>(model.width),
                   .channels = static_cast<int>(model.channels),
                   .augment = {}}),
        threads_(threads) {
    for (int i = 0; i < threads.size(); ++i) hands_.push_back(std::make_unique<Hand>(root));
  }

  size_t pixels_size() const { return pipeline_.pixels_size(); }

  /// Image i of `images` to the i-th place of `pixels`; `failures[i]` says why it could not be.
  void decode(std::span<const data::Sample> images, std::span<std::byte> pixels,
              std::vector<std::optional<std::string>>& failures) const {
    failures.assign(images.size(), std::nullopt);
    const size_t hands = hands_.size();
    threads_.parallel_for(static_cast<int>(hands), [&](int index) {
      Hand& hand = *hands_[static_cast<size_t>(index)];
      for (size_t i = static_cast<size_t>(index); i < images.size(); i += hands) {
        try {
          pipeline_.evaluate(hand.reader.read(images[i]), hand.scratch,
                             pixels.subspan(i * pixels_size(), pixels_size()));
        } catch (const InvalidInput& error) {
          failures[i] = images[i].path + ": " + error.what();
        }
      }
    });
  }

 private:
  struct Hand {
    explicit Hand(const std::filesystem::path& root) : reader(root) {}
    data::SampleReader reader;
    data::Pipeline::Scratch scratch;
  };
  data::Pipeline pipeline_;
  ThreadPool& threads_;
  std::vector<std::unique_ptr<Hand>> hands_;
};

void append_rows(const ConstTensorView& rows, int64_t count, int64_t width,
                 std::vector<float>& to) {
  const auto values = rows.as<float>().first(static_cast<size_t>(count * width));
  to.insert(to.end(), values.begin(), values.end());
}

void append_classes(const ConstTensorView& logits, int64_t count, int64_t width,
                    std::vector<int32_t>& to) {
  const auto classes = static_cast<size_t>(width);
  for (size_t row = 0; row < static_cast<size_t>(count); ++row) {
    const auto values = logits.as<float>().subspan(row * classes, classes);
    to.push_back(static_cast<int32_t>(std::ranges::max_element(values) - values.begin()));
  }
}

/// Moves the decoded images together, so that a batch has no holes; notes which they are.
int64_t close_ranks(std::span<std::byte> pixels, size_t size, size_t first,
                    const std::vector<std::optional<std::string>>& failures,
                    ImageOutputs& outputs) {
  int64_t rows = 0;
  for (size_t i = 0; i < failures.size(); ++i) {
    if (failures[i]) {
      outputs.broken.push_back(*failures[i]);
      continue;
    }
    const auto source = pixels.subspan(i * size, size);
    std::copy(source.begin(), source.end(),
              pixels.begin() + static_cast<ptrdiff_t>(rows) * static_cast<ptrdiff_t>(size));
    outputs.images.push_back(first + i);
    ++rows;
  }
  return rows;
}

}  // namespace

ImageOutputs run_images(const TrainedModel& model, const std::filesystem::path& root,
                        const std::vector<data::Sample>& images, const RunOptions& options) {
  ThreadPool threads(options.threads);
  const auto backend = nn::cpu::make_cpu_backend();
  const int split = model.graph.embedding_layer() + 1;
  Part body(*backend, model, {0, split}, options.batch, threads);
  std::optional<Part> head;
  if (options.classify && model.has_head())
    head.emplace(*backend, model, nn::Segment{split, model.graph.size()}, options.batch, threads);

  const Decoder decoder(model.card.model, root, threads);
  Tensor pixels(body.input_spec().type, body.input_spec().shape);
  ImageOutputs outputs{
      .embeddings = {}, .features = body.width(), .named = {}, .images = {}, .broken = {}};
  std::vector<std::optional<std::string>> failures;
  for (size_t first = 0; first < images.size(); first += static_cast<size_t>(options.batch)) {
    const size_t count = std::min(static_cast<size_t>(options.batch), images.size() - first);
    decoder.decode(std::span(images).subspan(first, count), pixels.as<std::byte>(), failures);
    const int64_t rows =
        close_ranks(pixels.as<std::byte>(), decoder.pixels_size(), first, failures, outputs);
    if (rows > 0) {
      const ConstTensorView embeddings = body.run(std::as_const(pixels).view(), rows);
      append_rows(embeddings, rows, outputs.features, outputs.embeddings);
      if (head) append_classes(head->run(embeddings, rows), rows, head->width(), outputs.named);
    }
    if (options.progress) options.progress(first + count);
  }
  return outputs;
}

}  // namespace outrigger::cli
