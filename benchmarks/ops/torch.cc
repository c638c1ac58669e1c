// libtorch's ops.
#include "benchmarks/ops/cases.h"
#include "benchmarks/torch_tensors.h"

namespace gradflow::benchmarks {

Runner TorchUnique(const Tensor& x, int threads) {
  const at::Tensor keys = TorchTensor(x);
  return WithThreads(threads, [=] { at::_unique2(keys, /*sorted=*/false, /*inverse=*/true); });
}

Runner TorchSegmentSum(const Tensor& data, const Tensor& ids, int64_t segments, int threads) {
  const at::Tensor rows = TorchTensor(data);
  const at::Tensor index = TorchTensor(ids);
  return WithThreads(threads, [=] {
    at::zeros({segments, rows.size(1)}).index_add_(0, index, rows);
  });
}

Runner TorchNormal(int64_t count, int threads) {
  const at::Tensor out = at::empty({count});
  return WithThreads(threads, [=] { at::Tensor(out).normal_(); });
}

Runner TorchTopK(const Tensor& x, int k, int threads) {
  const at::Tensor values = TorchTensor(x);
  return WithThreads(threads, [=] { at::topk(values, k); });
}

}  // namespace gradflow::benchmarks
