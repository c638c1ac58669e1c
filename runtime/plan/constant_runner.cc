#include "gradflow/runtime/plan/constant_runner.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/node_kernel.h"

namespace gradflow {
namespace {

constexpr int64_t kNodeWork = 1'000;
// BlockSizeForCost() aims at blocks of this work. Loops call StopToken::Check() before each block.
constexpr int64_t kBlockWork = 20'000;

// The work of matrix libraries, which do not check whether to stop. Their time grows with the cube
// of the matrix size.
int64_t LibraryWork(const Node& node, absl::Span<const Tensor> inputs) {
  if (node.op().api().group != "linalg_ops") return 0;
  double work = 0;
  for (const Tensor& input : inputs) {
    work += std::pow(static_cast<double>(input.NumElements()), 1.5);
  }
  return static_cast<int64_t>(std::min(work, 2.0 * PlanBudget::kMaxFoldingWork));
}

int64_t TotalBytes(absl::Span<const Tensor> tensors) {
  int64_t bytes = 0;
  for (const Tensor& tensor : tensors) bytes += static_cast<int64_t>(tensor.TotalBytes());
  return bytes;
}

// Allocates from the system, up to a limit in bytes.
class LimitedAllocator final : public Allocator {
 public:
  explicit LimitedAllocator(int64_t limit) : left_(limit) {}

  void* Allocate(size_t bytes) override {
    if (!Reserve(bytes)) return nullptr;
    void* const block = SystemAllocator()->Allocate(bytes);
    if (block == nullptr) Release(bytes);
    return block;
  }
  void Deallocate(void* block, size_t bytes) override {
    SystemAllocator()->Deallocate(block, bytes);
    Release(bytes);
  }
  bool Reserve(size_t bytes) override {
    // No limit allows more, and larger sums could overflow.
    constexpr size_t kMax = size_t{1} << 60;
    if (bytes > kMax) return false;
    if (left_.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed) >=
        static_cast<int64_t>(bytes)) {
      return true;
    }
    Release(bytes);
    return false;
  }
  void Release(size_t bytes) override {
    left_.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  }

 private:
  std::atomic<int64_t> left_;
};

}  // namespace

ConstantRunner::ConstantRunner(const PassContext& context, int64_t max_bytes, int64_t held_bytes)
    : limits_(context.limits),
      max_bytes_(max_bytes),
      work_left_(context.budget->folding_work),
      allocator_(std::make_shared<LimitedAllocator>(max_bytes - held_bytes)),
      stop_(context.limits.cancelled, context.limits.closed) {}

absl::Status ConstantRunner::StopError(const PlanOrigin& node) const {
  return errors::Prefix(absl::StrCat(PlanNodePrefix(node), "stopped, since "),
                        WhyStopped(stop_, limits_));
}

void ConstantRunner::AllowConstant(int64_t bytes) {
  constexpr int64_t kPasses = 16;
  constexpr int64_t kCopies = 4;
  extra_work_ += kPasses * (bytes + kNodeWork);
  max_bytes_ += kCopies * bytes;
  allocator_->Release(static_cast<size_t>(kCopies * bytes));
}

void ConstantRunner::Charge(int64_t work) {
  const int64_t extra = std::min(work, extra_work_);
  extra_work_ -= extra;
  work_left_ -= work - extra;
}

absl::Status ConstantRunner::Run(const Node& node, const OpKernel& kernel,
                                 absl::Span<Tensor> inputs, std::vector<Tensor>* outputs) {
  const int64_t bytes = TotalBytes(inputs);
  if (bytes > max_bytes_) return errors::ResourceExhausted("inputs too large to fold");
  // Constants only return their value.
  if (!inputs.empty()) Charge(kNodeWork + bytes + LibraryWork(node, inputs));
  if (work_left() <= 0) return errors::ResourceExhausted("takes too much work to fold");
  const int64_t max_checks = work_left() / kBlockWork;
  StopToken stop(limits_.cancelled, limits_.closed, StopToken::MaxChecks{max_checks});
  RunContext run;
  run.stop = &stop;
  run.max_loop_threads = 1;
  run.allocator = &allocator_;
  const absl::Status status =
      CallSafely([&] { return internal::RunNodeKernel(node, kernel, inputs, run, outputs); });
  Charge((max_checks - stop.checks_left()) * kBlockWork);
  // Loops of a stopped kernel may have skipped blocks, so its status means nothing.
  if (stop.checks_left() < 0) {
    extra_work_ = 0;
    work_left_ = 0;
    return errors::ResourceExhausted("takes too much work to fold");
  }
  GRADFLOW_RETURN_IF_ERROR(status);
  GRADFLOW_RETURN_IF_ERROR(CheckStop(&stop_));
  // Includes memory that does not come from the allocator.
  const int64_t made = TotalBytes(*outputs);
  if (made > max_bytes_) return errors::ResourceExhausted("outputs too large to fold");
  Charge(made);
  return absl::OkStatus();
}

}  // namespace gradflow
