#include "feed/messages.h"

namespace outrigger::feed {

std::string to_string(const WorkKey& key) {
  return "(incarnation " + std::to_string(key.incarnation) + ", step " + std::to_string(key.step) +
         ", index " + std::to_string(key.index) + ", attempt " + std::to_string(key.attempt) + ")";
}

}  // namespace outrigger::feed
