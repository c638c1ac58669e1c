#include "gradflow/ops/array/paddings.h"

#include <utility>
#include <vector>

#include "gradflow/core/status.h"

namespace gradflow {

absl::StatusOr<Paddings> MakePaddings(absl::string_view name, absl::Span<const int64_t> values) {
  Paddings paddings;
  for (size_t i = 0; i + 1 < values.size(); i += 2) {
    for (size_t k = 0; k < 2; ++k) {
      if (values[i + k] < 0) {
        return errors::InvalidArgument(name, "[", i / 2, ",", k, "] must not be negative, but is ",
                                       values[i + k]);
      }
    }
    paddings.push_back({values[i], values[i + 1]});
  }
  return paddings;
}

absl::Status CheckPaddingsShape(absl::string_view name, const PartialTensorShape& paddings,
                                absl::string_view padded_name, const PartialTensorShape& padded) {
  if (paddings.IsCompatibleWith(PartialTensorShape({padded.dims(), 2}))) return absl::OkStatus();
  return errors::InvalidArgument(name, " must have shape [",
                                 padded.unknown_rank() ? "?" : absl::StrCat(padded.dims()),
                                 ",2], a row for each dimension of ", padded_name, ", of shape ",
                                 padded.DebugString(), ", but has shape ", paddings.DebugString());
}

absl::StatusOr<Paddings> ReadPaddings(const KernelContext& ctx, int i, absl::string_view name) {
  GRADFLOW_RETURN_IF_ERROR(
      CheckPaddingsShape(name, ctx.input(i).shape(), "input", ctx.input(0).shape()));
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector values, ctx.Ints(i, name));
  return MakePaddings(name, values);
}

absl::StatusOr<KnownPaddings> ReadPaddings(const ShapeContext& c, int i) {
  KnownPaddings paddings;
  paddings.input = c.input(0);
  const std::string name = c.input_name(i);
  GRADFLOW_RETURN_IF_ERROR(CheckPaddingsShape(name, c.input(i), c.input_name(0), c.input(0)));
  const int64_t rank = c.Dim(i, 0);
  if (rank > kMaxDims) {
    return errors::InvalidArgument(name, " must have at most ", kMaxDims, " rows, but has ", rank);
  }
  if (rank >= 0 && c.input(0).unknown_rank()) {
    paddings.input = PartialTensorShape::UnknownOfRank(static_cast<int>(rank));
  }
  std::vector<int64_t> values;
  GRADFLOW_ASSIGN_OR_RETURN(paddings.known, c.IntsFromInput(i, &values));
  if (paddings.known) {
    GRADFLOW_ASSIGN_OR_RETURN(paddings.rows, MakePaddings(name, values));
  }
  return paddings;
}

absl::StatusOr<PartialTensorShape> PaddedShape(const PartialTensorShape& shape,
                                               const Paddings& paddings) {
  DimVector dims;
  for (int d = 0; d < shape.dims(); ++d) {
    int64_t size = shape.dim_size(d);
    if (size >= 0 && (__builtin_add_overflow(size, paddings[d].before, &size) ||
                      __builtin_add_overflow(size, paddings[d].after, &size))) {
      return errors::InvalidArgument("dimension ", d, " of input, of shape ", shape.DebugString(),
                                     ", padded by ", paddings[d].before, " and ", paddings[d].after,
                                     " is more than 2^63 - 1");
    }
    dims.push_back(size);
  }
  absl::StatusOr<PartialTensorShape> padded = PartialTensorShape::Make(dims);
  if (!padded.ok()) return errors::Prefix("padded input: ", padded.status());
  return padded;
}

}  // namespace gradflow
