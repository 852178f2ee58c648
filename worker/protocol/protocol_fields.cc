#include "worker/protocol/protocol_fields.h"

#include <cstring>
#include <span>

#include "common/error.h"

namespace outrigger::worker {
namespace {

bool travels_as_it_is(ElementType type, WireFormat format) {
  return (type == ElementType::kUint8 && format == WireFormat::kUint8) ||
         (type == ElementType::kFloat32 && format == WireFormat::kFloat32) ||
         (type == ElementType::kBFloat16 && format == WireFormat::kBFloat16);
}

// As links give them out; not so what is only borrowed.
bool can_stay(const transport::Payload& payload) {
  constexpr uintptr_t kAlignment = 64;
  return payload.owner != nullptr &&
         reinterpret_cast<uintptr_t>(payload.bytes.data()) % kAlignment == 0;
}

}  // namespace

void write(ByteWriter& writer, const feed::WorkKey& key) {
  writer.number(key.incarnation);
  writer.number(key.step);
  writer.number(key.index);
  writer.number(key.attempt);
}

feed::WorkKey read_key(ByteReader& reader) {
  feed::WorkKey key;
  key.incarnation = reader.number<uint32_t>();
  key.step = reader.number<uint64_t>();
  key.index = reader.number<uint32_t>();
  key.attempt = reader.number<uint32_t>();
  return key;
}

void write(ByteWriter& writer, const data::Sample& sample) {
  writer.text(sample.path);
  writer.number(sample.offset);
  writer.number(sample.length);
  writer.number(sample.label);
}

data::Sample read_sample(ByteReader& reader) {
  data::Sample sample;
  sample.path = reader.text();
  sample.offset = reader.number<uint64_t>();
  sample.length = reader.number<uint64_t>();
  sample.label = reader.number<int32_t>();
  return sample;
}

bool read_flag(ByteReader& reader) {
  const auto value = reader.number<uint8_t>();
  if (value > 1) throw InvalidInput("a flag of a message is " + std::to_string(value));
  return value == 1;
}

const transport::Payload& only_payload(const transport::ReceivedFrame& frame) {
  if (frame.payloads.size() != 1) {
    throw InvalidInput("a message with " + std::to_string(frame.payloads.size()) +
                       " payloads, 1 is allowed");
  }
  return frame.payloads.front();
}

void expect_no_payload(const transport::ReceivedFrame& frame) {
  if (!frame.payloads.empty()) {
    throw InvalidInput("a frame of type " + std::to_string(frame.type) + " with " +
                       std::to_string(frame.payloads.size()) + " payloads, 0 are allowed");
  }
}

void add_tensor(transport::Frame& frame, ByteWriter& writer,
                const std::shared_ptr<const Tensor>& tensor, WireFormat format,
                const std::optional<transport::StochasticRounding>& rounding) {
  const ConstTensorView view = tensor->view();
  const auto wire = view.type == ElementType::kUint8 ? WireFormat::kUint8 : format;
  auto encoded =
      travels_as_it_is(view.type, wire)
          ? transport::EncodedTensor{wire, false, view.shape, {view.raw(), tensor}}
          : transport::encode(view, wire, wire == WireFormat::kInt8 ? rounding : std::nullopt);
  transport::describe(encoded, writer);
  frame.payloads.push_back(std::move(encoded.data));
}

namespace {

transport::EncodedTensor read_with_elements(ByteReader& reader, const transport::Payload& payload) {
  auto encoded = transport::read_encoded(reader, payload);
  // The other sizes of one without elements could be anything.
  if (element_count(encoded.shape) == 0)
    throw InvalidInput("a message holds a tensor " + to_string(encoded.shape) +
                       ", which has no elements");
  return encoded;
}

std::shared_ptr<const Tensor> tensor_of(const transport::EncodedTensor& encoded, ElementType type) {
  if (encoded.format == WireFormat::kUint8) type = ElementType::kUint8;
  const auto view = transport::view_of(encoded);
  if (view && view->type == type && can_stay(encoded.data))
    return Tensor::in_place(*view, encoded.data.owner);
  return std::make_shared<const Tensor>(transport::decode(encoded, type));
}

}  // namespace

std::shared_ptr<const Tensor> read_tensor(ByteReader& reader, const transport::Payload& payload,
                                          ElementType type) {
  return tensor_of(read_with_elements(reader, payload), type);
}

void read_activations(ByteReader& reader, const transport::Payload& payload,
                      const WireContext& context, feed::MicroBatch& batch) {
  const auto encoded = read_with_elements(reader, payload);
  const auto packed = transport::packed_of(encoded);
  if (context.keep_int8 && packed && can_stay(encoded.data)) {
    batch.tensor = Tensor::in_place(packed->elements, encoded.data.owner);
    batch.scales = Tensor::in_place(packed->scales, encoded.data.owner);
  } else {
    batch.tensor = tensor_of(encoded, context.activation_type);
  }
}

void add_floats(transport::Frame& frame, ByteWriter& writer,
                const std::shared_ptr<const std::vector<float>>& values, size_t count) {
  ensure(count <= values->size(), "no more is sent than there is");
  writer.number(static_cast<uint64_t>(count));
  frame.payloads.push_back({std::as_bytes(std::span(*values).first(count)), values});
}

std::shared_ptr<const std::vector<float>> read_floats(ByteReader& reader,
                                                      const transport::Payload& payload) {
  const auto count = reader.number<uint64_t>();
  if (payload.bytes.size() % sizeof(float) != 0 || payload.bytes.size() / sizeof(float) != count) {
    throw InvalidInput("a message says " + std::to_string(count) + " floats and holds " +
                       std::to_string(payload.bytes.size()) + " bytes");
  }
  auto values = std::make_shared<std::vector<float>>(count);
  if (count > 0) std::memcpy(values->data(), payload.bytes.data(), payload.bytes.size());
  return values;
}

transport::Frame frame_of(FrameType type, ByteWriter& writer,
                          std::vector<transport::Payload> payloads) {
  return {static_cast<uint16_t>(type), writer.take(), std::move(payloads), transport::Lane::kData};
}

}  // namespace outrigger::worker
