#include "gradflow/ops/nn/cell_shapes.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/input_checks.h"

namespace gradflow {
namespace {

// Tensors of weights cannot have larger sizes, and computations with larger sizes would overflow.
constexpr int64_t kMaxSize = std::numeric_limits<int64_t>::max() / 8;

// Returns the size that a letter names directly, or null.
int64_t* BasicSize(char letter, CellSizes* sizes) {
  switch (letter) {
    case 't':
      return &sizes->steps;
    case 'b':
      return &sizes->batch;
    case 'i':
      return &sizes->input;
    case 'c':
      return &sizes->cell;
    default:
      return nullptr;
  }
}

// Returns the size of a dimension; -1 if unknown.
int64_t SizeOf(char letter, const CellSizes& sizes) {
  CellSizes copy = sizes;
  if (const int64_t* const basic = BasicSize(letter, &copy); basic != nullptr) return *basic;
  if (sizes.cell < 0) return -1;
  if (letter != 'w') return (letter - '0') * sizes.cell;
  return sizes.input < 0 ? -1 : sizes.input + sizes.cell;
}

// Sets the size that a dimension determines, if it is not known yet.
void Determine(char letter, int64_t dim, CellSizes* sizes) {
  if (int64_t* const basic = BasicSize(letter, sizes); basic != nullptr) {
    if (*basic < 0) *basic = dim;
  } else if (letter == 'w') {
    if (sizes->input < 0 && sizes->cell >= 0 && dim >= sizes->cell) {
      sizes->input = dim - sizes->cell;
    } else if (sizes->cell < 0 && sizes->input >= 0 && dim >= sizes->input) {
      sizes->cell = dim - sizes->input;
    }
  } else if (sizes->cell < 0 && dim % (letter - '0') == 0) {
    sizes->cell = dim / (letter - '0');
  }
}

std::string Why(const CellSizes& sizes) {
  std::vector<std::string> parts;
  const auto add = [&](absl::string_view name, int64_t size) {
    if (size >= 0) parts.push_back(absl::StrCat(name, " ", size));
  };
  add("steps", sizes.steps);
  add("batch", sizes.batch);
  add("input size", sizes.input);
  add("cell size", sizes.cell);
  return absl::StrJoin(parts, ", ");
}

}  // namespace

absl::StatusOr<PartialTensorShape> CellShape(absl::string_view dims, const CellSizes& sizes) {
  DimVector result;
  for (const char letter : dims) result.push_back(SizeOf(letter, sizes));
  return PartialTensorShape::Make(result);
}

absl::Status InferCellSizes(absl::Span<const CellTensor> inputs,
                            absl::FunctionRef<PartialTensorShape(int)> shape, CellSizes* sizes) {
  // Sizes that are named directly are determined before the other sizes.
  for (const absl::string_view letters : {"tbic", "24", "w"}) {
    for (size_t k = 0; k < inputs.size(); ++k) {
      const PartialTensorShape found = shape(static_cast<int>(k));
      if (found.unknown_rank()) continue;
      const absl::string_view dims = inputs[k].dims;
      GRADFLOW_RETURN_IF_ERROR(CheckRank(inputs[k].name, found, static_cast<int>(dims.size())));
      for (size_t d = 0; d < dims.size(); ++d) {
        const int64_t dim = found.dim_size(static_cast<int>(d));
        if (dim > kMaxSize) {
          return errors::InvalidArgument(inputs[k].name, " has shape ", found.DebugString(),
                                         ", expected sizes up to ", kMaxSize);
        }
        if (dim >= 0 && letters.find(dims[d]) != absl::string_view::npos)
          Determine(dims[d], dim, sizes);
      }
    }
  }
  for (size_t k = 0; k < inputs.size(); ++k) {
    const PartialTensorShape found = shape(static_cast<int>(k));
    const absl::string_view dims = inputs[k].dims;
    bool agrees = true;
    for (size_t d = 0; d < dims.size() && !found.unknown_rank(); ++d) {
      const int64_t dim = found.dim_size(static_cast<int>(d));
      const int64_t size = SizeOf(dims[d], *sizes);
      // An unknown size is valid only for w. For 2 and 4, it means that the dimension is not a
      // multiple.
      agrees = agrees && (dim < 0 || (size < 0 ? dims[d] == 'w' : dim == size));
    }
    if (agrees) continue;
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape expected, CellShape(dims, *sizes));
    return ShapeError(inputs[k].name, found, expected, Why(*sizes));
  }
  return absl::OkStatus();
}

absl::Status InferCellSizes(absl::Span<const CellTensor> inputs, const KernelContext& ctx,
                            CellSizes* sizes) {
  return InferCellSizes(
      inputs, [&](int i) { return PartialTensorShape(ctx.input(i).shape()); }, sizes);
}

absl::Status InferCellShapes(ShapeContext& c, absl::Span<const CellTensor> inputs,
                             absl::Span<const CellTensor> outputs) {
  CellSizes sizes;
  GRADFLOW_RETURN_IF_ERROR(InferCellSizes(
      inputs, [&](int i) { return c.input(i); }, &sizes));
  for (size_t k = 0; k < outputs.size(); ++k) {
    GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, CellShape(outputs[k].dims, sizes));
    c.set_output(static_cast<int>(k), std::move(shape));
  }
  return absl::OkStatus();
}

}  // namespace gradflow
