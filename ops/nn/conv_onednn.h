// Helpers for convolutions with oneDNN. Include only if the library is built with oneDNN.
#ifndef GRADFLOW_OPS_NN_CONV_ONEDNN_H_
#define GRADFLOW_OPS_NN_CONV_ONEDNN_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gradflow/core/mutex.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/status.h"
#include "gradflow/core/tensor.h"
#include "gradflow/ops/linalg/openmp.h"
#include "gradflow/ops/nn/conv_engine.h"
#include "gradflow/ops/nn/conv_geometry.h"
#include "gradflow/ops/nn/onednn.h"

namespace gradflow::onednn {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
inline constexpr auto kFloat = dnnl::memory::data_type::f32;

// Wraps memory that the caller owns. oneDNN does not write to inputs.
inline dnnl::memory Memory(const Desc& desc, const void* data) {
  return dnnl::memory(desc, Engine(), const_cast<void*>(data));
}

// Returns the number of floats of a tensor, rounded up to whole cache lines.
inline int64_t Floats(const Desc& desc) {
  return static_cast<int64_t>((desc.get_size() + 63) / 64 * 16);
}

// The caller provides scratch memory, and products are computed in float.
inline void SetModes(dnnl::primitive_attr* attr) {
  attr->set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attr->set_fpmath_mode(dnnl::fpmath_mode::strict);
}

// ---- Sizes, of the convolution `g` or a part of it ----

// Returns the spatial dimensions of oneDNN's tensors: two if the first of the three has size 1.
inline dnnl::memory::dims Spatial(const ConvGeometry& g, const ConvSizes& sizes) {
  const bool two = g.in[0] == 1 && g.out[0] == 1 && g.filter[0] == 1;
  return dnnl::memory::dims(sizes.begin() + (two ? 1 : 0), sizes.end());
}

inline dnnl::memory::dims FilterDims(const ConvGeometry& g, const ConvGeometry& part) {
  dnnl::memory::dims dims;
  if (part.groups > 1) dims.push_back(part.groups);
  dims.push_back(part.group_out_depth());
  dims.push_back(part.group_in_depth());
  for (const int64_t size : Spatial(g, part.filter)) dims.push_back(size);
  return dims;
}

// Describes the filter in the layout that oneDNN prefers.
inline Desc AnyFilter(const ConvGeometry& g, const ConvGeometry& part) {
  return Desc(FilterDims(g, part), kFloat, Tag::any);
}

// Describes the filter of a part within the plain filter of all groups and channels.
inline Desc PlainFilter(const ConvGeometry& g, const ConvGeometry& part) {
  dnnl::memory::dims strides;
  if (part.groups > 1) strides.push_back(part.group_out_depth());
  strides.push_back(1);
  strides.push_back(g.out_depth);
  int64_t stride = g.out_depth * g.group_in_depth();
  dnnl::memory::dims spatial = Spatial(g, part.filter);
  for (size_t s = spatial.size(); s-- > 0;) stride *= std::exchange(spatial[s], stride);
  strides.insert(strides.end(), spatial.begin(), spatial.end());
  return Desc(FilterDims(g, part), kFloat, strides);
}

// The strides, dilations and padding of a part of the convolution.
struct ConvDims {
  ConvDims(const ConvGeometry& g, const ConvGeometry& part)
      : strides(Spatial(g, part.stride)), before(Spatial(g, part.pad)) {
    ConvSizes behind;
    ConvSizes dilation;
    for (size_t s = 0; s < kConvSpatial; ++s) {
      const int64_t span = (part.filter[s] - 1) * part.dilation[s] + 1;
      behind[s] = std::max<int64_t>(
          0, (part.out[s] - 1) * part.stride[s] + span - part.in[s] - part.pad[s]);
      dilation[s] = part.dilation[s] - 1;
    }
    after = Spatial(g, behind);
    dilations = Spatial(g, dilation);
  }

  dnnl::memory::dims strides;
  dnnl::memory::dims before;
  dnnl::memory::dims after;
  dnnl::memory::dims dilations;
};

// ---- Runs ----

// The plans that a kernel keeps, most recently used first. Thread-safe.
template <typename Plan>
class RecentPlans {
 public:
  // Returns the kept plan that satisfies is_wanted(plan). If there is no such plan, keeps and
  // returns make().
  template <typename IsWanted, typename Make>
  std::shared_ptr<const Plan> FindOrMake(const IsWanted& is_wanted, const Make& make) {
    {
      MutexLock lock(&mutex_);
      const auto found = std::find_if(plans_.begin(), plans_.end(),
                                      [&](const auto& plan) { return is_wanted(*plan); });
      if (found != plans_.end()) {
        std::rotate(plans_.begin(), found, found + 1);
        return plans_.front();
      }
    }
    std::shared_ptr<const Plan> plan = make();
    MutexLock lock(&mutex_);
    plans_.insert(plans_.begin(), plan);
    if (plans_.size() > kMaxPlans) plans_.pop_back();
    return plan;
  }

 private:
  // The maximum number of plans. Older plans are dropped, and made again if they are needed.
  static constexpr size_t kMaxPlans = 8;

  Mutex mutex_;
  std::vector<std::shared_ptr<const Plan>> plans_ ABSL_GUARDED_BY(mutex_);
};

inline void Execute(const dnnl::primitive& primitive,
                    const std::unordered_map<int, dnnl::memory>& args) {
  dnnl::stream stream(Engine());
  primitive.execute(stream, args);
  stream.wait();
}

// Calls fn(i, buffer) concurrently for i in [0, n), with a buffer of `floats` floats.
template <typename F>
absl::Status ForEach(KernelContext& ctx, int64_t n, int64_t floats, const F& fn) {
  SharedStatus status;
  ParallelFor(ctx, n, 1, [&](int64_t begin, int64_t end) {
    Tensor buffer;
    if (floats > 0) {
      auto allocated = Tensor::Allocate(ctx.allocator(), DT_FLOAT, {floats});
      if (!allocated.ok()) return status.Update(allocated.status());
      buffer = *std::move(allocated);
    }
    const OneOpenMpThread one_thread;
    try {
      for (int64_t i = begin; i < end; ++i) fn(i, static_cast<float*>(buffer.raw_data()));
    } catch (const std::bad_alloc&) {
      status.Update(errors::ResourceExhausted("out of memory"));
    } catch (const dnnl::error& error) {
      status.Update(errors::Internal("oneDNN failed: ", error.what()));
    }
  });
  return status.Get();
}

}  // namespace gradflow::onednn

#endif  // GRADFLOW_OPS_NN_CONV_ONEDNN_H_
