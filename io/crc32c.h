// CRC-32C (Castagnoli), the checksum of checkpoints and of tables. Internal.
#ifndef GRADFLOW_IO_CRC32C_H_
#define GRADFLOW_IO_CRC32C_H_

#include <cstdint>

#include "absl/strings/string_view.h"

#pragma GCC visibility push(default)
namespace gradflow::internal {

// Returns the checksum of the bytes that `crc` is that of, followed by `bytes`. That of no bytes is
// 0. Uses the instruction of the processor, if it has one.
uint32_t ExtendCrc32c(uint32_t crc, absl::string_view bytes);
// ExtendCrc32c() that does not use the instruction.
uint32_t ExtendCrc32cPortable(uint32_t crc, absl::string_view bytes);

// Files store masked checksums, so that a checksum of bytes with checksums differs from them.
inline uint32_t MaskCrc(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }
inline uint32_t UnmaskCrc(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

}  // namespace gradflow::internal
#pragma GCC visibility pop

#endif  // GRADFLOW_IO_CRC32C_H_
