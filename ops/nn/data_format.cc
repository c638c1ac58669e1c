// DataFormatDimMap and DataFormatVecPermute: convert dimensions, and vectors with an element per
// dimension, to another data format.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/indices.h"
#include "gradflow/ops/common/input_checks.h"

namespace gradflow::data_format {
namespace {

// Two orders of the same dimensions. Each letter is a dimension.
struct Formats {
  std::string from;
  std::string to;

  // Returns the position in `to` of each letter of `from`.
  std::vector<int64_t> Positions() const {
    std::vector<int64_t> positions;
    for (const char letter : from) positions.push_back(static_cast<int64_t>(to.find(letter)));
    return positions;
  }
  // Returns the formats with only the spatial dimensions.
  Formats Spatial() const {
    const bool has_planes = from.size() == 5;
    const auto filtered = [&](const std::string& format) {
      std::string result;
      for (const char letter : format) {
        if (letter == 'H' || letter == 'W' || (has_planes && letter == 'D')) result += letter;
      }
      return result;
    };
    return {filtered(from), filtered(to)};
  }
};

// Reads and checks the attributes. Source is KernelConstruction or ShapeContext.
template <typename Source>
absl::Status ReadFormats(const Source& source, Formats* formats) {
  GRADFLOW_RETURN_IF_ERROR(source.GetAttr("src_format", &formats->from));
  GRADFLOW_RETURN_IF_ERROR(source.GetAttr("dst_format", &formats->to));
  const auto check = [](absl::string_view name, const std::string& format) {
    if (format.size() == 4 || format.size() == 5) return absl::OkStatus();
    return errors::InvalidArgument(name, " is '", errors::Printable(format),
                                   "', expected 4 or 5 letters");
  };
  GRADFLOW_RETURN_IF_ERROR(check("src_format", formats->from));
  GRADFLOW_RETURN_IF_ERROR(check("dst_format", formats->to));
  bool permutes = formats->from.size() == formats->to.size();
  for (size_t i = 0; i < formats->from.size() && permutes; ++i) {
    const char letter = formats->from[i];
    permutes = formats->from.find(letter) == i && absl::StrContains(formats->to, letter);
  }
  if (permutes) return absl::OkStatus();
  return errors::InvalidArgument("src_format '", errors::Printable(formats->from),
                                 "' and dst_format '", errors::Printable(formats->to),
                                 "' do not have the same distinct letters");
}

absl::Status DimMapShape(ShapeContext& c) {
  Formats formats;
  GRADFLOW_RETURN_IF_ERROR(ReadFormats(c, &formats));
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}

// Checks the shape of x. Unknown sizes are accepted.
absl::Status CheckVector(const Formats& formats, const PartialTensorShape& x) {
  if (x.unknown_rank()) return absl::OkStatus();
  const int64_t rank = static_cast<int64_t>(formats.from.size());
  if (x.dims() != 1 && x.dims() != 2) {
    return errors::InvalidArgument("x must have rank 1 or 2, but has shape ", x.DebugString());
  }
  const int64_t size = x.dim_size(0);
  const bool is_spatial = size == rank - 2;
  if ((size >= 0 && size != rank && !is_spatial) ||
      (x.dims() == 2 && x.dim_size(1) >= 0 && x.dim_size(1) != 2)) {
    return errors::InvalidArgument("x has shape ", x.DebugString(), ", expected [", rank, "], [",
                                   rank - 2, "], [", rank, ",2] or [", rank - 2, ",2]");
  }
  if (is_spatial && static_cast<int64_t>(formats.Spatial().from.size()) != rank - 2) {
    return errors::InvalidArgument(
        "src_format '", errors::Printable(formats.from), "' has other letters than ",
        rank == 5 ? "D, H and W" : "H and W", " for the ", rank - 2, " spatial dimensions of x");
  }
  return absl::OkStatus();
}

absl::Status VecPermuteShape(ShapeContext& c) {
  Formats formats;
  GRADFLOW_RETURN_IF_ERROR(ReadFormats(c, &formats));
  GRADFLOW_RETURN_IF_ERROR(CheckVector(formats, c.input(0)));
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}

class DataFormatKernel : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    return ReadFormats(construction, &formats_);
  }

