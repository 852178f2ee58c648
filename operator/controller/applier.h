#pragma once

#include <chrono>
#include <string>

#include "kube/client/client.h"
#include "operator/controller/memory.h"
#include "operator/plan.h"

namespace outrigger::controller {

/// Carries out the actions of one job's plan, in order. Not thread-safe; cheap to make.
class Applier {
 public:
  /// All references must outlive this.
  Applier(kube::Client& client, const api::TrainingJob& job, JobMemory& memory)
      : client_(client), job_(job), memory_(memory) {}

  enum class Outcome {
    kDone,     // all of it
    kRefused,  // something was refused, which is in the memory: plan again
    kStale     // the world is not as it was observed: plan again once the caches show it
  };
  /// Throws ApiError for an answer that only time mends, IoError where there is none.
  Outcome apply(const Plan& plan);

 private:
  kube::Result<Json> send(const Create& create);
  Outcome carry_out(const Create& create);
  Outcome carry_out(const Remove& remove);
  Outcome carry_out(const Patch& patch);
  Outcome carry_out(const Scale& scale);
  Outcome look_at_existing(const Create& create, const std::string& child);
  /// `child` as in child_name(); `object` as it is now, of which a pod's UID and version are
  /// needed.
  void remember(const Create& create, const std::string& child, const Json& object);
  Outcome refuse(const Create& create, const std::string& child, RefusalCause cause,
                 const std::string& message, std::chrono::seconds patience = Refusal().patience);

  kube::Client& client_;
  const api::TrainingJob& job_;
  JobMemory& memory_;
  int attempt_ = 0;  // that the plan is for; the job that was observed may not tell of it yet
};

}  // namespace outrigger::controller
