#include "transport/internal/gloo_channel.h"

#include <algorithm>
#include <array>
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

// Gloo moves messages, each of which waits for a receive on the other side. Small pieces travel
// together in envelopes, for which receives are posted ahead; large ones travel alone, straight to
// their place. Both sides know which is which from a piece's size, and each kind keeps its order on
// a slot of its own.
constexpr uint64_t kEnvelopeSlot = 0;
constexpr uint64_t kLargeSlot = 1;
constexpr size_t kEnvelopeBytes = size_t{64} << 10;
constexpr size_t kEnvelopes = 4;
constexpr size_t kLargePiece = size_t{32} << 10;

using Buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;

class GlooChannel final : public Channel {
 public:
  GlooChannel(GlooContext context, int peer_rank, std::string peer, Duration silence_limit);
  ~GlooChannel() override;

  void write(std::span<const std::span<const std::byte>> pieces) override;
  void read(std::span<const std::span<std::byte>> pieces) override;
  void end_by(TimePoint limit) override;
  void shutdown_writing() override {
  }  // Gloo has no half-closed pairs: the peer ends when it reads our kClose
  void shutdown() override;
  std::string peer() const override { return peer_; }

 private:
  struct Envelope {
    uint32_t used = 0;  ///< bytes of content
    std::array<std::byte, kEnvelopeBytes> content;
  };

  Buffer buffer_for(void* data, size_t size) const {
    return context_.context->createUnboundBuffer(data, size);
  }
  void write_envelope();
  void read_small(std::span<std::byte> piece);
  void post(size_t envelope);
  void wait_sent(gloo::transport::UnboundBuffer& buffer);
  void wait_received(gloo::transport::UnboundBuffer& buffer);
  /// Registers what a thread is about to wait for, so that shutdown can abort it.
  void about_to_wait(gloo::transport::UnboundBuffer*& slot, gloo::transport::UnboundBuffer* buffer);

  const GlooContext context_;
  Envelope outgoing_;                          // the writer's
  std::array<Envelope, kEnvelopes> incoming_;  // the reader's, as all below
  std::array<Buffer, kEnvelopes> incoming_buffers_;
  size_t current_ = 0;
  size_t taken_ = 0;
  bool arrived_ = false;
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

GlooChannel::GlooChannel(GlooContext context, int peer_rank, std::string peer,
                         Duration silence_limit)
    : context_(std::move(context)),
      peer_rank_(peer_rank),
      peer_(std::move(peer)),
      silence_limit_(silence_limit) {
  for (size_t i = 0; i < kEnvelopes; ++i) {
    incoming_buffers_[i] = buffer_for(&incoming_[i], sizeof(Envelope));
    post(i);
  }
}

GlooChannel::~GlooChannel() {
  const NoSigpipe no_sigpipe;
  shutdown();
  if (watchdog_.joinable()) watchdog_.join();
}

void GlooChannel::about_to_wait(gloo::transport::UnboundBuffer*& slot,
                                gloo::transport::UnboundBuffer* buffer) {
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

void GlooChannel::write_envelope() {
  if (outgoing_.used == 0) return;
  const Buffer buffer = buffer_for(&outgoing_, sizeof outgoing_.used + outgoing_.used);
  buffer->send(peer_rank_, kEnvelopeSlot);
  wait_sent(*buffer);
  outgoing_.used = 0;
}

void GlooChannel::write(std::span<const std::span<const std::byte>> pieces) {
  try {
    std::vector<Buffer> large;
    for (const auto& piece : pieces) {
      if (piece.size() >= kLargePiece) {
        large.push_back(buffer_for(const_cast<std::byte*>(piece.data()), piece.size()));
        continue;
      }
      if (outgoing_.used + piece.size() > kEnvelopeBytes) write_envelope();
      std::copy(piece.begin(), piece.end(), outgoing_.content.begin() + outgoing_.used);
      outgoing_.used += static_cast<uint32_t>(piece.size());
    }
    write_envelope();
    for (const Buffer& buffer : large) buffer->send(peer_rank_, kLargeSlot);
    for (const Buffer& buffer : large) wait_sent(*buffer);
  } catch (const LinkClosed&) {
    throw;
  } catch (const std::exception& failure) {  // EnforceNotMet is no gloo::Exception
    throw LinkClosed(std::string("Gloo could not send: ") + failure.what());
  }
}

void GlooChannel::post(size_t envelope) {
  incoming_buffers_[envelope]->recv(peer_rank_, kEnvelopeSlot);
}

void GlooChannel::read_small(std::span<std::byte> piece) {
  while (!piece.empty()) {
    Envelope& envelope = incoming_[current_];
    if (!arrived_) {
      wait_received(*incoming_buffers_[current_]);
      if (envelope.used == 0 || envelope.used > kEnvelopeBytes)
        throw LinkClosed("an envelope of impossible size");
      arrived_ = true;
      taken_ = 0;
    }
    const size_t n = std::min(piece.size(), envelope.used - taken_);
    std::copy_n(envelope.content.begin() + static_cast<std::ptrdiff_t>(taken_), n, piece.begin());
    piece = piece.subspan(n);
    taken_ += n;
    if (taken_ == envelope.used) {
      post(current_);
      current_ = (current_ + 1) % kEnvelopes;
      arrived_ = false;
    }
  }
}

void GlooChannel::read(std::span<const std::span<std::byte>> pieces) {
  try {
    std::vector<Buffer> large;
    for (const auto& piece : pieces) {
      if (piece.size() < kLargePiece) continue;
      large.push_back(buffer_for(piece.data(), piece.size()));
      large.back()->recv(peer_rank_, kLargeSlot);
    }
    for (const auto& piece : pieces) {
      if (piece.size() < kLargePiece) read_small(piece);
    }
    for (const Buffer& buffer : large) wait_received(*buffer);
  } catch (const LinkClosed&) {
    throw;
  } catch (const std::exception& failure) {
    throw LinkClosed(std::string("Gloo could not receive: ") + failure.what());
  }
}

void GlooChannel::end_by(TimePoint limit) {
  // A wait inside Gloo cannot be given an earlier end than it began with, only be aborted, and by
  // another thread.
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

std::unique_ptr<Channel> make_gloo_channel(FileDescriptor connection, GlooSide side,
                                           Duration silence_limit, TimePoint deadline) {
  const int fd = connection.get();
  const int rank = static_cast<int>(side);
  const int peer = 1 - rank;
  const NoSigpipe no_sigpipe;
  try {
    GlooContext context = make_gloo_context(local_host(fd), rank, 2, deadline);
    auto& pair = context.context->createPair(peer);
    write_blob(fd, pair->address().bytes(), deadline);
    pair->connect(read_blob(fd, kMaxAddressBytes, deadline));
    return std::make_unique<GlooChannel>(std::move(context), peer, peer_name(fd) + " (Gloo)",
                                         silence_limit);
  } catch (const LinkClosed&) {
    throw;
  } catch (const std::exception& failure) {
    throw LinkClosed(std::string("Gloo could not connect a pair: ") + failure.what());
  }
}

}  // namespace outrigger::transport
