#include "gradflow/testing/compare_kernels.h"

#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gradflow/core/status.h"
#include "gradflow/proto/node_def.pb.h"

namespace gradflow {
namespace testing {
namespace {

// The sizes of named dimensions in one round.
class RoundSizes {
 public:
  RoundSizes(std::mt19937* random, int64_t max_size) : random_(*random), max_size_(max_size) {
    const int rank = static_cast<int>(random_() % 5);
    for (int d = 0; d < rank; ++d) any_.push_back(Draw());
  }

  absl::StatusOr<TensorShape> Shape(absl::string_view text) {
    const std::string whole(text);
    if (!absl::ConsumePrefix(&text, "[") || !absl::ConsumeSuffix(&text, "]")) {
      return errors::InvalidArgument("shape '", whole, "' must be like \"[...,n,2]\"");
    }
    std::vector<int64_t> sizes;
    for (absl::string_view part : absl::StrSplit(text, ',', absl::SkipEmpty())) {
      part = absl::StripAsciiWhitespace(part);
      int64_t size = 0;
      if (part == "...") {
        sizes.insert(sizes.end(), any_.begin(), any_.end());
      } else if (absl::SimpleAtoi(part, &size)) {
        if (size < 0) return errors::InvalidArgument("shape '", whole, "' has a negative size");
        sizes.push_back(size);
      } else {
        const auto [named, is_new] = named_.try_emplace(std::string(part), 0);
        if (is_new) named->second = Draw();
        sizes.push_back(named->second);
      }
    }
    return TensorShape(sizes);
  }

 private:
  // Returns a random size. Prefers small sizes and sizes around multiples of vector sizes.
  int64_t Draw() {
    constexpr int64_t kEdgeSizes[] = {0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33};
    const auto draw = static_cast<int64_t>(random_() % 32);
    const int64_t size = draw < 16 ? kEdgeSizes[draw] : static_cast<int64_t>(random_());
    return size % (max_size_ + 1);
  }

  std::mt19937& random_;
  const int64_t max_size_;
  std::vector<int64_t> any_;
  std::map<std::string, int64_t> named_;
};

}  // namespace

CompareKernels::CompareKernels(absl::string_view op, absl::string_view label,
                               const Registry& registry)
    : tester_(op, registry), label_(label) {}

CompareKernels& CompareKernels::Input(absl::string_view shape, const Distribution& distribution,
                                      DataType dtype) {
  inputs_.push_back({std::string(shape), distribution, dtype, std::nullopt});
  return *this;
}

CompareKernels& CompareKernels::Input(const Tensor& tensor) {
  inputs_.push_back({"", Distribution(), tensor.dtype(), tensor});
  return *this;
}

::testing::AssertionResult CompareKernels::Run() const {
  const auto failure = [&] {
    return ::testing::AssertionFailure()
           << "kernel '" << label_ << "' of '" << tester_.node().op() << "': ";
  };
  if (max_size_ < 0) return failure() << "MaxSize(" << max_size_ << ") is negative";
  std::mt19937 random(seed_);
  absl::Status last_error;
  bool succeeded = false;
  for (int round = 0; round < rounds_; ++round) {
    RoundSizes sizes(&random, max_size_);
    OpTester built_in = tester_;
    std::string shapes;
    for (const InputSpec& input : inputs_) {
      absl::StatusOr<TensorShape> shape =
          input.tensor.has_value() ? input.tensor->shape() : sizes.Shape(input.shape);
      if (!shape.ok()) return failure() << shape.status();
      absl::StrAppend(&shapes, shapes.empty() ? "" : ", ", shape->DebugString());
      built_in.Input(input.tensor.has_value()
                         ? *input.tensor
                         : RandomTensor(input.dtype, *shape, input.distribution, random()));
    }
    OpTester other = built_in;
    other.KernelLabel(label_);
    for (OpTester* tester : {&built_in, &other}) {
      const absl::Status made = tester->MakeKernel();
      if (!made.ok()) {
        return failure() << (tester == &other ? "it" : "the built-in one")
                         << " cannot be made: " << made;
      }
    }

    const std::string where =
        absl::StrCat("round ", round, ", seed ", seed_, ", input shapes ", shapes);
    // Uses several threads, as graphs do.
    const auto expected = built_in.RunOnThreads(2);
    const auto actual = other.RunOnThreads(2);
    if (expected.status().code() != actual.status().code()) {
      return failure() << where << ": returns " << actual.status() << ", the built-in one "
                       << expected.status();
    }
    if (!expected.ok()) {
      last_error = expected.status();
      continue;
    }
    succeeded = true;
    const size_t compared =
        outputs_ < 0 ? expected->size() : std::min(expected->size(), static_cast<size_t>(outputs_));
    for (size_t i = 0; i < compared; ++i) {
      const Tensor& wanted = (*expected)[i];
      const TensorDiff diff = DiffTensors((*actual)[i], wanted,
                                          tolerance_.value_or(Tolerance::ForType(wanted.dtype())));
      if (!diff.ok()) return failure() << where << ", output " << i << ": " << diff.Text();
    }
  }
  if (!succeeded) {
    return failure() << "the built-in kernel failed in all rounds; the last error is "
                     << last_error;
  }
  return ::testing::AssertionSuccess();
}

}  // namespace testing
}  // namespace gradflow
