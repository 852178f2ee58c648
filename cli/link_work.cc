#include "cli/link_work.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "common/error.h"
#include "common/processor_clock.h"
#include "feed/ledger.h"
#include "feed/messages.h"
#include "transport/endpoint.h"
#include "worker/protocol/protocol.h"

namespace outrigger::cli {
namespace {

constexpr Duration kLimit = std::chrono::seconds(10);
/// Of a tensor; about as many as micro-batches have.
const Shape kShape{4, 56, 56, 32};

std::shared_ptr<const Tensor> some_tensor(ElementType type) {
  auto tensor = std::make_shared<Tensor>(type, kShape);
  std::fill_n(tensor->view().data, tensor->bytes(), std::byte{0x3f});  // no NaN, whatever the type
  return tensor;
}

const feed::Cancel kCancel;
const feed::Pull kPull{1};

}  // namespace

/// A server and a worker in this process: the worker answers each message with what it was told to
/// answer.
class LinkMeter::Loop {
 public:
  explicit Loop(const worker::WireContext& context)
      : context_(context), listener_({"127.0.0.1", 0}, kToken) {
    std::exception_ptr failure;
    std::jthread dialler([&] {
      try {
        worker_ = transport::dial({"127.0.0.1", listener_.port()}, kToken);
      } catch (...) {
        failure = std::current_exception();
      }
    });
    server_ = listener_.accept(kLimit);
    dialler.join();
    if (failure != nullptr) std::rethrow_exception(failure);
    if (server_ == nullptr) throw IoError("a link over loopback did not come about");
  }

  /// Processor seconds of both ends, for one message to the worker and one back.
  double seconds(const feed::ServerMessage& down, const feed::WorkerMessage& up, int times) {
    static_cast<void>(exchange(down, up, 3));  // fills buffers
    std::vector<double> each;
    constexpr int kRounds = 5;
    for (int i = 0; i < kRounds; ++i) each.push_back(exchange(down, up, times));
    std::ranges::sort(each);
    return each[kRounds / 2];
  }
  /// Of one end, beyond what those frames take without a tensor.
  double beyond(const feed::ServerMessage& down, const feed::WorkerMessage& up, double frame) {
    constexpr int kTimes = 4;
    return std::max(0.0, seconds(down, up, kTimes) / 2 - 2 * frame);
  }

 private:
  static constexpr const char* kToken = "loopback";

  double exchange(const feed::ServerMessage& down, const feed::WorkerMessage& up, int times) {
    const ProcessorClock clock = ProcessorClock::of_this_process();
    std::exception_ptr failure;
    const Duration begin = clock.now();
    std::thread answers([&] {
      try {
        for (int i = 0; i < times; ++i) {
          static_cast<void>(worker::read_server_message(received(*worker_), context_));
          worker_->send(worker::to_frame(up, context_));
        }
      } catch (...) {
        failure = std::current_exception();
        worker_->close("failed");
      }
    });
    try {
      for (int i = 0; i < times; ++i) {
        server_->send(worker::to_frame(down, context_));
        static_cast<void>(worker::read_worker_message(received(*server_), context_));
      }
    } catch (...) {
      server_->close("failed");
      answers.join();
      if (failure != nullptr) std::rethrow_exception(failure);
      throw;
    }
    answers.join();
    return to_seconds(clock.now() - begin) / times;
  }

  static transport::ReceivedFrame received(transport::Link& link) {
    auto frame = link.receive(kLimit);
    if (!frame) throw IoError("a frame over loopback did not arrive");
    return std::move(*frame);
  }

  const worker::WireContext context_;
  transport::Listener listener_;
  std::unique_ptr<transport::Link> server_;
  std::unique_ptr<transport::Link> worker_;
};

LinkMeter::LinkMeter(ElementType type)
    : loop_(std::make_unique<Loop>(worker::WireContext{.activation_type = type})),
      crossing_(some_tensor(type)) {
  constexpr int kTimes = 40;
  frame_ = loop_->seconds(kCancel, kPull, kTimes) / 4;  // two frames, two ends
  const auto pixels = some_tensor(ElementType::kUint8);
  byte_ = loop_->beyond(kCancel, feed::MicroBatch{.tensor = pixels}, frame_) /
          static_cast<double>(pixels->bytes());
}

LinkMeter::~LinkMeter() = default;

training::LinkWork LinkMeter::work(const Wires& wires) {
  const auto packing = [&](WireFormat wire, double seconds) {
    const double bytes = byte_ * feed::bytes_on_wire(*crossing_, wire);
    return std::max(0.0, seconds - bytes) / static_cast<double>(crossing_->bytes());
  };
  const feed::MicroBatch up{.wire = wires.activations, .tensor = crossing_};
  const feed::CutGradient down{.wire = wires.gradients, .gradient = crossing_};
  return {.frame = frame_,
          .byte = byte_,
          .activations = packing(wires.activations, loop_->beyond(kCancel, up, frame_)),
          .gradients = packing(wires.gradients, loop_->beyond(down, kPull, frame_))};
}

}  // namespace outrigger::cli
