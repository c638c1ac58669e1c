#include "benchmarks/conv/onednn.h"

#include <omp.h>

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmarks/fill_normal.h"
#include "gradflow/core/tensor.h"
#include "gradflow/ops/nn/onednn.h"

namespace gradflow::benchmarks {

std::string ConvCase::DebugString() const {
  return absl::StrCat(size, "x", size, "x", in_depth, " ", filter, "x", filter, "x", out_depth,
                      " /", stride, " (", layers, ")");
}

std::function<void()> OneDnn(const ConvCase& c, Pass pass, int64_t batch, int threads, bool plain) {
  using dnnl::memory;
  // Primitives are created for a fixed number of threads.
  omp_set_num_threads(threads);
  const dnnl::engine& engine = onednn::Engine();
  constexpr auto kFloat = memory::data_type::f32;
  const memory::desc x({batch, c.in_depth, c.size, c.size}, kFloat, memory::format_tag::nhwc);
  const memory::desc y({batch, c.out_depth, c.out(), c.out()}, kFloat, memory::format_tag::nhwc);
  const memory::desc f({c.out_depth, c.in_depth, c.filter, c.filter}, kFloat,
                       plain ? memory::format_tag::hwio : memory::format_tag::any);
  const int64_t padding = std::max<int64_t>(0, (c.out() - 1) * c.stride + c.filter - c.size);
  const memory::dims strides = {c.stride, c.stride};
  const memory::dims before = {padding / 2, padding / 2};
  const memory::dims after = {padding - padding / 2, padding - padding / 2};
  constexpr auto kDirect = dnnl::algorithm::convolution_direct;
  const bool forward = pass == Pass::kForward;
  const auto desc = onednn::Describe<dnnl::convolution_forward>(
      {}, forward ? dnnl::prop_kind::forward_inference : dnnl::prop_kind::forward_training, kDirect,
      x, f, y, strides, before, after);
  std::unordered_map<int, memory> args;
  std::vector<Tensor> tensors;
  const auto add = [&](int arg, const memory::desc& layout, uint32_t seed) {
    tensors.emplace_back(DT_FLOAT,
                         TensorShape({static_cast<int64_t>(layout.get_size() / sizeof(float))}));
    FillNormal(tensors.back().flat<float>().data(), tensors.back().NumElements(), seed);
    args.emplace(arg, memory(layout, engine, tensors.back().flat<float>().data()));
  };
  dnnl::primitive primitive;
  if (forward) {
    add(DNNL_ARG_SRC, x, 1);
    add(DNNL_ARG_WEIGHTS, desc.weights_desc(), 2);
    add(DNNL_ARG_DST, y, 3);
    primitive = dnnl::convolution_forward(desc);
  } else if (pass == Pass::kInputGradient) {
    const auto gradient = onednn::DescribeGradient<dnnl::convolution_backward_data>(
        {}, desc, kDirect, x, f, y, strides, before, after);
    add(DNNL_ARG_DIFF_SRC, x, 1);
    add(DNNL_ARG_WEIGHTS, gradient.weights_desc(), 2);
    add(DNNL_ARG_DIFF_DST, y, 3);
    primitive = dnnl::convolution_backward_data(gradient);
  } else {
    const auto gradient = onednn::DescribeGradient<dnnl::convolution_backward_weights>(
        {}, desc, kDirect, x, f, y, strides, before, after);
    add(DNNL_ARG_SRC, x, 1);
    add(DNNL_ARG_DIFF_WEIGHTS, gradient.diff_weights_desc(), 2);
    add(DNNL_ARG_DIFF_DST, y, 3);
    primitive = dnnl::convolution_backward_weights(gradient);
  }
  const auto stream = std::make_shared<dnnl::stream>(engine);
  // The tensors are captured because `args` points to their memory.
  return [threads, primitive, stream, args, tensors] {
    omp_set_num_threads(threads);
    primitive.execute(*stream, args);
    stream->wait();
  };
}

}  // namespace gradflow::benchmarks
