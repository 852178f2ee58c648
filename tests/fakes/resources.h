#pragma once

#include "kube/object/object.h"

/// Resources that tests read and write.
namespace outrigger::kube {

inline const Resource kConfigMaps{"", "v1", "configmaps", "ConfigMap"};

}  // namespace outrigger::kube
