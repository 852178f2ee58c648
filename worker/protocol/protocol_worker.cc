#include <algorithm>
#include <cmath>
#include <utility>

#include "worker/protocol/protocol.h"
#include "worker/protocol/protocol_fields.h"

/// Messages from a worker to the server, and the two that open a link.
namespace outrigger::worker {
namespace {

using transport::Frame;
using transport::ReceivedFrame;

Frame encode(const feed::Pull& pull, const WireContext&) {
  ByteWriter writer;
  writer.number(pull.leases);
  return frame_of(FrameType::kPull, writer);
}

void write_layers(ByteWriter& writer, const std::vector<LayerSeconds>& layers) {
  writer.number(static_cast<uint32_t>(layers.size()));
  for (const LayerSeconds& layer : layers) {
    writer.number(layer.forward);
    writer.number(layer.backward);
  }
}

void write_times(ByteWriter& writer, const feed::WorkTimes& times) {
  writer.number(times.cut);
  for (const float value : {times.decode, times.read, times.forward, times.backward,
                            times.decoded_ago, times.bytes_per_second})
    writer.number(value);
  write_layers(writer, times.layers);
}

void write_values(ByteWriter& writer, const std::vector<float>& values) {
  writer.blob(std::as_bytes(std::span(values)));
}

std::vector<float> read_values(ByteReader& reader) {
  const auto bytes = reader.blob();
  if (bytes.size() % sizeof(float) != 0)
    throw InvalidInput("the values of a message are cut short");
  std::vector<float> values(bytes.size() / sizeof(float));
  std::ranges::copy(bytes, std::as_writable_bytes(std::span(values)).begin());
  return values;
}

Frame encode(const feed::Scores& scores, const WireContext&) {
  ByteWriter writer;
  write(writer, scores.key);
  write_times(writer, scores.times);
  write_values(writer, scores.values);
  return frame_of(FrameType::kScores, writer);
}

Frame encode(const feed::MicroBatch& batch, const WireContext&) {
  ByteWriter writer;
  Frame frame{static_cast<uint16_t>(FrameType::kMicroBatch), {}, {}, transport::Lane::kData};
  write(writer, batch.key);
  writer.number(batch.wire);
  writer.number(batch.pixel_hash);
  write_values(writer, batch.statistics);
  write_times(writer, batch.times);
  add_tensor(frame, writer, batch.tensor, batch.wire, std::nullopt);
  frame.message = writer.take();
  return frame;
}

float read_measured(ByteReader& reader) {
  const auto value = reader.number<float>();
  if (!std::isfinite(value) || value < 0) throw InvalidInput("a time or rate in a message is none");
  return value;
}

std::vector<LayerSeconds> read_layers(ByteReader& reader) {
  std::vector<LayerSeconds> layers(reader.count(sizeof(LayerSeconds)));
  for (LayerSeconds& layer : layers) {
    layer.forward = read_measured(reader);
    layer.backward = read_measured(reader);
  }
  return layers;
}

feed::WorkTimes read_times(ByteReader& reader) {
  feed::WorkTimes times;
  times.cut = reader.number<int32_t>();
  for (float* value : {&times.decode, &times.read, &times.forward, &times.backward,
                       &times.decoded_ago, &times.bytes_per_second})
    *value = read_measured(reader);
  times.layers = read_layers(reader);
  return times;
}

feed::MicroBatch read_micro_batch(ByteReader& reader, const ReceivedFrame& frame,
                                  const WireContext& context) {
  feed::MicroBatch batch;
  batch.key = read_key(reader);
  batch.wire = read_enum(reader, WireFormat::kInt8);
  batch.pixel_hash = reader.number<uint64_t>();
  batch.statistics = read_values(reader);
  batch.times = read_times(reader);
  read_activations(reader, only_payload(frame), context, batch);
  return batch;
}

Frame encode(const feed::StemGradient& gradient, const WireContext&) {
  ByteWriter writer;
  Frame frame{static_cast<uint16_t>(FrameType::kStemGradient), {}, {}, transport::Lane::kData};
  write(writer, gradient.key);
  write_times(writer, gradient.times);
  add_floats(frame, writer, gradient.gradients, gradient.gradients->size());
  frame.message = writer.take();
  return frame;
}

Frame encode(const feed::Broken& broken, const WireContext&) {
  ByteWriter writer;
  write(writer, broken.key);
  writer.number(static_cast<uint32_t>(broken.items.size()));
  for (const auto& item : broken.items) {
    writer.number(item.position);
    writer.text(item.reason);
    writer.number(static_cast<uint8_t>(item.always));
  }
  return frame_of(FrameType::kBroken, writer);
}

feed::Broken read_broken(ByteReader& reader) {
  feed::Broken broken{read_key(reader), {}};
  const uint32_t items = reader.count(9);
  for (uint32_t i = 0; i < items; ++i) {
    feed::Broken::Item item;
    item.position = reader.number<uint32_t>();
    item.reason = reader.text();
    item.always = read_flag(reader);
    broken.items.push_back(std::move(item));
  }
  return broken;
}

Frame encode(const feed::ReadFailed& failed, const WireContext&) {
  ByteWriter writer;
  write(writer, failed.key);
  writer.text(failed.reason);
  return frame_of(FrameType::kReadFailed, writer);
}

Frame encode(const feed::Leaving&, const WireContext&) {
  ByteWriter writer;
  return frame_of(FrameType::kLeaving, writer);
}

feed::WorkerMessage worker_fields(ByteReader& reader, const ReceivedFrame& frame,
                                  const WireContext& context) {
  const auto type = static_cast<FrameType>(frame.type);
  if (type != FrameType::kMicroBatch && type != FrameType::kStemGradient) expect_no_payload(frame);
  switch (type) {
    case FrameType::kPull:
      return feed::Pull{reader.number<uint32_t>()};
    case FrameType::kMicroBatch:
      return read_micro_batch(reader, frame, context);
    case FrameType::kStemGradient: {
      const auto key = read_key(reader);
      const auto times = read_times(reader);
      return feed::StemGradient{key, read_floats(reader, only_payload(frame)), times};
    }
    case FrameType::kBroken:
      return read_broken(reader);
    case FrameType::kReadFailed: {
      const auto key = read_key(reader);
      return feed::ReadFailed{key, reader.text()};
    }
    case FrameType::kLeaving:
      return feed::Leaving{};
    case FrameType::kScores: {
      const auto key = read_key(reader);
      const auto times = read_times(reader);
      return feed::Scores{key, read_values(reader), times};
    }
    default:
      throw InvalidInput("frame of type " + std::to_string(frame.type) +
                         " is nothing that a worker sends");
  }
}

void expect_type(const ReceivedFrame& frame, FrameType type) {
  if (frame.type != static_cast<uint16_t>(type)) {
    throw InvalidInput("frame of type " + std::to_string(frame.type) + " where type " +
                       std::to_string(static_cast<int>(type)) + " opens the link");
  }
  expect_no_payload(frame);
}

}  // namespace

Frame to_frame(const feed::WorkerMessage& message, const WireContext& context) {
  return std::visit([&](const auto& one) { return encode(one, context); }, message);
}

feed::WorkerMessage read_worker_message(const ReceivedFrame& frame, const WireContext& context) {
  ByteReader reader(frame.message);
  auto message = worker_fields(reader, frame, context);
  reader.expect_end();
  return message;
}

Frame to_frame(const Setup& setup) {
  ByteWriter writer;
  writer.text(setup.job);
  writer.number(setup.classes);
  writer.number(setup.incarnation);
  writer.number(setup.deepest_cut);
  writer.number(static_cast<uint8_t>(setup.only_timed));
  writer.text(setup.instruction_set);
  writer.number(static_cast<uint32_t>(setup.probe.size()));
  for (const auto& sample : setup.probe) write(writer, sample);
  return frame_of(FrameType::kSetup, writer);
}

Setup read_setup(const ReceivedFrame& frame) {
  expect_type(frame, FrameType::kSetup);
  ByteReader reader(frame.message);
  Setup setup;
  setup.job = reader.text();
  setup.classes = reader.number<uint32_t>();
  setup.incarnation = reader.number<uint32_t>();
  setup.deepest_cut = reader.number<int32_t>();
  setup.only_timed = read_flag(reader);
  setup.instruction_set = reader.text();
  const uint32_t probes = reader.count(kLeastSampleBytes);
  for (uint32_t i = 0; i < probes; ++i) setup.probe.push_back(read_sample(reader));
  reader.expect_end();
  return setup;
}

Frame to_frame(const Hello& hello) {
  ByteWriter writer;
  writer.text(hello.name);
  writer.text(hello.version);
  writer.number(hello.cores);
  writer.raw(hello.probe.data(), hello.probe.size());
  writer.text(hello.problem);
  writer.text(hello.numerics);
  writer.number(hello.memory);
  writer.number(hello.pass_seconds);
  write_layers(writer, hello.layers);
  return frame_of(FrameType::kHello, writer);
}

Hello read_hello(const ReceivedFrame& frame) {
  expect_type(frame, FrameType::kHello);
  ByteReader reader(frame.message);
  Hello hello;
  hello.name = reader.text();
  hello.version = reader.text();
  hello.cores = reader.number<uint32_t>();
  std::ranges::copy(reader.raw(hello.probe.size()), hello.probe.begin());
  hello.problem = reader.text();
  hello.numerics = reader.text();
  hello.memory = reader.number<uint64_t>();
  hello.pass_seconds = read_measured(reader);
  hello.layers = read_layers(reader);
  reader.expect_end();
  return hello;
}

}  // namespace outrigger::worker
