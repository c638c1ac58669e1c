// Fourier transforms along one or several axes: FFT, RFFT, IRFFT and the like.
//
// Each axis is one pass over the tensor. A pass transforms the lines along the axis in double, in
// parallel. The result is rounded once. The real axis is the last axis. It is the first pass of a
// transform from real numbers, and the last pass of a transform to real numbers.
#include <algorithm>
#include <complex>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/data_types.h"
#include "gradflow/ops/common/first_error.h"
#include "gradflow/ops/common/legacy_name.h"
#include "gradflow/ops/common/strided_copy.h"
#include "gradflow/ops/math/fourier.h"

namespace gradflow::fft {
namespace {

// The number of adjacent lines that are read together, because memory is fastest in runs.
constexpr int64_t kLines = 8;

enum class Kind { kComplex, kFromReal, kToReal };

// An axis and its transform length.
struct FftAxis {
  int dim;
  int64_t length;
};

// ---- Shapes ----

// The number of distinct coefficients of a transform of `length` real numbers.
int64_t HalfLength(int64_t length) { return length <= 0 ? length : length / 2 + 1; }

// Returns the dimensions of the input that the transforms read.
DimVector InputDims(absl::Span<const int64_t> dims, absl::Span<const FftAxis> axes, Kind kind) {
  DimVector result(dims.begin(), dims.end());
  for (const FftAxis& axis : axes) result[axis.dim] = axis.length;
  if (kind == Kind::kToReal && !axes.empty()) {
    result[axes.back().dim] = HalfLength(axes.back().length);
  }
  return result;
}

DimVector OutputDims(absl::Span<const int64_t> dims, absl::Span<const FftAxis> axes, Kind kind) {
  DimVector result(dims.begin(), dims.end());
  for (const FftAxis& axis : axes) result[axis.dim] = axis.length;
  if (kind == Kind::kFromReal && !axes.empty()) {
    result[axes.back().dim] = HalfLength(axes.back().length);
  }
  return result;
}

// Returns INVALID_ARGUMENT unless all lengths are positive. Zero is valid if `allow_zero` is true.
absl::Status CheckLengths(absl::Span<const int64_t> lengths, bool allow_zero) {
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < (allow_zero ? 0 : 1)) {
      return errors::InvalidArgument("fft_length[", i, "] is ", lengths[i], ", expected at least ",
                                     allow_zero ? 0 : 1);
    }
  }
  return absl::OkStatus();
}

// Returns the last `lengths.size()` dimensions with these lengths.
std::vector<FftAxis> InnerAxes(int rank, absl::Span<const int64_t> lengths) {
  std::vector<FftAxis> axes;
  const int first = rank - static_cast<int>(lengths.size());
  for (size_t i = 0; i < lengths.size(); ++i) {
    axes.push_back({first + static_cast<int>(i), lengths[i]});
  }
  return axes;
}

// Returns the dimensions `axes` with these lengths. The dimensions must be distinct.
absl::StatusOr<std::vector<FftAxis>> AxesOf(int rank, absl::Span<const int64_t> lengths,
                                            absl::Span<const int64_t> axes) {
  if (lengths.size() != axes.size()) {
    return errors::InvalidArgument("fft_length and axes must have the same length, but have ",
                                   lengths.size(), " and ", axes.size());
  }
  GRADFLOW_RETURN_IF_ERROR(NamedAxes("axes", axes, rank).status());
  std::vector<FftAxis> result;
  for (size_t i = 0; i < axes.size(); ++i) {
    GRADFLOW_ASSIGN_OR_RETURN(const int dim, CanonicalAxis("axes", axes[i], rank));
    result.push_back({dim, lengths[i]});
  }
  return result;
}

absl::Status CheckLengthShape(const PartialTensorShape& shape, int rank) {
  GRADFLOW_RETURN_IF_ERROR(CheckRank("fft_length", shape, 1));
  return CheckDim("fft_length", shape, 0, rank);
}

// The shape function of FFT, FFT2D, FFT3D and their inverses.
template <int kRank>
absl::Status ComplexShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(0, kRank));
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}

