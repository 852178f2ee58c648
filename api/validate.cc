#include "api/validate.h"

#include "api/rules.h"
#include "api/schema/fields.h"

namespace outrigger::api {

std::vector<FieldError> validate(const TrainingJob& job) {
  std::vector<FieldError> errors;
  schema::struct_of<TrainingJob>().check(&job, "", errors);
  if (errors.empty()) check_rules(job, errors);
  return errors;
}

}  // namespace outrigger::api
