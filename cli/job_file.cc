#include "cli/job_file.h"

#include <cstdint>
#include <utility>

#include "api/roles.h"
#include "cli/network.h"
#include "common/error.h"
#include "gpu-server/job/job_plan.h"
#include "worker/job.h"

namespace outrigger::cli {
namespace {

/// Why a run would not take the job's plan on this network; empty: it would.
std::string plan_fault(const api::TrainingJob& job, const nn::Graph& network) {
  gpu_server::RunSize size;
  size.batch = static_cast<uint32_t>(job.spec.training.batch_size);
  size.micro_batches =
      size.batch / static_cast<uint32_t>(worker::micro_batch(job) * api::rank_count(job.spec));
  try {
    static_cast<void>(gpu_server::make_plan(job, network, size, 1));
    return "";
  } catch (const InvalidInput& error) {
    return error.what();
  }
}

/// A text that begins with the field of which it is; nothing of another.
std::optional<api::FieldError> by_field(const std::string& text) {
  const size_t end = text.find(": ");
  if (!text.starts_with("spec.") || end == text.npos) return std::nullopt;
  return api::FieldError{text.substr(0, end), text.substr(end + 2)};
}

/// What a run refuses however many classes its data has: each leaves the server a larger part.
std::optional<api::FieldError> plan_fault(const api::TrainingJob& job) {
  constexpr int64_t kFewest = 2;
  constexpr int64_t kVeryMany = 1'000'000;
  const auto few = network_of(job, kFewest);
  const auto many = network_of(job, kVeryMany);
  if (!few || !many) return std::nullopt;
  const std::string of_few = plan_fault(job, *few);
  const std::string of_many = plan_fault(job, *many);
  if (of_few.empty() || of_many.empty()) return std::nullopt;
  api::FieldError fault = by_field(of_few).value_or(api::FieldError{"spec.split", of_few});
  if (of_few != of_many)
    fault.message +=
        " (with 2 classes; with more the server's part is larger, but not even with a million "
        "large enough)";
  return fault;
}

}  // namespace

std::optional<api::FieldError> network_fault(const api::TrainingJob& job) {
  if (job.spec.server.engine == api::Engine::kExternal) return std::nullopt;
  const char* field = "spec.model";
  try {
    const auto network = network_of(job);
    const std::string& cut = job.spec.split.cut;
    field = "spec.split.cut";
    if (network && cut != api::kCutAuto) static_cast<void>(network->cut(cut));
    return plan_fault(job);
  } catch (const InvalidInput& error) {
    return api::FieldError{field, error.what()};
  }
}

std::string JobFile::located(const std::string& text) const {
  auto error = by_field(text);
  if (!error || text.find('\n') != text.npos) return text;
  return api::to_string(api::located(std::move(*error), places_), path_.string());
}

void JobFile::check_network() const {
  if (auto fault = network_fault(job_))
    throw InvalidInput(api::to_string(api::located(std::move(*fault), places_), path_.string()));
}

JobFile load_job_file(const std::filesystem::path& path) {
  return {path, api::load_with_places(path)};
}

}  // namespace outrigger::cli
