#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "common/error.h"
#include "common/file.h"
#include "nn/safetensors.h"

using namespace outrigger;

namespace {

// A file in memory that holds the input; made once.
const FileDescriptor& memory_file() {
  static const FileDescriptor file(::memfd_create("safetensors", MFD_CLOEXEC));
  return file;
}

}  // namespace

// A whole file from anybody: it is refused with InvalidInput, or every tensor can be read. Tensors
// fill the file without overlap, so what is read is never more than the input.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int fd = memory_file().get();
  if (fd < 0 || ::ftruncate(fd, 0) != 0 ||
      ::pwrite(fd, data, size, 0) != static_cast<ssize_t>(size))
    std::abort();
  try {
    const nn::SafetensorsReader reader("/proc/self/fd/" + std::to_string(fd));
    size_t bytes = 0;
    for (const nn::StoredTensor& tensor : reader.tensors()) {
      bytes += tensor.end - tensor.begin;
      try {
        reader.read(tensor);
      } catch (const InvalidInput&) {
      }
      try {
        reader.read_integers(tensor);
      } catch (const InvalidInput&) {
      }
    }
    if (bytes > size) std::abort();
  } catch (const InvalidInput&) {
  }
  return 0;
}