// The shape function of RFFT, RFFT2D, RFFT3D and their inverses.
template <int kRank, Kind kKind>
absl::Status RealShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(0, kRank));
  GRADFLOW_RETURN_IF_ERROR(CheckLengthShape(c.input(1), kRank));
  std::vector<int64_t> lengths;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(1, &lengths));
  if (known) {
    GRADFLOW_RETURN_IF_ERROR(CheckLengths(lengths, /*allow_zero=*/true));
  } else {
    lengths.assign(kRank, -1);
  }
  if (c.input(0).unknown_rank()) return absl::OkStatus();
  const auto axes = InnerAxes(c.input(0).dims(), lengths);
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, PartialTensorShape::Make(OutputDims(
                                                          c.input(0).dim_sizes(), axes, kKind)));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// The shape function of FFTND, IFFTND, RFFTND and IRFFTND.
template <Kind kKind>
absl::Status NamedShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(2, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckSameShape(1, 2));
  std::vector<int64_t> lengths;
  std::vector<int64_t> names;
  GRADFLOW_ASSIGN_OR_RETURN(const bool lengths_known, c.IntsFromInput(1, &lengths));
  GRADFLOW_ASSIGN_OR_RETURN(const bool axes_known, c.IntsFromInput(2, &names));
  if (lengths_known) GRADFLOW_RETURN_IF_ERROR(CheckLengths(lengths, /*allow_zero=*/true));
  const PartialTensorShape& input = c.input(0);
  if (input.unknown_rank()) return absl::OkStatus();
  if (!axes_known) {
    c.set_output(0, PartialTensorShape::UnknownOfRank(input.dims()));
    return absl::OkStatus();
  }
  if (!lengths_known) lengths.assign(names.size(), -1);
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<FftAxis> axes, AxesOf(input.dims(), lengths, names));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape,
                            PartialTensorShape::Make(OutputDims(input.dim_sizes(), axes, kKind)));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// ---- Passes ----

// The lines of a tensor [outer, n, inner] along an axis.
struct Lines {
  int64_t outer = 1;
  int64_t inner = 1;

  Lines(absl::Span<const int64_t> dims, int axis) {
    for (int d = 0; d < axis; ++d) outer *= dims[d];
    for (size_t d = axis + 1; d < dims.size(); ++d) inner *= dims[d];
  }
};

template <typename T>
complex128 ToComplex(T value) {
  if constexpr (kIsComplex<T>) {
    return complex128(value);
  } else {
    return complex128(static_cast<double>(value), 0);
  }
}

template <typename T>
T FromComplex(complex128 value) {
  if constexpr (kIsComplex<T>) {
    return static_cast<T>(value);
  } else {
    return static_cast<T>(value.real());
  }
}

// Lines of at most this length are transformed four at a time, with vectors.
constexpr int64_t kLongestOfFour = int64_t{1} << 14;

// Does the work of Pass, four lines at a time.
template <typename In, typename Out>
absl::Status PassOfFour(KernelContext& ctx, const FourierPlan& plan, bool inverse,
                        const Lines& lines, int64_t in_n, int64_t out_n, const In* in, Out* out) {
  constexpr int kCount = FourLines::kCount;
  const int64_t n = plan.n();
  const int64_t inner = lines.inner;
  const int64_t total = lines.outer * inner;
  FirstError error;
  ParallelFor(ctx, NumBlocks(total, kCount), BlockSizeForCost(2 * plan.Operations()),
              [&](int64_t begin, int64_t end) {
                auto memory = Tensor::Allocate(ctx.allocator(), DT_COMPLEX128,
                                               {kCount * (n + plan.scratch_size())});
                if (!memory.ok()) return error.Found(begin, memory.status());
                auto* const data = static_cast<FourLines*>(memory->raw_data());
                FourLines* const scratch = data + n;
                for (int64_t task = begin; task < end && !ctx.ShouldStop(); ++task) {
                  // The offsets of the lines. Lanes without a line repeat the first line.
                  int64_t from[kCount];
                  int64_t to[kCount];
                  const int64_t count = std::min<int64_t>(kCount, total - task * kCount);
                  for (int64_t i = 0; i < kCount; ++i) {
                    const int64_t line = task * kCount + (i < count ? i : 0);
                    from[i] = line / inner * in_n * inner + line % inner;
                    to[i] = line / inner * out_n * inner + line % inner;
                  }
                  for (int64_t k = 0; k < in_n; ++k) {
                    for (int i = 0; i < kCount; ++i) {
                      const complex128 value = ToComplex(in[from[i] + k * inner]);
                      data[k].real[i] = value.real();
                      data[k].imag[i] = value.imag();
                    }
                  }
                  for (int64_t k = in_n; k < n; ++k) {
                    data[k].real = data[n - k].real;
                    data[k].imag = -data[n - k].imag;
                  }
                  plan.Transform(ctx.run(), inverse, data, scratch);
                  for (int64_t k = 0; k < out_n; ++k) {
                    for (int64_t i = 0; i < count; ++i) {
                      out[to[i] + k * inner] =
                          FromComplex<Out>(complex128(data[k].real[i], data[k].imag[i]));
                    }
                  }
                }
              });
  return error.status();
}

