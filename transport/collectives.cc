#include "transport/collectives.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "common/error.h"
#include "common/tensor.h"
#include "transport/internal/gloo.h"
#include "transport/internal/gloo_mesh.h"
#include "transport/internal/gloo_waiter.h"
#include "transport/internal/signals.h"

namespace outrigger::transport {
namespace {

void check(const CollectiveOptions& options) {
  if (options.size < 1 || options.rank < 0 || options.rank >= options.size) {
    throw InvalidInput("rank " + std::to_string(options.rank) + " of " +
                       std::to_string(options.size) +
                       " ranks; allowed is 0 to the number of ranks less one");
  }
}

class GlooCollective final : public Collective {
 public:
  GlooCollective(GlooContext gloo, const CollectiveOptions& options)
      : gloo_(std::move(gloo)), options_(options) {
    if (options.size > 1) waiter_.emplace(gloo_);
  }
  int rank() const override { return options_.rank; }
  int size() const override { return options_.size; }
  void all_reduce(std::span<float> values) override;
  void all_reduce_bfloat16(std::span<float> values) override;
  void broadcast(std::span<std::byte> bytes, int root) override;
  void barrier() override;

 private:
  /// Sends and receives that are under way; nothing for empty spans.
  class Round {
   public:
    explicit Round(GlooCollective& owner) : owner_(owner) {}
    void send(int peer, std::span<const std::byte> bytes);
    void receive(int peer, std::span<std::byte> bytes);
    void wait();

   private:
    struct Operation {
      int peer;
      GlooWaiter::Kind kind;
      std::unique_ptr<gloo::transport::UnboundBuffer> buffer;
    };
    GlooCollective& owner_;
    std::vector<Operation> operations_;
  };

  /// Runs `work` as the next operation; whatever fails in it ends this collective for good.
  template <typename Work>
  void run(const char* name, const Work& work);
  template <typename Use>
  void for_peers(const Use& use) const;
  /// Has every rank add up its slice of all ranks' values, by `add`(own slice, the others'), and
  /// tell the others.
  template <typename T, typename Add>
  void exchange(std::span<T> values, std::vector<std::vector<T>>& scratch, const Add& add);
  /// The part of `values` that `owner` adds up.
  template <typename T>
  std::span<T> slice(std::span<T> values, int owner) const;
  /// Resets the connections. Not for who leaves when all went well: what the kernel has not yet
  /// delivered would be lost, and the others fail in an operation that was done here.
  void hang_up();

  const GlooContext gloo_;
  const CollectiveOptions options_;
  std::optional<std::string> broken_;
  TimePoint deadline_{};
  std::optional<GlooWaiter> waiter_;  // none where there are no peers
  std::vector<std::vector<float>> scratch_;
  std::vector<std::vector<uint16_t>> rounded_scratch_;
  std::vector<uint16_t> rounded_;
};

void GlooCollective::Round::send(int peer, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  auto buffer =
      owner_.gloo_.context->createUnboundBuffer(const_cast<std::byte*>(bytes.data()), bytes.size());
  buffer->send(peer, 0);
  operations_.push_back({peer, GlooWaiter::Kind::kSend, std::move(buffer)});
}

void GlooCollective::Round::receive(int peer, std::span<std::byte> bytes) {
  if (bytes.empty()) return;
  auto buffer = owner_.gloo_.context->createUnboundBuffer(bytes.data(), bytes.size());
  buffer->recv(peer, 0);
  operations_.push_back({peer, GlooWaiter::Kind::kReceive, std::move(buffer)});
}

void GlooCollective::Round::wait() {
  for (const Operation& operation : operations_) {
    try {
      owner_.waiter_->wait(*operation.buffer, operation.kind, operation.peer, owner_.deadline_);
    } catch (const std::exception& failure) {  // EnforceNotMet is no gloo::Exception
      throw IoError("rank " + std::to_string(operation.peer) + " is lost: " + failure.what());
    }
  }
  operations_.clear();
}

template <typename Work>
void GlooCollective::run(const char* name, const Work& work) {
  if (broken_) throw IoError(*broken_);
  const NoSigpipe no_sigpipe;
  deadline_ = SystemClock().now() + options_.limit;
  try {
    work();
  } catch (const std::exception& failure) {
    broken_ =
        std::string(name) + " among " + std::to_string(size()) + " ranks failed: " + failure.what();
    hang_up();  // so that the others hear of it at once
    throw IoError(*broken_);
  }
}

template <typename Use>
void GlooCollective::for_peers(const Use& use) const {
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != rank()) use(peer);
  }
}

