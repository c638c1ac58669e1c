// ResourceBase: reference-counted kernel state that outlives a run.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_RESOURCE_BASE_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_RESOURCE_BASE_H_

#include <cstdint>
#include <string>

#include "tensorflow/core/lib/core/stringpiece.h"
#include "tensorflow/core/platform/refcount.h"

namespace tensorflow {

class ResourceBase : public core::WeakRefCounted {
 public:
  // Return a description in one line. Classes override one of these functions; TensorFlow 1.x has
  // the second.
  virtual std::string DebugString() const { return ""; }
  virtual std::string DebugString() {
    return static_cast<const ResourceBase*>(this)->DebugString();
  }
  virtual int64_t MemoryUsed() const { return 0; }
  // Called by ResourceMgr::Finalize.
  virtual void Finalize() {}
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_RESOURCE_BASE_H_