// Transforms the lines of `in`, [outer, in_n, inner], to lines of `out`, [outer, out_n, inner].
// `in` and `out` may be the same memory. If in_n is less than the length of the plan, the remaining
// elements are the complex conjugates in reverse order.
template <typename In, typename Out>
absl::Status Pass(KernelContext& ctx, const FourierPlan& plan, bool inverse, const Lines& lines,
                  int64_t in_n, int64_t out_n, const In* in, Out* out) {
  const int64_t n = plan.n();
  if (n <= kLongestOfFour && lines.outer * lines.inner > 1) {
    return PassOfFour(ctx, plan, inverse, lines, in_n, out_n, in, out);
  }
  const int64_t groups = NumBlocks(lines.inner, kLines);
  const int64_t width = std::min(lines.inner, kLines);
  FirstError error;
  ParallelFor(
      ctx, lines.outer * groups, BlockSizeForCost(plan.Operations() * static_cast<double>(width)),
      [&](int64_t begin, int64_t end) {
        auto memory =
            Tensor::Allocate(ctx.allocator(), DT_COMPLEX128, {width * n + plan.scratch_size()});
        if (!memory.ok()) return error.Found(begin, memory.status());
        complex128* const data = static_cast<complex128*>(memory->raw_data());
        complex128* const scratch = data + width * n;
        for (int64_t task = begin; task < end && !ctx.ShouldStop(); ++task) {
          const int64_t outer = task / groups;
          const int64_t column = task % groups * kLines;
          const int64_t columns = std::min(kLines, lines.inner - column);
          const In* from = in + outer * in_n * lines.inner + column;
          for (int64_t k = 0; k < in_n; ++k) {
            for (int64_t j = 0; j < columns; ++j) {
              data[j * n + k] = ToComplex(from[k * lines.inner + j]);
            }
          }
          for (int64_t j = 0; j < columns; ++j) {
            complex128* line = data + j * n;
            for (int64_t k = in_n; k < n; ++k) line[k] = std::conj(line[n - k]);
            plan.Transform(ctx.run(), inverse, line, scratch);
          }
          Out* to = out + outer * out_n * lines.inner + column;
          for (int64_t k = 0; k < out_n; ++k) {
            for (int64_t j = 0; j < columns; ++j) {
              to[k * lines.inner + j] = FromComplex<Out>(data[j * n + k]);
            }
          }
        }
      });
  return error.status();
}

// Sets *out to `in`, truncated or padded with zeros to the dimensions `dims`.
absl::Status Resize(KernelContext& ctx, const Tensor& in, const DimVector& dims, Tensor* out) {
  if (in.shape().dim_sizes() == absl::MakeConstSpan(dims)) {
    *out = in;
    return absl::OkStatus();
  }
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(dims));
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(in.dtype(), shape, out));
  SetZero(ctx.run(), out);
  DimVector common = dims;
  for (size_t d = 0; d < dims.size(); ++d) {
    common[d] = std::min(dims[d], in.dim_size(static_cast<int>(d)));
  }
  CopyStrided(ctx.run(), common, in, {0, RowMajorStrides(in.shape().dim_sizes())}, out,
              {0, RowMajorStrides(dims)});
  return absl::OkStatus();
}

