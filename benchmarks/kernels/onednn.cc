// oneDNN's batch normalization, in both layouts that it accepts without a copy.
#include "gradflow/ops/nn/onednn.h"

#include <omp.h>

#include <memory>
#include <unordered_map>
#include <vector>

#include "benchmarks/kernels/runners.h"

namespace gradflow::benchmarks {

Runner OneDnn(const KernelCase& c, int threads) {
  using dnnl::memory;
  const bool backward = c.op == Op::kBatchNormGradTraining || c.op == Op::kBatchNormGradInference;
  const bool training = c.op == Op::kBatchNormGradTraining || c.op == Op::kBatchNormTraining;
  if (!backward && c.op != Op::kBatchNormTraining && c.op != Op::kBatchNormInference) {
    return nullptr;
  }
  const auto sizes = c.shape.dim_sizes();
  const memory::dims dims = c.channels_first ? memory::dims{sizes[0], sizes[1], sizes[2], sizes[3]}
                                             : memory::dims{sizes[0], sizes[3], sizes[1], sizes[2]};
  const auto tag = c.channels_first ? memory::format_tag::nchw : memory::format_tag::nhwc;
  const memory::desc data({dims}, memory::data_type::f32, tag);
  const memory::desc vector({c.channels()}, memory::data_type::f32, memory::format_tag::a);
  auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
  if (!training) flags |= dnnl::normalization_flags::use_global_stats;

  const dnnl::engine& engine = onednn::Engine();
  dnnl::stream stream(engine);
  constexpr float kEpsilon = 1e-3f;
  const auto forward = onednn::DescribeBatchNorm(
      training || backward ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference,
      data, kEpsilon, flags);
  std::unordered_map<int, memory> args;
  std::vector<Tensor> tensors;
  const auto add = [&](int arg, const memory::desc& desc, uint32_t seed) {
    tensors.push_back(NormalTensor({static_cast<int64_t>(desc.get_size() / sizeof(float))}, seed));
    memory m(desc, engine, tensors.back().flat<float>().data());
    args.emplace(arg, m);
    return m;
  };
  add(DNNL_ARG_SRC, data, 1);
  add(DNNL_ARG_SCALE, vector, 2);
  memory variance = add(DNNL_ARG_VARIANCE, vector, 3);
  auto* values = static_cast<float*>(variance.get_data_handle());
  for (int64_t i = 0; i < c.channels(); ++i) values[i] = 1;
  add(DNNL_ARG_MEAN, vector, 4);
  add(DNNL_ARG_SHIFT, vector, 5);
  dnnl::primitive primitive;
  if (backward) {
    const auto desc = onednn::DescribeBatchNormGradient(forward, data, kEpsilon, flags);
    add(DNNL_ARG_DIFF_DST, data, 5);
    add(DNNL_ARG_DIFF_SRC, data, 6);
    add(DNNL_ARG_DIFF_SCALE, vector, 7);
    add(DNNL_ARG_DIFF_SHIFT, vector, 8);
    primitive = dnnl::batch_normalization_backward(desc);
  } else {
    add(DNNL_ARG_DST, data, 6);
    primitive = dnnl::batch_normalization_forward(forward);
  }
  return [=, keep = tensors]() mutable {
    omp_set_num_threads(threads);
    primitive.execute(stream, args);
    stream.wait();
  };
}

}  // namespace gradflow::benchmarks
