// Caches of open checkpoints. gradflow opens the files for each read, and caches nothing.
#ifndef GRADFLOW_COMPAT_CORE_UTIL_TENSOR_SLICE_READER_CACHE_H_
#define GRADFLOW_COMPAT_CORE_UTIL_TENSOR_SLICE_READER_CACHE_H_

#include "tensorflow/core/util/tensor_slice_reader.h"

namespace tensorflow {
namespace checkpoint {

class TensorSliceReaderCacheWrapper {};

}  // namespace checkpoint
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_UTIL_TENSOR_SLICE_READER_CACHE_H_