// Sets output 0 to the transform of input 0 along the axes.
absl::Status TransformAxes(KernelContext& ctx, std::vector<FftAxis> axes, Kind kind, bool inverse) {
  const Tensor& input = ctx.input(0);
  const DimVector out_dims = OutputDims(input.shape().dim_sizes(), axes, kind);
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape out_shape, TensorShape::Make(out_dims));
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, out_shape, &output));
  if (output->NumElements() == 0) return absl::OkStatus();
  if (input.NumElements() == 0) {
    SetZero(ctx.run(), output);
    return absl::OkStatus();
  }
  for (const FftAxis& axis : axes) {
    if (axis.length < 1) {
      return errors::InvalidArgument("fft_length is ", axis.length, ", expected at least 1");
    }
  }
  Tensor x;
  GRADFLOW_RETURN_IF_ERROR(
      Resize(ctx, input, InputDims(input.shape().dim_sizes(), axes, kind), &x));
  // The real axis is transformed first or last.
  if (kind == Kind::kFromReal) std::reverse(axes.begin(), axes.end());
  // Without axes, each element is transformed separately.
  DimVector dims(x.shape().dim_sizes().begin(), x.shape().dim_sizes().end());
  if (axes.empty()) {
    dims.push_back(1);
    axes.push_back({static_cast<int>(dims.size()) - 1, 1});
  }
  // Holds the coefficients between the passes.
  Tensor work;
  std::shared_ptr<const FourierPlan> plan;
  for (size_t i = 0; i < axes.size(); ++i) {
    const FftAxis& axis = axes[i];
    const bool is_first = i == 0;
    const bool is_last = i + 1 == axes.size();
    if (plan == nullptr || plan->n() != axis.length) {
      GRADFLOW_ASSIGN_OR_RETURN(plan, FourierPlan::Cached(ctx.run(), axis.length));
    }
    const Lines lines(dims, axis.dim);
    const int64_t in_n = dims[axis.dim];
    if (kind == Kind::kFromReal && is_first) dims[axis.dim] = HalfLength(axis.length);
    if (kind == Kind::kToReal && is_last) dims[axis.dim] = axis.length;
    const int64_t out_n = dims[axis.dim];
    if (is_first && !is_last) {
      GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(dims));
      GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_COMPLEX128, shape, &work));
    }
    const Tensor& from = is_first ? x : work;
    Tensor* const to = is_last ? output : &work;
    absl::Status status = errors::Internal("no pass from ", DataTypeString(from.dtype()));
    using Types = TypeList<float, double, complex64, complex128>;
    DispatchType(Types(), from.dtype(), [&](auto from_tag) {
      using In = typename decltype(from_tag)::type;
      DispatchType(Types(), to->dtype(), [&](auto to_tag) {
        using Out = typename decltype(to_tag)::type;
        if constexpr (kIsComplex<In> || kIsComplex<Out>) {
          status = Pass(ctx, *plan, inverse, lines, in_n, out_n,
                        static_cast<const In*>(from.raw_data()), static_cast<Out*>(to->raw_data()));
        }
      });
    });
    GRADFLOW_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

// ---- Kernels ----

absl::Status CheckType(const KernelContext& ctx, DataType dtype) {
  if (ctx.input_dtype(0) == dtype) return absl::OkStatus();
  return errors::InvalidArgument("input must be of type ", DataTypeString(dtype), ", but is ",
                                 DataTypeString(ctx.input_dtype(0)));
}

template <int kRank, bool kInverse>
absl::Status ComplexTransform(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  GRADFLOW_RETURN_IF_ERROR(CheckType(ctx, ctx.expected_output_dtype(0)));
  GRADFLOW_RETURN_IF_ERROR(CheckRankAtLeast("input", input.shape(), kRank));
  const auto dims = input.shape().dim_sizes();
  return TransformAxes(ctx, InnerAxes(input.dims(), dims.subspan(dims.size() - kRank)),
                       Kind::kComplex, kInverse);
}

// A kernel whose input and output have the same precision.
class RealKernel : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    input_type_ = construction.input_type(0);
    const DataType out = construction.output_type(0);
    const auto is_narrow = [](DataType dtype) {
      return dtype == DT_FLOAT || dtype == DT_COMPLEX64;
    };
    if (is_narrow(input_type_) != is_narrow(out)) {
      return errors::InvalidArgument("Treal and Tcomplex must have the same precision, but are ",
                                     DataTypeString(DataTypeIsComplex(out) ? input_type_ : out),
                                     " and ",
                                     DataTypeString(DataTypeIsComplex(out) ? out : input_type_));
    }
    return absl::OkStatus();
  }

 protected:
  DataType input_type_ = DT_INVALID;
};

