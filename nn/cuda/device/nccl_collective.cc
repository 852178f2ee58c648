#include "nn/cuda/device/nccl_collective.h"

#include <array>
#include <chrono>
#include <cstring>
#include <thread>
#include <type_traits>

#include "common/error.h"
#include "common/log.h"
#include "nn/cuda/device/check.h"
#include "nn/cuda/device/nccl_library.h"
#include "nn/cuda/device/queues.h"
#include "nn/cuda/errors.h"

namespace outrigger::nn::cuda {
namespace {

struct EventDeleter {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};
using OwnedEvent = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, EventDeleter>;

OwnedEvent make_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event");
  return OwnedEvent(event);
}

/// Whether no other rank is to blame: this one's place or device is wrong, such as one GPU for two.
bool is_of_this_rank(ncclResult_t state) {
  return state == ncclInvalidUsage || state == ncclInvalidArgument ||
         state == ncclUnhandledCudaError;
}

/// A communicator that never blocks in a call, so that a rank that is lost ends in an error and not
/// in a hang (NCCL User Guide, "Fault Tolerance").
class NcclCollective final : public Collective {
 public:
  NcclCollective(const NcclLibrary& nccl, const RankGroup& ranks, const ncclUniqueId& id,
                 cudaStream_t engine)
      : nccl_(nccl),
        limit_(ranks.limit),
        engine_(engine),
        stream_(make_stream()),
        behind_(make_event()),
        done_(make_event()) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    settle(nccl_.init_rank(&communicator_, ranks.size, id, ranks.rank, &config),
           "meeting the other ranks");
  }
  ~NcclCollective() override {
    if (communicator_ == nullptr) return;
    // What is whole is left in order: the other ranks may still be in their last sum.
    ncclResult_t state = nccl_.finalize(communicator_);
    const auto deadline = std::chrono::steady_clock::now() + kLeave;
    while (state == ncclInProgress && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(kPause);
      if (nccl_.get_async_error(communicator_, &state) != ncclSuccess) break;
    }
    if (state == ncclSuccess) {
      nccl_.destroy(communicator_);
    } else {
      nccl_.abort(communicator_);
    }
  }
  NcclCollective(const NcclCollective&) = delete;
  NcclCollective& operator=(const NcclCollective&) = delete;

  void begin_sum(Array values, size_t count) override {
    require();
    ensure(values.type != Stored::kFloat16, "sums over ranks are float32 or bfloat16");
    const ncclDataType_t type = values.type == Stored::kFloat32 ? ncclFloat32 : ncclBfloat16;
    check(cudaEventRecord(behind_.get(), engine_), "marking where gradients are whole");
    check(cudaStreamWaitEvent(stream_.get(), behind_.get(), 0), "waiting for gradients");
    settle(nccl_.all_reduce(values.data, values.data, count, type, ncclSum, communicator_,
                            stream_.get()),
           "summing gradients over the ranks");
  }

  void finish() override {
    require();
    check(cudaEventRecord(done_.get(), stream_.get()), "marking where sums are whole");
    const auto deadline = std::chrono::steady_clock::now() + limit_;
    for (;;) {
      const cudaError_t status = cudaEventQuery(done_.get());
      if (status == cudaSuccess) break;
      if (status != cudaErrorNotReady) check(status, "waiting for sums over the ranks");
      ncclResult_t state = ncclSuccess;
      nccl_.get_async_error(communicator_, &state);
      if (state != ncclSuccess && state != ncclInProgress)
        fail("summing gradients over the ranks", state);
      if (std::chrono::steady_clock::now() > deadline)
        lose("summing gradients over the ranks", kTooLate);
      std::this_thread::sleep_for(kPause);
    }
    check(cudaStreamWaitEvent(engine_, done_.get(), 0), "waiting for sums");
  }

 private:
  static constexpr std::chrono::microseconds kPause{20};
  static constexpr std::chrono::seconds kLeave{5};
  static constexpr const char* kTooLate = "a rank did not come in time";

  void require() const {
    if (communicator_ == nullptr) throw RankLost("another rank was lost before");
  }
  void settle(ncclResult_t state, const char* what) {
    const auto deadline = std::chrono::steady_clock::now() + limit_;
    while (state == ncclInProgress) {
      if (std::chrono::steady_clock::now() > deadline) lose(what, kTooLate);
      std::this_thread::sleep_for(kPause);
      const ncclResult_t asked = nccl_.get_async_error(communicator_, &state);
      if (asked != ncclSuccess) state = asked;
    }
    if (state != ncclSuccess) fail(what, state);
  }
  [[noreturn]] void fail(const char* what, ncclResult_t state) {
    std::string says = nccl_.error_string(state);
    // In words of the place where it failed, such as which two ranks have one GPU.
    const char* last = nccl_.last_error(communicator_);
    if (last != nullptr && *last != '\0') says += std::string(": ") + last;
    if (!is_of_this_rank(state)) lose(what, says);
    leave();
    throw DeviceError(failure(what, says));
  }
  [[noreturn]] void lose(const char* what, const std::string& says) {
    leave();
    throw RankLost(failure(what, says));
  }
  static std::string failure(const char* what, const std::string& says) {
    return std::string(what) + " failed: NCCL says \"" + says + "\"";
  }
  // Ends the kernels that wait for the rank, so that the device is free again.
  void leave() {
    if (communicator_ != nullptr) nccl_.abort(communicator_);
    communicator_ = nullptr;
  }

  const NcclLibrary& nccl_;
  const std::chrono::nanoseconds limit_;
  const cudaStream_t engine_;
  const OwnedStream stream_;
  const OwnedEvent behind_, done_;
  ncclComm_t communicator_ = nullptr;
};

/// What rank 0 tells the others.
struct Invitation {
  std::array<std::byte, sizeof(ncclUniqueId)> id{};
  std::byte there{0};  // 1: there is NCCL
};

}  // namespace

std::unique_ptr<Collective> join_with_nccl(const RankGroup& ranks, cudaStream_t engine) {
  std::string why;
  const NcclLibrary* nccl = load_nccl(why);
  Invitation invitation;
  ncclUniqueId id{};
  if (ranks.rank == 0 && nccl != nullptr) {
    const ncclResult_t state = nccl->get_unique_id(&id);
    if (state == ncclSuccess) {
      std::memcpy(invitation.id.data(), &id, sizeof id);
      invitation.there = std::byte{1};
    } else {
      why = nccl->error_string(state);
    }
  }
  ranks.from_first(std::as_writable_bytes(std::span(&invitation, 1)));
  if (invitation.there == std::byte{0}) {
    log::warning("gradients cross the host: rank 0 finds no NCCL{}{}", why.empty() ? "" : ": ",
                 why);
    return nullptr;
  }
  if (nccl == nullptr) throw DeviceError("rank 0 has NCCL, and this rank has not: " + why);
  std::memcpy(&id, invitation.id.data(), sizeof id);
  return std::make_unique<NcclCollective>(*nccl, ranks, id, engine);
}

}  // namespace outrigger::nn::cuda
