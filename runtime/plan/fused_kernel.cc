#include "gradflow/runtime/plan/fused_kernel.h"

#include <algorithm>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "gradflow/core/status.h"

namespace gradflow {
namespace {

// The number of elements that all steps process before they continue with the next elements. This
// number of elements fits in the L1 cache.
constexpr int64_t kElementsAtOnce = 4096;

// Borrowed inputs of one or more links.
using Inputs = absl::InlinedVector<Tensor, 8>;

// Appends the inputs of a link. The input that is the previous link's output is unset.
void AppendInputs(const KernelContext& ctx, const FusedKernel::Link& link, Inputs* inputs) {
  int next = link.first_input;
  for (int i = 0; i < link.num_inputs; ++i) {
    if (i == link.input) {
      inputs->emplace_back(Tensor::Unset{});
    } else {
      inputs->emplace_back(Tensor::Borrow(), ctx.input(next++));
    }
  }
}

}  // namespace

FusedKernel::FusedKernel(const FusibleKernel* head, std::vector<Link> links)
    : head_(head), links_(std::move(links)) {
  for (size_t i = 1; i < links_.size(); ++i) {
    const Link& before = links_[i - 1];
    links_[i].first_input = before.first_input + before.num_inputs - (i > 1 ? 1 : 0);
    num_step_inputs_ += static_cast<size_t>(links_[i].num_inputs);
  }
}

// The steps of one run.
class FusedKernel::Steps final : public FusedSteps {
 public:
  Steps(const FusedKernel& kernel, const KernelContext& ctx) : kernel_(kernel), ctx_(ctx) {}

  bool Prepare(const TensorShape& shape) override {
    // Steps may borrow the tensors, so growth must not move them.
    inputs_.reserve(kernel_.num_step_inputs_);
    for (size_t i = 1; i < kernel_.links_.size(); ++i) {
      const Link& link = kernel_.links_[i];
      const size_t begin = inputs_.size();
      AppendInputs(ctx_, link, &inputs_);
      steps_.push_back(link.step->MakeStep(ctx_.run(), absl::MakeConstSpan(inputs_).subspan(begin),
                                           link.input, shape));
      if (steps_.back() == nullptr) return false;
    }
    return true;
  }

  void Apply(const ResultPart& part) const override {
    const int64_t rows = std::max<int64_t>(1, kElementsAtOnce / std::max<int64_t>(part.columns, 1));
    for (int64_t i = 0; i < part.rows; i += rows) {
      const ResultPart piece = {part.data + i * part.stride,   part.stride, part.row + i,
                                std::min(rows, part.rows - i), part.column, part.columns};
      for (const std::unique_ptr<FusedStep>& step : steps_) step->Apply(piece);
    }
  }

 private:
  const FusedKernel& kernel_;
  const KernelContext& ctx_;
  // The tensors that the steps borrow.
  Inputs inputs_;
  absl::InlinedVector<std::unique_ptr<FusedStep>, 8> steps_;
};

absl::Status FusedKernel::Compute(KernelContext& ctx) const {
  Inputs inputs;
  AppendInputs(ctx, links_[0], &inputs);
  Steps steps(*this, ctx);
  KernelContext head_ctx = ctx.WithInputs(absl::MakeSpan(inputs));
  bool done = false;
  GRADFLOW_RETURN_IF_ERROR(head_->ComputeFused(head_ctx, &steps, &done));
  return done ? absl::OkStatus() : ComputeOneByOne(ctx);
}

absl::Status FusedKernel::ComputeOneByOne(KernelContext& ctx) const {
  Tensor result(Tensor::Unset{});
  for (size_t i = 0; i < links_.size(); ++i) {
    const Link& link = links_[i];
    Inputs inputs;
    AppendInputs(ctx, link, &inputs);
    if (i > 0) inputs[static_cast<size_t>(link.input)] = std::move(result);
    std::vector<Tensor> outputs(link.output_types.size(), Tensor(Tensor::Unset{}));
    KernelContext link_ctx(absl::MakeSpan(inputs), absl::MakeSpan(outputs), link.output_types,
                           ctx.run());
    GRADFLOW_RETURN_IF_ERROR(link.kernel->Compute(link_ctx));
    result = std::move(outputs[0]);
  }
  ctx.set_output(0, std::move(result));
  return absl::OkStatus();
}

}  // namespace gradflow
