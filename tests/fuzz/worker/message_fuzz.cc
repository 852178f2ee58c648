// Any bytes as the frames of a job, as either side reads them: Setup and Hello, which open a link,
// and what server and worker say in a step. Either an exception of ours, or a message that says the
// same when it is written and read again.
//
// Input: [which reader, type of tensors in memory][frame type: 2][payloads][size of each: 2]
// [payloads' bytes][message].

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "common/bytes.h"
#include "common/error.h"
#include "worker/protocol/protocol.h"

namespace outrigger::worker {
namespace {

using transport::Frame;
using transport::ReceivedFrame;

ReceivedFrame frame_of(ByteReader& input) {
  ReceivedFrame frame{.type = input.number<uint16_t>()};
  std::vector<uint16_t> sizes(input.number<uint8_t>() % 4);
  for (uint16_t& size : sizes) size = input.number<uint16_t>();
  for (const size_t size : sizes) {
    const auto bytes = input.raw(std::min(size, input.left()));
    frame.payloads.push_back(transport::Payload::of(Bytes(bytes.begin(), bytes.end())));
  }
  const auto message = input.raw(input.left());
  frame.message.assign(message.begin(), message.end());
  return frame;
}

ReceivedFrame received(const Frame& frame) {
  return {frame.type, frame.lane, frame.message, frame.payloads};
}

bool same(const ReceivedFrame& a, const ReceivedFrame& b) {
  return a.type == b.type && a.message == b.message &&
         std::ranges::equal(a.payloads, b.payloads, [](const auto& x, const auto& y) {
           return std::ranges::equal(x.bytes, y.bytes);
         });
}

/// The tensor that a message carries; null where it carries none.
const Tensor* tensor_of(const feed::ServerMessage& message) {
  if (const auto* lease = std::get_if<feed::Lease>(&message)) return lease->cut_gradient.get();
  if (const auto* cut = std::get_if<feed::CutGradient>(&message)) return cut->gradient.get();
  return nullptr;
}
const Tensor* tensor_of(const feed::WorkerMessage& message) {
  const auto* batch = std::get_if<feed::MicroBatch>(&message);
  return batch == nullptr ? nullptr : batch->tensor.get();
}

/// Messages have one way to be written, but for tensors, which another wire format may round.
template <typename Message>
void check(const ReceivedFrame& frame, const WireContext& context,
           Message (*read)(const ReceivedFrame&, const WireContext&)) {
  const Message message = read(frame, context);
  const ReceivedFrame written = received(to_frame(message, context));
  const Tensor* tensor = tensor_of(message);
  if (tensor == nullptr) {
    ensure(same(written, frame), "a message is written as it was read");
    return;
  }
  const Message again = read(written, context);
  ensure(again.index() == message.index(), "a message keeps its kind");
  ensure(tensor_of(again)->shape() == tensor->shape(), "a tensor keeps its shape");
  ensure(tensor_of(again)->type() == tensor->type(), "a tensor keeps its type");
}

void run(std::span<const std::byte> bytes) {
  ByteReader input(bytes);
  const auto choice = input.number<uint8_t>();
  const WireContext context = {
      .activation_type = (choice & 4) == 0 ? ElementType::kFloat32 : ElementType::kBFloat16,
      .seed = 1};
  const ReceivedFrame frame = frame_of(input);
  switch (choice % 4) {
    case 0:
      ensure(received(to_frame(read_setup(frame))).message == frame.message, "a setup is kept");
      break;
    case 1:
      ensure(received(to_frame(read_hello(frame))).message == frame.message, "a hello is kept");
      break;
    case 2:
      check<feed::ServerMessage>(frame, context, read_server_message);
      break;
    default:
      check<feed::WorkerMessage>(frame, context, read_worker_message);
      read_worker_message(frame, {.keep_int8 = true});
  }
}

}  // namespace
}  // namespace outrigger::worker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  try {
    outrigger::worker::run(std::as_bytes(std::span(bytes, size)));
  } catch (const outrigger::Error&) {
  }
  return 0;
}
