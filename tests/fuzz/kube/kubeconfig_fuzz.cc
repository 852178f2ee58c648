// Any bytes as a kubeconfig: either a configuration, or an error of ours that names the file.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "common/error.h"
#include "common/file.h"
#include "common/log.h"
#include "kube/client/config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace outrigger;
  static const TemporaryDirectory folder;
  static const bool quiet = (log::set_level(log::Level::kError), true);
  const auto path = folder.path() / (quiet ? "config" : "");
  write_file_atomically(path, {reinterpret_cast<const char*>(data), size});
  for (const char* context : {"", "second"}) {
    try {
      if (kube::read_kubeconfig(path, context).server.empty()) std::abort();
    } catch (const InvalidInput& error) {
      if (std::string_view(error.what()).find(path.string()) == std::string_view::npos)
        std::abort();
    }
  }
  return 0;
}