template <int kRank, Kind kKind>
class InnerKernel final : public RealKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& input = ctx.input(0);
    GRADFLOW_RETURN_IF_ERROR(CheckType(ctx, input_type_));
    GRADFLOW_RETURN_IF_ERROR(CheckRankAtLeast("input", input.shape(), kRank));
    GRADFLOW_RETURN_IF_ERROR(CheckLengthShape(ctx.input(1).shape(), kRank));
    GRADFLOW_ASSIGN_OR_RETURN(const DimVector lengths, ctx.Ints(1, "fft_length"));
    // If only the last length is 0, TensorFlow aborts the process.
    const bool is_empty = input.NumElements() == 0 ||
                          std::find(lengths.begin(), lengths.end() - 1, 0) != lengths.end() - 1;
    GRADFLOW_RETURN_IF_ERROR(CheckLengths(lengths, is_empty));
    const std::vector<FftAxis> axes = InnerAxes(input.dims(), lengths);
    const DimVector needed = InputDims(input.shape().dim_sizes(), axes, kKind);
    for (const FftAxis& axis : axes) {
      if (input.NumElements() > 0 && input.dim_size(axis.dim) < needed[axis.dim]) {
        return errors::InvalidArgument("dimension ", axis.dim, " of input must be ",
                                       needed[axis.dim], " at least, by fft_length, but input has ",
                                       "shape ", input.shape().DebugString());
      }
    }
    return TransformAxes(ctx, axes, kKind, kKind == Kind::kToReal);
  }
};

template <Kind kKind, bool kInverse>
class NamedKernel final : public RealKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& input = ctx.input(0);
    GRADFLOW_RETURN_IF_ERROR(CheckType(ctx, input_type_));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(1, "fft_length"));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(2, "axes"));
    GRADFLOW_ASSIGN_OR_RETURN(const DimVector lengths, ctx.Ints(1, "fft_length"));
    GRADFLOW_ASSIGN_OR_RETURN(const DimVector names, ctx.Ints(2, "axes"));
    GRADFLOW_RETURN_IF_ERROR(CheckLengths(lengths, input.NumElements() == 0));
    GRADFLOW_ASSIGN_OR_RETURN(const std::vector<FftAxis> axes,
                              AxesOf(input.dims(), lengths, names));
    return TransformAxes(ctx, axes, kKind, kInverse);
  }
};

// ---- Definitions ----

constexpr char kInverseNote[] =
    "The inverse is divided by the number of elements that are "
    "transformed together.\n";

std::string DimensionsInWords(int rank) {
  if (rank == 1) return "the last dimension";
  return absl::StrCat("the last ", rank == 2 ? "two" : "three", " dimensions");
}

template <int kRank, bool kInverse>
void RegisterComplex(Registry& registry, absl::string_view op) {
  registry.Op(op)
      .Group("spectral_ops")
      .Input("input: Tcomplex")
      .Output("output: Tcomplex")
      .Attr("Tcomplex: {complex64, complex128} = DT_COMPLEX64")
      .Shape(ComplexShape<kRank>)
      .Doc(absl::StrCat("Computes the ", kInverse ? "inverse " : "",
                        "discrete Fourier transform over ", DimensionsInWords(kRank), ".\n\n",
                        kInverse ? kInverseNote : "",
                        R"(The transform is computed in double, for any length.

input: Complex numbers.
output: The transform, of the shape of `input`.
Tcomplex: The type of `input` and `output`.)"));
  registry.Kernel(op, MakeFunctionKernel<ComplexTransform<kRank, kInverse>>);
  RegisterLegacyName(registry,
                     {absl::StrCat("Batch", op), std::string(op), 15, "Tcomplex", {DT_COMPLEX64}},
                     MakeFunctionKernel<ComplexTransform<kRank, kInverse>>);
}

constexpr char kLengthOfReal[] =
    "fft_length: The length of the transform of each dimension. What is beyond it in `input` is\n"
    "  ignored. The last length may be 0 only if `input` is empty.\n";
constexpr char kTypesOfReal[] =
    "Treal: The type of real numbers.\nTcomplex: The type of complex numbers, of the same "
    "precision.";

template <int kRank>
void RegisterReal(Registry& registry, absl::string_view suffix) {
  const std::string forward = absl::StrCat("RFFT", suffix);
  const std::string inverse = absl::StrCat("IRFFT", suffix);
  registry.Op(forward)
      .Group("spectral_ops")
      .Input("input: Treal")
      .Input("fft_length: int32")
      .Output("output: Tcomplex")
      .Attr("Treal: {float, double} = DT_FLOAT")
      .Attr("Tcomplex: {complex64, complex128} = DT_COMPLEX64")
      .Shape(RealShape<kRank, Kind::kFromReal>)
      .Doc(absl::StrCat("Computes the discrete Fourier transform of real numbers over ",
                        DimensionsInWords(kRank), R"(.

The transform is conjugate symmetric. Its last dimension has length n; the first n / 2 + 1 elements
are returned.

input: Real numbers.
)",
                        kLengthOfReal, R"(output: The transform.
)",
                        kTypesOfReal));
  registry.Op(inverse)
      .Group("spectral_ops")
      .Input("input: Tcomplex")
      .Input("fft_length: int32")
      .Output("output: Treal")
      .Attr("Treal: {float, double} = DT_FLOAT")
      .Attr("Tcomplex: {complex64, complex128} = DT_COMPLEX64")
      .Shape(RealShape<kRank, Kind::kToReal>)
      .Doc(absl::StrCat("Computes real numbers from their discrete Fourier transform over ",
                        DimensionsInWords(kRank), ".\n\n", kInverseNote,
                        R"(The transform is conjugate symmetric. Its last dimension has length n;
`input` has the first n / 2 + 1 elements.

input: The transform.
)",
                        kLengthOfReal, R"(output: Real numbers, of the dimensions `fft_length`.
)",
                        kTypesOfReal));
  registry.Kernel(forward, MakeKernel<InnerKernel<kRank, Kind::kFromReal>>);
  registry.Kernel(inverse, MakeKernel<InnerKernel<kRank, Kind::kToReal>>);
}

