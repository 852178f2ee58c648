#include "kube/observer.h"

namespace outrigger::kube {

Observer& Observer::none() {
  static Observer observer;  // without state
  return observer;
}

}  // namespace outrigger::kube
