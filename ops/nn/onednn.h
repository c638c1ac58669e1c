// One interface for oneDNN 2.6 to 3.x. This is the only file that handles differences between the
// versions. Include only if the library is built with oneDNN.
//
// All functions throw dnnl::error on failure.
#ifndef GRADFLOW_OPS_NN_ONEDNN_H_
#define GRADFLOW_OPS_NN_ONEDNN_H_

#include "oneapi/dnnl/dnnl.hpp"

namespace gradflow::onednn {

inline const dnnl::engine& Engine() {
  static const auto* const engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

// Describes a primitive of a forward pass. `args` describe the computation in oneDNN's order:
// Describe<dnnl::convolution_forward>(attr, kind, algorithm, source, ...).
template <typename Primitive, typename... Args>
typename Primitive::primitive_desc Describe(const dnnl::primitive_attr& attr, const Args&... args) {
#if DNNL_VERSION_MAJOR < 3
  return {typename Primitive::desc(args...), attr, Engine()};
#else
  return {Engine(), args..., attr};
#endif
}

// Describes a primitive of a backward pass. `forward` describes the forward pass.
template <typename Primitive, typename Forward, typename... Args>
typename Primitive::primitive_desc DescribeGradient(const dnnl::primitive_attr& attr,
                                                    const Forward& forward, const Args&... args) {
#if DNNL_VERSION_MAJOR < 3
  return {typename Primitive::desc(args...), attr, Engine(), forward};
#else
  return {Engine(), args..., forward, attr};
#endif
}

// Describes a batch normalization whose input and output both have the layout `data`.
inline dnnl::batch_normalization_forward::primitive_desc DescribeBatchNorm(
    dnnl::prop_kind kind, const dnnl::memory::desc& data, float epsilon,
    dnnl::normalization_flags flags) {
#if DNNL_VERSION_MAJOR < 3
  return Describe<dnnl::batch_normalization_forward>({}, kind, data, epsilon, flags);
#else
  return Describe<dnnl::batch_normalization_forward>({}, kind, data, data, epsilon, flags);
#endif
}

// Describes the gradient of a batch normalization.
inline dnnl::batch_normalization_backward::primitive_desc DescribeBatchNormGradient(
    const dnnl::batch_normalization_forward::primitive_desc& forward,
    const dnnl::memory::desc& data, float epsilon, dnnl::normalization_flags flags) {
  constexpr auto kKind = dnnl::prop_kind::backward;
#if DNNL_VERSION_MAJOR < 3
  return DescribeGradient<dnnl::batch_normalization_backward>({}, forward, kKind, data, data,
                                                              epsilon, flags);
#else
  return DescribeGradient<dnnl::batch_normalization_backward>({}, forward, kKind, data, data, data,
                                                              epsilon, flags);
#endif
}

// Appends an elementwise operation that is applied to the results of a primitive.
inline void AppendElementwise(dnnl::algorithm algorithm, float alpha, float beta,
                              dnnl::post_ops* post_ops) {
#if DNNL_VERSION_MAJOR < 3
  post_ops->append_eltwise(1, algorithm, alpha, beta);
#else
  post_ops->append_eltwise(algorithm, alpha, beta);
#endif
}

}  // namespace gradflow::onednn

#endif  // GRADFLOW_OPS_NN_ONEDNN_H_
