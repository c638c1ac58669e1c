// The number of row splits of a ragged tensor.
#ifndef GRADFLOW_OPS_COMMON_ROW_SPLITS_H_
#define GRADFLOW_OPS_COMMON_ROW_SPLITS_H_

#include <cstdint>
#include <limits>

#include "absl/status/statusor.h"
#include "gradflow/core/status.h"

namespace gradflow {

// Returns the number of splits of `rows` rows, or -1 if `rows` is negative: not known. Returns
// INVALID_ARGUMENT if the number exceeds int64.
inline absl::StatusOr<int64_t> NumRowSplits(int64_t rows) {
  if (rows < 0) return -1;
  if (rows < std::numeric_limits<int64_t>::max()) return rows + 1;
  return errors::InvalidArgument("a ragged tensor must have less than 2^63 - 1 rows, but has ",
                                 rows);
}

}  // namespace gradflow

#endif  // GRADFLOW_OPS_COMMON_ROW_SPLITS_H_
