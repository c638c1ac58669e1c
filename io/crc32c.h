// CRC-32C (Castagnoli), the checksum of checkpoints and of tables. Internal.
#ifndef GRADFLOW_IO_CRC32C_H_
#define GRADFLOW_IO_CRC32C_H_

#include <cstdint>

#include "absl/strings/string_view.h"

#pragma GCC visibility push(default)
namespace gradflow::internal {

// Extends `crc` with `bytes`; start with 0. Uses the processor's CRC-32C instruction if it exists.
uint32_t ExtendCrc32c(uint32_t crc, absl::string_view bytes);
// Like ExtendCrc32c(), without the instruction.
uint32_t ExtendCrc32cPortable(uint32_t crc, absl::string_view bytes);

// Files store masked checksums, because the checksum of bytes that contain their own checksum is a
// weak check.
inline uint32_t MaskCrc(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }
inline uint32_t UnmaskCrc(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

}  // namespace gradflow::internal
#pragma GCC visibility pop

#endif  // GRADFLOW_IO_CRC32C_H_
