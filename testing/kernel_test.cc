#include "gradflow/testing/kernel_test.h"

#include <utility>

#include "gradflow/core/op_def_util.h"

namespace gradflow {
namespace testing {
namespace {

const Tensor& NoOutput() {
  static const auto* const empty = new Tensor;
  return *empty;
}

}  // namespace

OpTester& KernelTest::Op(absl::string_view op, const Registry& registry) {
  outputs_.clear();
  return op_ = OpTester(op, registry);
}

const Tensor& KernelTest::output(int i) const {
  if (i >= 0 && i < num_outputs()) return outputs_[i];
  ADD_FAILURE() << "there is no output " << i << ": the last run returned " << num_outputs();
  return NoOutput();
}

const Tensor& KernelTest::output(absl::string_view name) const {
  NameRangeMap ranges;
  // The definition is known after the node has run.
  if (num_outputs() > 0 && NameRangesForNode(op_.node(), op_.op_def(), nullptr, &ranges).ok()) {
    const auto range = ranges.find(name);
    if (range != ranges.end() && range->second.first < range->second.second) {
      return output(range->second.first);
    }
  }
  ADD_FAILURE() << "there is no output '" << name << "'";
  return NoOutput();
}

absl::Status KernelTest::Keep(absl::StatusOr<std::vector<Tensor>> outputs) {
  outputs_.clear();
  if (!outputs.ok()) return outputs.status();
  outputs_ = *std::move(outputs);
  return absl::OkStatus();
}

}  // namespace testing
}  // namespace gradflow
