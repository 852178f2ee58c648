#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/bytes.h"
#include "transport/codec.h"
#include "worker/protocol/protocol.h"

/// The pieces that several messages share; internal to worker/protocol/*.cc.
namespace outrigger::worker {

void write(ByteWriter& writer, const feed::WorkKey& key);
feed::WorkKey read_key(ByteReader& reader);
void write(ByteWriter& writer, const data::Sample& sample);
data::Sample read_sample(ByteReader& reader);
/// At least so many bytes does a sample take.
inline constexpr size_t kLeastSampleBytes = 4 + 8 + 8 + 4;

/// A flag that must be 0 or 1, or an enumerator that must not be larger than `last`.
bool read_flag(ByteReader& reader);
template <typename Enum>
Enum read_enum(ByteReader& reader, Enum last) {
  const auto value = reader.number<Enum>();
  if (value > last)
    throw InvalidInput("an enumerator of a message is " + std::to_string(static_cast<int>(value)));
  return value;
}

/// The only payload of a frame; throws unless there is exactly one.
const transport::Payload& only_payload(const transport::ReceivedFrame& frame);
/// Throws InvalidInput where the frame of a message that carries no payload has one.
void expect_no_payload(const transport::ReceivedFrame& frame);
void add_tensor(transport::Frame& frame, ByteWriter& writer,
                const std::shared_ptr<const Tensor>& tensor, WireFormat format,
                const std::optional<transport::StochasticRounding>& rounding);
/// The tensor, of `type` unless it is pixels; in the payload's own memory where it travelled so.
std::shared_ptr<const Tensor> read_tensor(ByteReader& reader, const transport::Payload& payload,
                                          ElementType type);
/// Likewise into a micro-batch; in int8 as it came where the context says so.
void read_activations(ByteReader& reader, const transport::Payload& payload,
                      const WireContext& context, feed::MicroBatch& batch);
/// The first `count` floats.
void add_floats(transport::Frame& frame, ByteWriter& writer,
                const std::shared_ptr<const std::vector<float>>& values, size_t count);
std::shared_ptr<const std::vector<float>> read_floats(ByteReader& reader,
                                                      const transport::Payload& payload);

transport::Frame frame_of(FrameType type, ByteWriter& writer,
                          std::vector<transport::Payload> payloads = {});

}  // namespace outrigger::worker
