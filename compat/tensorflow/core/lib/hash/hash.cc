#include "tensorflow/core/lib/hash/hash.h"

namespace tensorflow {

// FNV-1a with a final mixing of the bits.
uint64 Hash64(const char* data, size_t n, uint64 seed) {
  uint64 h = 0xcbf29ce484222325ULL ^ seed;
  for (size_t i = 0; i < n; ++i) {
    h = (h ^ static_cast<unsigned char>(data[i])) * 0x100000001b3ULL;
  }
  h = (h ^ h >> 33) * 0xff51afd7ed558ccdULL;
  return h ^ h >> 29;
}

}  // namespace tensorflow
