#include "transport/internal/gloo_channel.h"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "transport/internal/gloo.h"
#include "transport/internal/signals.h"
#include "transport/internal/socket.h"
#include "transport/link.h"

namespace outrigger::transport {
namespace {

constexpr uint64_t kSlot = 0;
constexpr size_t kMaxAddressBytes = 1024;

using Buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;

class GlooChannel final : public Channel {
 public:
  GlooChannel(GlooContext context, int peer_rank, std::string peer, Duration silence_limit)
      : context_(std::move(context)), peer_rank_(peer_rank), peer_(std::move(peer)), silence_limit_(silence_limit) {}
  ~GlooChannel() override;

  void write(std::span<const std::span<const std::byte>> pieces) override;
  void read(std::span<const std::span<std::byte>> pieces) override;
  void end_by(TimePoint limit) override;
  void shutdown_writing() override {}  // Gloo has no half-closed pairs: the peer ends when it reads our kClose
  void shutdown() override;
  std::string peer() const override { return peer_; }

 private:
  void wait_sent(gloo::transport::UnboundBuffer& buffer);
  void wait_received(gloo::transport::UnboundBuffer& buffer);
  /// Registers what a thread is about to wait for, so that shutdown can abort it.
  void about_to_wait(gloo::transport::UnboundBuffer*& slot, gloo::transport::UnboundBuffer* buffer);

  const GlooContext context_;
  const int peer_rank_;
  const std::string peer_;
  const Duration silence_limit_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool shut_down_ = false;
  gloo::transport::UnboundBuffer* sending_ = nullptr;
  gloo::transport::UnboundBuffer* receiving_ = nullptr;
  std::thread watchdog_;  ///< lives from end_by until shutdown
};

GlooChannel::~GlooChannel() {
  const NoSigpipe no_sigpipe;
  shutdown();
  if (watchdog_.joinable()) watchdog_.join();
}

void GlooChannel::about_to_wait(gloo::transport::UnboundBuffer*& slot, gloo::transport::UnboundBuffer* buffer) {
  const std::scoped_lock lock(mutex_);
  slot = buffer;
  if (buffer != nullptr && shut_down_) {
    slot = nullptr;
    throw LinkClosed("the link was shut down");
  }
}

void GlooChannel::wait_sent(gloo::transport::UnboundBuffer& buffer) {
  about_to_wait(sending_, &buffer);
  bool done = false;
  try {
    done = buffer.waitSend(nullptr, gloo_timeout(silence_limit_));
  } catch (...) {
    about_to_wait(sending_, nullptr);
    throw;
  }
  about_to_wait(sending_, nullptr);
  if (!done) throw LinkClosed("the link was shut down");
}

void GlooChannel::wait_received(gloo::transport::UnboundBuffer& buffer) {
  about_to_wait(receiving_, &buffer);
  bool done = false;
  try {
    done = buffer.waitRecv(nullptr, gloo_timeout(silence_limit_));
  } catch (...) {
    about_to_wait(receiving_, nullptr);
    throw;
  }
  about_to_wait(receiving_, nullptr);
  if (!done) throw LinkClosed("the link was shut down");
}

void GlooChannel::write(std::span<const std::span<const std::byte>> pieces) {
  try {
    std::vector<Buffer> buffers;
    for (const auto& piece : pieces) {
      if (piece.empty()) continue;
      buffers.push_back(context_.context->createUnboundBuffer(const_cast<std::byte*>(piece.data()), piece.size()));
      buffers.back()->send(peer_rank_, kSlot);
    }
    for (const Buffer& buffer : buffers) wait_sent(*buffer);
  } catch (const LinkClosed&) {
    throw;
  } catch (const std::exception& failure) {  // EnforceNotMet is no gloo::Exception
    throw LinkClosed(std::string("Gloo could not send: ") + failure.what());
  }
}

void GlooChannel::read(std::span<const std::span<std::byte>> pieces) {
  try {
    std::vector<Buffer> buffers;
    for (const auto& piece : pieces) {
      if (piece.empty()) continue;
      buffers.push_back(context_.context->createUnboundBuffer(piece.data(), piece.size()));
      buffers.back()->recv(peer_rank_, kSlot);
    }
    for (const Buffer& buffer : buffers) wait_received(*buffer);
  } catch (const LinkClosed&) {
    throw;
  } catch (const std::exception& failure) {
    throw LinkClosed(std::string("Gloo could not receive: ") + failure.what());
  }
}

void GlooChannel::end_by(TimePoint limit) {
  // A wait inside Gloo cannot be given an earlier end than it began with, only be aborted, and by another thread.
  watchdog_ = std::thread([this, limit] {
    block_signals();
    std::unique_lock lock(mutex_);
    ended_.wait_until(lock, limit, [this] { return shut_down_; });
    if (sending_ != nullptr) sending_->abortWaitSend();
  });
}

void GlooChannel::shutdown() {
  {
    const std::scoped_lock lock(mutex_);
    if (shut_down_) return;
    shut_down_ = true;
    if (sending_ != nullptr) sending_->abortWaitSend();
    if (receiving_ != nullptr) receiving_->abortWaitRecv();
  }
  ended_.notify_all();
  context_.context->getPair(peer_rank_)->close();
}

}  // namespace

std::unique_ptr<Channel> make_gloo_channel(FileDescriptor connection, GlooSide side, Duration silence_limit,
                                           TimePoint deadline) {
  const int fd = connection.get();
  const int rank = static_cast<int>(side);
  const int peer = 1 - rank;
  const NoSigpipe no_sigpipe;
  try {
    GlooContext context = make_gloo_context(local_host(fd), rank, 2, deadline);
    auto& pair = context.context->createPair(peer);
    write_blob(fd, pair->address().bytes(), deadline);
    pair->connect(read_blob(fd, kMaxAddressBytes, deadline));
    return std::make_unique<GlooChannel>(std::move(context), peer, peer_name(fd) + " (Gloo)", silence_limit);
  } catch (const LinkClosed&) {
    throw;
  } catch (const std::exception& failure) {
    throw LinkClosed(std::string("Gloo could not connect a pair: ") + failure.what());
  }
}

}  // namespace outrigger::transport
