#include "gpu-server/ranks/replicas.h"

#include <string>
#include <utility>

#include "api/exit_codes.h"
#include "api/names.h"
#include "common/error.h"
#include "common/log.h"
#include "transport/collectives.h"
#include "worker/token.h"

namespace outrigger::gpu_server {
namespace {

/// What other ranks are needed for: where it fails, one of them is lost.
template <typename Work>
auto together(const Work& work) {
  try {
    return work();
  } catch (const IoError& error) {
    throw api::Failure(api::ExitCode::kPeerLost,
                       std::string("another replica is lost: ") + error.what());
  }
}

class CollectiveReducer final : public training::Reducer {
 public:
  explicit CollectiveReducer(std::unique_ptr<transport::Collective> collective)
      : collective_(std::move(collective)) {}
  uint32_t rank() const override { return static_cast<uint32_t>(collective_->rank()); }
  uint32_t replicas() const override { return static_cast<uint32_t>(collective_->size()); }
  void all_reduce(std::span<float> values) override {
    together([&] { collective_->all_reduce(values); });
  }
  void all_reduce_bfloat16(std::span<float> values) override {
    together([&] { collective_->all_reduce_bfloat16(values); });
  }
  void broadcast(std::span<std::byte> bytes) override {
    together([&] { collective_->broadcast(bytes, 0); });
  }

 private:
  std::unique_ptr<transport::Collective> collective_;
};

}  // namespace

std::unique_ptr<training::Reducer> meet_replicas(const api::Launch& launch,
                                                 const api::TrainingJob& job,
                                                 transport::Listener& listener,
                                                 const std::stop_token& stop) {
  const int replicas = api::rank_count(job.spec);
  if (replicas != launch.replicas) {
    throw InvalidInput("the job has " + std::to_string(replicas) +
                       " ranks, this process was told of " + std::to_string(launch.replicas) +
                       " (--replicas)");
  }
  if (replicas == 1) return nullptr;
  transport::CollectiveOptions options;
  options.rank = launch.rank;
  options.size = replicas;
  options.attempt = launch.attempt;
  options.join_limit = job.spec.startup_deadline;
  options.limit = job.spec.progress_deadline;  // rank 0 evaluates and saves while the others wait
  options.stop = stop;
  if (launch.rank == 0) {
    return std::make_unique<CollectiveReducer>(
        together([&] { return transport::Collective::host(listener, options); }));
  }
  const auto address =
      transport::parse_address(launch.rendezvous, static_cast<uint16_t>(api::kJoinPort));
  log::info("rank {} meets the others at {}", launch.rank, launch.rendezvous);
  const std::string token = worker::read_token(launch.token_file);
  return std::make_unique<CollectiveReducer>(
      together([&] { return transport::Collective::join(address, token, options); }));
}

}  // namespace outrigger::gpu_server
