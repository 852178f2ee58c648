#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api/parse.h"
#include "api/write.h"
#include "common/error.h"

using namespace outrigger;

// Any text is either refused with errors, or it is a job that is written and read back to the same
// job.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const api::ParseResult result = api::resolve_training_job(text);
  for (const api::FieldError& error : result.errors) {
    ensure(!error.message.empty(), "an error says something");
  }
  if (!result.errors.empty()) return 0;
  const api::ParseResult again = api::resolve_training_job(api::to_yaml(result.job));
  ensure(again.errors.empty(), "what is written is valid");
  ensure(again.job == result.job, "what is written is the same job");
  return 0;
}
