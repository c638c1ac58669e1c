// gradflow checkpoint: lists the tensors of a checkpoint, writes one tensor, or compares two
// checkpoints.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gradflow/core/status.h"
#include "gradflow/io/npy.h"
#include "tools/checkpoints.h"
#include "tools/commands.h"

namespace gradflow::tools {
namespace {

std::string TypeAndShape(const Checkpoint::Info& info) {
  return absl::StrCat(DataTypeString(info.dtype), " ", info.shape.DebugString());
}

absl::Status List(const Checkpoint& checkpoint, std::ostream& out) {
  double elements = 0;
  const std::vector<absl::string_view> names = checkpoint.NameViews();
  for (const absl::string_view name : names) {
    GRADFLOW_ASSIGN_OR_RETURN(const Checkpoint::Info info, checkpoint.Find(name));
    elements += static_cast<double>(info.shape.num_elements());
    out << errors::Printable(name) << ": " << TypeAndShape(info) << "\n";
  }
  out << absl::StreamFormat("%d tensors of %.0f elements\n", names.size(), elements);
  return absl::OkStatus();
}

// Returns how two tensors of the same type and shape differ; "" if their bytes are equal.
std::string Difference(const Tensor& a, const Tensor& b) {
  if (a.dtype() == DT_STRING) {
    const auto x = a.flat<tstring>();
    const auto y = b.flat<tstring>();
    return std::equal(x.begin(), x.end(), y.begin()) ? "" : "strings differ";
  }
  if (a.tensor_data() == b.tensor_data()) return "";
  const size_t size = DataTypeSize(a.dtype());
  int64_t differ = 0;
  double most = 0;
  for (int64_t i = 0; i < a.NumElements(); ++i) {
    if (a.tensor_data().substr(i * size, size) == b.tensor_data().substr(i * size, size)) continue;
    ++differ;
    double distance = 0;
    if (a.dtype() == DT_FLOAT) distance = double{a.flat<float>()(i)} - b.flat<float>()(i);
    if (a.dtype() == DT_DOUBLE) distance = a.flat<double>()(i) - b.flat<double>()(i);
    // Once `most` is NaN, it stays NaN.
    if (!std::isnan(most) && !(std::abs(distance) <= most)) most = std::abs(distance);
  }
  std::string text = absl::StrCat(differ, " of ", a.NumElements(), " elements differ");
  if (a.dtype() == DT_FLOAT || a.dtype() == DT_DOUBLE) {
    absl::StrAppendFormat(&text, ", by %g at most", most);
  }
  return text;
}

absl::Status Diff(const Checkpoint& a, const Checkpoint& b,
                  const std::shared_ptr<Allocator>& allocator, std::ostream& out) {
  const std::vector<absl::string_view> names_a = a.NameViews();
  const std::vector<absl::string_view> names_b = b.NameViews();
  std::vector<absl::string_view> names;
  std::set_union(names_a.begin(), names_a.end(), names_b.begin(), names_b.end(),
                 std::back_inserter(names));
  int different = 0;
  for (const absl::string_view name : names) {
    const absl::StatusOr<Checkpoint::Info> in_a = a.Find(name);
    const absl::StatusOr<Checkpoint::Info> in_b = b.Find(name);
    std::string text;
    if (!in_b.ok()) {
      text = "only in the first";
    } else if (!in_a.ok()) {
      text = "only in the second";
    } else if (in_a->dtype != in_b->dtype || in_a->shape != in_b->shape) {
      text = absl::StrCat(TypeAndShape(*in_a), " and ", TypeAndShape(*in_b));
    } else {
      GRADFLOW_ASSIGN_OR_RETURN(const Tensor value_a, a.Read(name, {}, allocator));
      GRADFLOW_ASSIGN_OR_RETURN(const Tensor value_b, b.Read(name, {}, allocator));
      text = Difference(value_a, value_b);
    }
    if (text.empty()) continue;
    ++different;
    out << errors::Printable(name) << ": " << text << "\n";
  }
  if (different == 0) return absl::OkStatus();
  return errors::FailedPrecondition(different, " of ", names.size(), " tensors differ");
}

}  // namespace

absl::Status CheckpointCommand(const CheckpointFlags& flags, std::ostream& out) {
  const std::shared_ptr<Allocator> allocator = LimitedAllocator(flags.limits);
  GRADFLOW_ASSIGN_OR_RETURN(const Checkpoint checkpoint,
                            OpenCheckpoint(flags.checkpoint, allocator));
  if (!flags.diff.empty()) {
    GRADFLOW_ASSIGN_OR_RETURN(const Checkpoint other, OpenCheckpoint(flags.diff, allocator));
    return Diff(checkpoint, other, allocator, out);
  }
  if (flags.tensor.empty()) return List(checkpoint, out);
  GRADFLOW_ASSIGN_OR_RETURN(const Tensor tensor, checkpoint.Read(flags.tensor, {}, allocator));
  if (!flags.output.empty()) return WriteNpy(flags.output, tensor);
  constexpr int64_t kPrintedValues = 32;
  out << errors::Printable(flags.tensor) << ": " << tensor.DebugString(kPrintedValues) << "\n";
  return absl::OkStatus();
}

}  // namespace gradflow::tools