void GlooCollective::hang_up() {
  for_peers([&](int peer) { gloo_.context->getPair(peer)->close(); });
}

template <typename T>
std::span<T> GlooCollective::slice(std::span<T> values, int owner) const {
  const size_t n = values.size();
  const auto ranks = static_cast<size_t>(size());
  const size_t begin = n * static_cast<size_t>(owner) / ranks;
  const size_t end = n * static_cast<size_t>(owner + 1) / ranks;
  return values.subspan(begin, end - begin);
}

template <typename T, typename Add>
void GlooCollective::exchange(std::span<T> values, std::vector<std::vector<T>>& scratch,
                              const Add& add) {
  const std::span<T> own = slice(values, rank());
  scratch.resize(static_cast<size_t>(size()));
  Round scatter(*this);
  for_peers([&](int peer) {
    std::vector<T>& room = scratch[static_cast<size_t>(peer)];
    room.resize(own.size());
    scatter.receive(peer, std::as_writable_bytes(std::span(room)));
    scatter.send(peer, std::as_bytes(slice(values, peer)));
  });
  scatter.wait();
  add(own, scratch);
  Round gather(*this);
  for_peers([&](int peer) {
    gather.receive(peer, std::as_writable_bytes(slice(values, peer)));
    gather.send(peer, std::as_bytes(own));
  });
  gather.wait();
}

void GlooCollective::all_reduce(std::span<float> values) {
  const auto add = [&](std::span<float> own, const std::vector<std::vector<float>>& others) {
    for (size_t i = 0; i < own.size(); ++i) {
      float sum = rank() == 0 ? own[i] : others[0][i];
      for (int r = 1; r < size(); ++r)
        sum += r == rank() ? own[i] : others[static_cast<size_t>(r)][i];
      own[i] = sum;
    }
  };
  run("all-reduce", [&] { exchange(values, scratch_, add); });
}

void GlooCollective::all_reduce_bfloat16(std::span<float> values) {
  const auto add = [&](std::span<uint16_t> own, const std::vector<std::vector<uint16_t>>& others) {
    for (size_t i = 0; i < own.size(); ++i) {
      float sum = from_bfloat16(rank() == 0 ? own[i] : others[0][i]);
      for (int r = 1; r < size(); ++r)
        sum += from_bfloat16(r == rank() ? own[i] : others[static_cast<size_t>(r)][i]);
      own[i] = to_bfloat16(sum);
    }
  };
  rounded_.resize(values.size());
  std::ranges::transform(values, rounded_.begin(), to_bfloat16);
  run("all-reduce", [&] { exchange(std::span(rounded_), rounded_scratch_, add); });
  std::ranges::transform(rounded_, values.begin(), from_bfloat16);
}

void GlooCollective::broadcast(std::span<std::byte> bytes, int root) {
  run("broadcast", [&] {
    Round round(*this);
    if (rank() == root) {
      for_peers([&](int peer) { round.send(peer, bytes); });
    } else {
      round.receive(root, bytes);
    }
    round.wait();
  });
}

void GlooCollective::barrier() {
  run("barrier", [&] {
    std::vector<std::byte> arrived(static_cast<size_t>(size()));
    const std::byte here{1};
    Round round(*this);
    for_peers([&](int peer) {
      round.receive(peer, std::span(arrived).subspan(static_cast<size_t>(peer), 1));
      round.send(peer, std::span(&here, 1));
    });
    round.wait();
  });
}

/// Where a pair stands for one rank the other may still be at it, and would fail if this one did
/// its part and left.
std::unique_ptr<Collective> met(GlooContext gloo, const CollectiveOptions& options) {
  auto collective = std::make_unique<GlooCollective>(std::move(gloo), options);
  collective->barrier();
  return collective;
}

}  // namespace

std::unique_ptr<Collective> Collective::host(Listener& listener, const CollectiveOptions& options) {
  check(options);
  if (options.size == 1) return std::make_unique<GlooCollective>(GlooContext{}, options);
  return met(host_mesh(listener, options), options);
}

std::unique_ptr<Collective> Collective::join(const Address& address, const std::string& token,
                                             const CollectiveOptions& options) {
  check(options);
  return met(join_mesh(address, token, options), options);
}

}  // namespace outrigger::transport
