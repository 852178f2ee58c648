#include "api/write.h"

#include "api/schema/fields.h"
#include "api/yaml_text.h"

namespace outrigger::api {

nlohmann::ordered_json to_json(const TrainingJob& job) {
  return schema::struct_of<TrainingJob>().write(&job);
}

nlohmann::ordered_json to_json(const TrainingJobStatus& status) {
  return schema::struct_of<TrainingJobStatus>().write(&status);
}

std::string to_json_text(const TrainingJob& job) { return to_json(job).dump(2) + "\n"; }

std::string to_yaml(const TrainingJob& job) { return to_yaml_text(to_json(job)); }

}  // namespace outrigger::api