constexpr char kNamedInputs[] =
    R"(fft_length: The length of the transform of each axis. The input is truncated to this length,
  or padded with zeros.
axes: Distinct axes, each in [-rank(input), rank(input)).
)";

template <Kind kKind, bool kInverse>
void DefineNamed(Registry& registry, absl::string_view op) {
  auto builder = registry.Op(op);
  builder.Group("spectral_ops")
      .Input(kKind == Kind::kFromReal ? "input: Treal" : "input: Tcomplex")
      .Input("fft_length: int32")
      .Input("axes: int32")
      .Output(kKind == Kind::kToReal ? "output: Treal" : "output: Tcomplex");
  if (kKind != Kind::kComplex) builder.Attr("Treal: {float, double} = DT_FLOAT");
  builder.Attr("Tcomplex: {complex64, complex128} = DT_COMPLEX64")
      .Shape(NamedShape<kKind>)
      .Doc(absl::StrCat(
          kKind == Kind::kToReal
              ? "Computes real numbers from their discrete Fourier transform along axes"
              : absl::StrCat("Computes the ", kInverse ? "inverse " : "",
                             "discrete Fourier transform ",
                             kKind == Kind::kFromReal ? "of real numbers " : "", "along axes"),
          ".\n\n", kInverse ? kInverseNote : "",
          kKind == Kind::kComplex
              ? "The transform is computed in double, for any length.\n"
              : "The last of the axes has length n; the transform has the first n / 2 + 1 "
                "elements.\n",
          "\ninput: ", kKind == Kind::kFromReal ? "Real" : "Complex", " numbers.\n", kNamedInputs,
          "output: The result.\n",
          kKind == Kind::kComplex ? "Tcomplex: The type of `input` and `output`." : kTypesOfReal));
}

template <Kind kKind, bool kInverse>
void RegisterNamed(Registry& registry, absl::string_view op) {
  DefineNamed<kKind, kInverse>(registry, op);
  registry.Kernel(op, MakeKernel<NamedKernel<kKind, kInverse>>);
}

}  // namespace

void Register(Registry& registry) {
  RegisterComplex<1, false>(registry, "FFT");
  RegisterComplex<1, true>(registry, "IFFT");
  RegisterComplex<2, false>(registry, "FFT2D");
  RegisterComplex<2, true>(registry, "IFFT2D");
  RegisterComplex<3, false>(registry, "FFT3D");
  RegisterComplex<3, true>(registry, "IFFT3D");
  RegisterReal<1>(registry, "");
  RegisterReal<2>(registry, "2D");
  RegisterReal<3>(registry, "3D");
  RegisterNamed<Kind::kComplex, false>(registry, "FFTND");
  RegisterNamed<Kind::kComplex, true>(registry, "IFFTND");
  RegisterNamed<Kind::kFromReal, false>(registry, "RFFTND");
  RegisterNamed<Kind::kToReal, true>(registry, "IRFFTND");
}

}  // namespace gradflow::fft