 protected:
  DataTypeVector types_;
  Formats formats_;
};

class DimMap final : public DataFormatKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    const Tensor& x = ctx.input(0);
    const IndexReader reader(x);
    const std::vector<int64_t> positions = formats_.Positions();
    const int64_t rank = static_cast<int64_t>(positions.size());
    Tensor* y = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, x.shape(), &y));
    FirstBadIndex bad;
    ParallelFor(ctx, x.NumElements(), BlockSizeForCost(2), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        // Reads the element only once, because another thread may write to a fed tensor.
        const int64_t dim = reader[i];
        if (dim < -rank || dim >= rank) return bad.Found(i);
        WriteIndex(y, i, positions[static_cast<size_t>(dim < 0 ? dim + rank : dim)]);
      }
    });
    if (bad.any()) {
      return errors::InvalidArgument("x has element ", reader[bad.first()], " at ", bad.first(),
                                     ", expected a dimension in [-", rank, ", ", rank, ")");
    }
    return absl::OkStatus();
  }
};

class VecPermute final : public DataFormatKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    const Tensor& x = ctx.input(0);
    GRADFLOW_RETURN_IF_ERROR(CheckVector(formats_, x.shape()));
    Tensor* y = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, x.shape(), &y));
    const bool is_whole = x.dim_size(0) == static_cast<int64_t>(formats_.from.size());
    const std::vector<int64_t> positions = (is_whole ? formats_ : formats_.Spatial()).Positions();
    const size_t row = static_cast<size_t>((x.dims() == 2 ? 2 : 1) * DataTypeSize(x.dtype()));
    const char* const from = static_cast<const char*>(x.raw_data());
    char* const to = static_cast<char*>(y->raw_data());
    for (size_t i = 0; i < positions.size(); ++i) {
      std::memcpy(to + static_cast<size_t>(positions[i]) * row, from + i * row, row);
    }
    return absl::OkStatus();
  }
};

constexpr char kFormatsDoc[] = R"(src_format: The data format of `x`, 4 or 5 distinct letters.
dst_format: The data format of `y`, with the same letters.
T: The type of both.)";

}  // namespace

void Register(Registry& registry) {
  registry.Op("DataFormatDimMap")
      .Group("nn_ops")
      .Input("x: T")
      .Output("y: T")
      .Attr("T: {int32, int64} = DT_INT32")
      .Attr("src_format: string = 'NHWC'")
      .Attr("dst_format: string = 'NCHW'")
      .Shape(DimMapShape)
      .Doc(absl::StrCat(R"(Maps dimensions of one data format to dimensions of another.

x: Dimensions in `src_format`, counted from the end if negative.
y: The same dimensions in `dst_format`, of the shape of `x`.
)",
                        kFormatsDoc));
  registry.Op("DataFormatVecPermute")
      .Group("nn_ops")
      .Input("x: T")
      .Output("y: T")
      .Attr("T: {int32, int64} = DT_INT32")
      .Attr("src_format: string = 'NHWC'")
      .Attr("dst_format: string = 'NCHW'")
      .Shape(VecPermuteShape)
      .Doc(absl::StrCat(R"(Permutes the elements of a vector from one data format to another.

x: A vector with an element for each dimension of the format, such as strides, or a matrix with two
  elements for each dimension, such as paddings. May have only the spatial dimensions D, H and W.
y: The elements in the order of `dst_format`, of the shape of `x`.
)",
                        kFormatsDoc));
  registry.Kernel("DataFormatDimMap", MakeKernel<DimMap>).Types("T", {DT_INT32, DT_INT64});
  registry.Kernel("DataFormatVecPermute", MakeKernel<VecPermute>).Types("T", {DT_INT32, DT_INT64});
}

}  // namespace gradflow::data_format
