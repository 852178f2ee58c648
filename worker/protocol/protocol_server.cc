#include <utility>

#include "worker/protocol/protocol.h"
#include "worker/protocol/protocol_fields.h"

/// Messages from the server to a worker.
namespace outrigger::worker {
namespace {

using transport::Frame;
using transport::ReceivedFrame;
using transport::StochasticRounding;

StochasticRounding rounding_of(const feed::WorkKey& key, const WireContext& context) {
  return {context.seed, key.step, key.index};
}

Frame encode(const feed::Lease& lease, const WireContext& context) {
  ByteWriter writer;
  write(writer, lease.key);
  writer.number(lease.kind);
  writer.number(lease.cut);
  writer.number(static_cast<uint8_t>(lease.stem_trains));
  writer.number(lease.stem_version);
  writer.number(lease.activations);
  writer.number(lease.gradients);
  writer.number(static_cast<uint32_t>(lease.samples.size()));
  for (const auto& sample : lease.samples) {
    writer.number(sample.slot);
    writer.number(sample.id);
    write(writer, sample.sample);
  }
  Frame frame{static_cast<uint16_t>(FrameType::kLease), {}, {}, transport::Lane::kData};
  if (lease.kind == feed::WorkKind::kBackward) {
    add_tensor(frame, writer, lease.cut_gradient, lease.gradients, rounding_of(lease.key, context));
  }
  frame.message = writer.take();
  return frame;
}

feed::Lease read_lease(ByteReader& reader, const ReceivedFrame& frame, const WireContext& context) {
  feed::Lease lease;
  lease.key = read_key(reader);
  lease.kind = read_enum(reader, feed::WorkKind::kScore);
  lease.cut = reader.number<int32_t>();
  lease.stem_trains = read_flag(reader);
  lease.stem_version = reader.number<uint64_t>();
  lease.activations = read_enum(reader, WireFormat::kInt8);
  lease.gradients = read_enum(reader, WireFormat::kInt8);
  const uint32_t samples = reader.count(12 + kLeastSampleBytes);
  for (uint32_t i = 0; i < samples; ++i) {
    feed::LeaseSample sample;
    sample.slot = reader.number<uint64_t>();
    sample.id = reader.number<uint32_t>();
    sample.sample = read_sample(reader);
    lease.samples.push_back(std::move(sample));
  }
  if (lease.kind == feed::WorkKind::kBackward) {
    lease.cut_gradient = read_tensor(reader, only_payload(frame), context.activation_type);
  } else {
    expect_no_payload(frame);
  }
  return lease;
}

Frame encode(const feed::StemWeights& weights, const WireContext&) {
  ByteWriter writer;
  Frame frame{static_cast<uint16_t>(FrameType::kStemWeights), {}, {}, transport::Lane::kData};
  writer.number(weights.version);
  writer.number(weights.cut);
  add_floats(frame, writer, weights.parameters, weights.parameter_count);
  add_floats(frame, writer, weights.buffers, weights.buffer_count);
  frame.message = writer.take();
  return frame;
}

feed::StemWeights read_weights(ByteReader& reader, const ReceivedFrame& frame) {
  if (frame.payloads.size() != 2) throw InvalidInput("stem weights without their two payloads");
  feed::StemWeights weights;
  weights.version = reader.number<uint64_t>();
  weights.cut = reader.number<int32_t>();
  weights.parameters = read_floats(reader, frame.payloads[0]);
  weights.buffers = read_floats(reader, frame.payloads[1]);
  weights.parameter_count = weights.parameters->size();
  weights.buffer_count = weights.buffers->size();
  return weights;
}

Frame encode(const feed::CutGradient& gradient, const WireContext& context) {
  ByteWriter writer;
  Frame frame{static_cast<uint16_t>(FrameType::kCutGradient), {}, {}, transport::Lane::kData};
  write(writer, gradient.key);
  writer.number(gradient.wire);
  add_tensor(frame, writer, gradient.gradient, gradient.wire, rounding_of(gradient.key, context));
  frame.message = writer.take();
  return frame;
}

Frame encode(const feed::Cancel& cancel, const WireContext&) {
  ByteWriter writer;
  write(writer, cancel.key);
  return frame_of(FrameType::kCancel, writer);
}

Frame encode(const feed::Committed& committed, const WireContext&) {
  ByteWriter writer;
  writer.number(committed.step);
  writer.number(committed.oldest_version);
  return frame_of(FrameType::kCommitted, writer);
}

Frame encode(const feed::Farewell& farewell, const WireContext&) {
  ByteWriter writer;
  writer.number(static_cast<uint8_t>(farewell.again));
  writer.number(static_cast<uint8_t>(farewell.refused));
  writer.text(farewell.reason);
  return frame_of(FrameType::kFarewell, writer);
}

feed::ServerMessage server_fields(ByteReader& reader, const ReceivedFrame& frame,
                                  const WireContext& context) {
  switch (static_cast<FrameType>(frame.type)) {
    case FrameType::kLease:
      return read_lease(reader, frame, context);
    case FrameType::kStemWeights:
      return read_weights(reader, frame);
    case FrameType::kCutGradient: {
      feed::CutGradient gradient{.key = read_key(reader),
                                 .wire = read_enum(reader, WireFormat::kInt8)};
      gradient.gradient = read_tensor(reader, only_payload(frame), context.activation_type);
      return gradient;
    }
    case FrameType::kCancel:
      expect_no_payload(frame);
      return feed::Cancel{read_key(reader)};
    case FrameType::kCommitted: {
      expect_no_payload(frame);
      const auto step = reader.number<uint64_t>();
      return feed::Committed{step, reader.number<uint64_t>()};
    }
    case FrameType::kFarewell: {
      expect_no_payload(frame);
      const bool again = read_flag(reader);
      const bool refused = read_flag(reader);
      return feed::Farewell{again, reader.text(), refused};
    }
    default:
      throw InvalidInput("frame of type " + std::to_string(frame.type) +
                         " is nothing that a server sends");
  }
}

}  // namespace

Frame to_frame(const feed::ServerMessage& message, const WireContext& context) {
  return std::visit([&](const auto& one) { return encode(one, context); }, message);
}

feed::ServerMessage read_server_message(const ReceivedFrame& frame, const WireContext& context) {
  ByteReader reader(frame.message);
  auto message = server_fields(reader, frame, context);
  reader.expect_end();
  return message;
}

}  // namespace outrigger::worker
