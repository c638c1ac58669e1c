#include "tensorflow/core/platform/random.h"

#include <mutex>
#include <random>

namespace tensorflow {
namespace random {

uint64 New64() {
  static auto* const mutex = new std::mutex;
  static auto* const generator = new std::mt19937_64([] {
    std::random_device device;
    return (uint64{device()} << 32) | device();
  }());
  const std::lock_guard<std::mutex> lock(*mutex);
  return (*generator)();
}

uint64 New64DefaultSeed() { return New64(); }

}  // namespace random
}  // namespace tensorflow
