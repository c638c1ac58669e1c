// Einsum.
//
// An operand is a tensor with a label for each dimension. Dimensions of size 1 have no label: they
// broadcast, so they need no treatment. A label that is repeated in an input is replaced by the
// diagonal. A label that only one operand has and nothing else needs is summed out. Pairs of
// operands are multiplied as batches of matrices: labels of both operands become batch dimensions
// if they are needed, otherwise the product sums over them.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/data_types.h"
#include "gradflow/ops/common/strided_copy.h"
#include "gradflow/ops/linalg/product.h"
#include "gradflow/ops/math/reducers.h"

namespace gradflow::einsum {
namespace {

// A letter, or kEllipsis + i for the i-th last dimension of the ellipsis.
using Label = int;
using Labels = std::vector<Label>;
constexpr Label kEllipsis = 1000;

bool Contains(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

// ---- Equations ----

struct Equation {
  // kEllipsis stands for all dimensions of an ellipsis.
  std::vector<Labels> inputs;
  Labels output;
};

absl::StatusOr<Labels> ParseSubscript(absl::string_view text) {
  Labels labels;
  for (size_t i = 0; i < text.size(); ++i) {
    if (absl::ascii_isspace(text[i])) continue;
    if (absl::ascii_isalpha(text[i])) {
      labels.push_back(text[i]);
    } else if (text.substr(i, 3) == "...") {
      if (Contains(labels, kEllipsis)) {
        return errors::InvalidArgument("subscript '", errors::Printable(text),
                                       "' has more than one ellipsis");
      }
      labels.push_back(kEllipsis);
      i += 2;
    } else {
      return errors::InvalidArgument("subscript '", errors::Printable(text),
                                     "' must consist of letters and '...'");
    }
  }
  return labels;
}

absl::StatusOr<Equation> ParseEquation(absl::string_view text, int num_inputs) {
  constexpr size_t kMaxLength = 10000;
  if (text.size() > kMaxLength) {
    return errors::InvalidArgument("equation has ", text.size(), " characters, more than ",
                                   kMaxLength);
  }
  const std::vector<absl::string_view> sides = absl::StrSplit(text, "->");
  if (sides.size() != 2) {
    return errors::InvalidArgument("equation '", errors::Printable(text), "' must have one '->'");
  }
  Equation equation;
  for (const absl::string_view subscript : absl::StrSplit(sides[0], ',')) {
    GRADFLOW_ASSIGN_OR_RETURN(Labels labels, ParseSubscript(subscript));
    equation.inputs.push_back(std::move(labels));
  }
  if (static_cast<int>(equation.inputs.size()) != num_inputs) {
    return errors::InvalidArgument("equation '", errors::Printable(text), "' has ",
                                   equation.inputs.size(), " inputs, but there are ", num_inputs);
  }
  GRADFLOW_ASSIGN_OR_RETURN(equation.output, ParseSubscript(sides[1]));
  for (const Label label : equation.output) {
    bool found = label == kEllipsis;
    for (const Labels& labels : equation.inputs) found |= Contains(labels, label);
    if (!found) {
      return errors::InvalidArgument("label '", std::string(1, static_cast<char>(label)),
                                     "' of the output is in no input of equation '",
                                     errors::Printable(text), "'");
    }
  }
  return equation;
}

// Returns `labels` with kEllipsis replaced by `count` labels.
Labels ExpandEllipsis(const Labels& labels, int count) {
  Labels expanded;
  for (const Label label : labels) {
    if (label != kEllipsis) {
      expanded.push_back(label);
      continue;
    }
    for (int i = count - 1; i >= 0; --i) expanded.push_back(kEllipsis + i);
  }
  return expanded;
}

// An equation for tensors with particular shapes.
struct Expanded {
  std::vector<Labels> inputs;
  Labels output;
  // The size of each label; -1 if unknown.
  std::map<Label, int64_t> sizes;
};

// Checks the shapes against the equation. REQUIRES: the ranks are known
absl::StatusOr<Expanded> Expand(const Equation& equation,
                                absl::Span<const PartialTensorShape> shapes) {
  Expanded result;
  int ellipsis_rank = 0;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Labels& labels = equation.inputs[i];
    const bool has_ellipsis = Contains(labels, kEllipsis);
    const int rest = shapes[i].dims() - (static_cast<int>(labels.size()) - (has_ellipsis ? 1 : 0));
    if (rest < 0 || (rest > 0 && !has_ellipsis)) {
      return errors::InvalidArgument("inputs[", i, "] has shape ", shapes[i].DebugString(),
                                     ", expected rank ", shapes[i].dims() - rest,
                                     has_ellipsis ? " at least" : "", ", by its subscript");
    }
    result.inputs.push_back(ExpandEllipsis(labels, rest));
    ellipsis_rank = std::max(ellipsis_rank, rest);
    for (int d = 0; d < shapes[i].dims(); ++d) {
      const Label label = result.inputs[i][d];
      const int64_t size = shapes[i].dim_size(d);
      const auto [known, is_new] = result.sizes.emplace(label, size);
      int64_t& common = known->second;
      if (is_new || common == size) continue;
      if (label >= kEllipsis && (common == 1 || size == 1)) {
        // If the other size is unknown, the result may be 1 or larger.
        common = common == 1 ? size : common;
      } else if (common < 0 || size < 0) {
        common = std::max(common, size);
      } else {
        return errors::InvalidArgument(
            "inputs[", i, "] has shape ", shapes[i].DebugString(), ", but dimension ", d,
            " must be ", common, label >= kEllipsis ? " or 1" : "", ", like ",
            label >= kEllipsis
                ? std::string("the ellipses")
                : absl::StrCat("label '", std::string(1, static_cast<char>(label)), "'"),
            " elsewhere");
      }
    }
  }
  if (ellipsis_rank > 0 && !Contains(equation.output, kEllipsis)) {
    return errors::InvalidArgument("the ellipses of the inputs have ", ellipsis_rank,
                                   " dimensions, but the output has no ellipsis");
  }
  result.output = ExpandEllipsis(equation.output, ellipsis_rank);
  return result;
}

absl::StatusOr<PartialTensorShape> OutputShape(const Expanded& equation) {
  DimVector dims;
  for (const Label label : equation.output) dims.push_back(equation.sizes.at(label));
  return PartialTensorShape::Make(dims);
}

absl::Status EinsumShape(ShapeContext& c) {
  std::string text;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("equation", &text));
  GRADFLOW_ASSIGN_OR_RETURN(const Equation equation, ParseEquation(text, c.num_inputs()));
  std::vector<PartialTensorShape> shapes;
  bool known = true;
  for (int i = 0; i < c.num_inputs(); ++i) {
    known &= !c.input(i).unknown_rank();
    shapes.push_back(c.input(i));
  }
  if (!known) {
    if (!Contains(equation.output, kEllipsis) && equation.output.size() <= kMaxDims) {
      c.set_output(0, PartialTensorShape::UnknownOfRank(static_cast<int>(equation.output.size())));
    }
    return absl::OkStatus();
  }
  GRADFLOW_ASSIGN_OR_RETURN(const Expanded expanded, Expand(equation, shapes));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, OutputShape(expanded));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// ---- The kernel ----

// A tensor whose dimensions have distinct labels.
struct LabeledOperand {
  Tensor tensor;
  Labels labels;
};

// Copies a view of `source` to a new tensor. Its elements are at the sums of index * strides[d].
absl::Status CopyView(KernelContext& ctx, const Tensor& source, const DimVector& dims,
                      const DimVector& strides, Tensor* out) {
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(dims));
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(source.dtype(), shape, out));
  CopyStrided(ctx.run(), dims, source, {0, strides}, out, {0, RowMajorStrides(dims)});
  return absl::OkStatus();
}

// Makes the operand of an input. Drops dimensions of size 1, and takes the diagonal of repeated
// labels.
absl::Status MakeOperand(KernelContext& ctx, Tensor input, const Labels& labels,
                         LabeledOperand* operand) {
  const DimVector all_strides = RowMajorStrides(input.shape().dim_sizes());
  DimVector dims;
  DimVector strides;
  bool repeated = false;
  for (size_t d = 0; d < labels.size(); ++d) {
    if (input.dim_size(static_cast<int>(d)) == 1) continue;
    const auto first = std::find(operand->labels.begin(), operand->labels.end(), labels[d]);
    if (first != operand->labels.end()) {
      strides[first - operand->labels.begin()] += all_strides[d];
      repeated = true;
      continue;
    }
    operand->labels.push_back(labels[d]);
    dims.push_back(input.dim_size(static_cast<int>(d)));
    strides.push_back(all_strides[d]);
  }
  if (repeated) return CopyView(ctx, input, dims, strides, &operand->tensor);
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(dims));
  GRADFLOW_ASSIGN_OR_RETURN(operand->tensor, input.Reshaped(shape));
  return absl::OkStatus();
}

// Sums over the labels that are not in `needed`.
absl::Status SumOut(KernelContext& ctx, const Labels& needed, LabeledOperand* operand) {
  std::vector<bool> reduced;
  DimVector dims;
  Labels labels;
  for (size_t d = 0; d < operand->labels.size(); ++d) {
    reduced.push_back(!Contains(needed, operand->labels[d]));
    if (reduced.back()) continue;
    labels.push_back(operand->labels[d]);
    dims.push_back(operand->tensor.dim_size(static_cast<int>(d)));
  }
  if (labels.size() == operand->labels.size()) return absl::OkStatus();
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(dims));
  Tensor sum;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(operand->tensor.dtype(), shape, &sum));
  GRADFLOW_RETURN_IF_ERROR(
      ReduceTensor(ctx, SumReducer(operand->tensor.dtype()), operand->tensor, reduced, &sum));
  *operand = {std::move(sum), std::move(labels)};
  return absl::OkStatus();
}

// Reorders the dimensions to `labels`. REQUIRES: `labels` is a permutation of the operand's labels
absl::Status Permute(KernelContext& ctx, const Labels& labels, LabeledOperand* operand) {
  if (labels == operand->labels) return absl::OkStatus();
  const DimVector all_strides = RowMajorStrides(operand->tensor.shape().dim_sizes());
  DimVector dims;
  DimVector strides;
  for (const Label label : labels) {
    const auto d =
        std::find(operand->labels.begin(), operand->labels.end(), label) - operand->labels.begin();
    dims.push_back(operand->tensor.dim_size(static_cast<int>(d)));
    strides.push_back(all_strides[d]);
  }
  Tensor permuted;
  GRADFLOW_RETURN_IF_ERROR(CopyView(ctx, operand->tensor, dims, strides, &permuted));
  *operand = {std::move(permuted), labels};
  return absl::OkStatus();
}

Labels Join(const Labels& a, const Labels& b, const Labels& c) {
  Labels all = a;
  all.insert(all.end(), b.begin(), b.end());
  all.insert(all.end(), c.begin(), c.end());
  return all;
}

// Reorders the dimensions of an operand to batches of matrices, rows x columns. The matrices are
// transposed if this saves a copy.
absl::Status ToMatrices(KernelContext& ctx, const Labels& batch, const Labels& rows,
                        const Labels& columns, const TensorShape& shape, LabeledOperand* operand,
                        Tensor* matrices, ProductForm* form) {
  form->transposed = operand->labels == Join(batch, columns, rows) && !rows.empty();
  TensorShape dims = shape;
  if (form->transposed) {
    dims = TensorShape({shape.dim_size(0), shape.dim_size(2), shape.dim_size(1)});
  } else {
    GRADFLOW_RETURN_IF_ERROR(Permute(ctx, Join(batch, rows, columns), operand));
  }
  GRADFLOW_ASSIGN_OR_RETURN(*matrices, operand->tensor.Reshaped(dims));
  return absl::OkStatus();
}

// Sets *x to the product of x and y. Sums over the labels of both that are not needed.
// REQUIRES: labels of only one of x and y are needed
absl::Status Multiply(KernelContext& ctx, const Expanded& equation, const Labels& needed,
                      LabeledOperand* x, LabeledOperand y) {
  // The first label of the output that only one operand has becomes a row of the product.
  for (const Label label : equation.output) {
    const bool in_x = Contains(x->labels, label);
    if (in_x == Contains(y.labels, label)) continue;
    if (!in_x) std::swap(*x, y);
    break;
  }
  Labels batch;
  Labels inner;
  Labels x_free;
  Labels y_free;
  int64_t sizes[4] = {1, 1, 1, 1};
  const auto add = [&](Labels* labels, int64_t* size, Label label) {
    labels->push_back(label);
    *size *= equation.sizes.at(label);
  };
  for (const Label label : x->labels) {
    if (!Contains(y.labels, label)) {
      add(&x_free, &sizes[1], label);
    } else if (Contains(needed, label)) {
      add(&batch, &sizes[0], label);
    } else {
      add(&inner, &sizes[3], label);
    }
  }
  for (const Label label : y.labels) {
    if (!Contains(x->labels, label)) add(&y_free, &sizes[2], label);
  }
  Tensor x_matrices;
  Tensor y_matrices;
  ProductForm x_form;
  ProductForm y_form;
  GRADFLOW_RETURN_IF_ERROR(ToMatrices(ctx, batch, x_free, inner,
                                      TensorShape({sizes[0], sizes[1], sizes[3]}), x, &x_matrices,
                                      &x_form));
  GRADFLOW_RETURN_IF_ERROR(ToMatrices(ctx, batch, inner, y_free,
                                      TensorShape({sizes[0], sizes[3], sizes[2]}), &y, &y_matrices,
                                      &y_form));
  LabeledOperand product;
  product.labels = Join(batch, x_free, y_free);
  DimVector dims;
  for (const Label label : product.labels) dims.push_back(equation.sizes.at(label));
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(dims));
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape matrix_shape,
                            TensorShape::Make({sizes[0], sizes[1], sizes[2]}));
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(x->tensor.dtype(), shape, &product.tensor));
  GRADFLOW_ASSIGN_OR_RETURN(Tensor matrices, product.tensor.Reshaped(matrix_shape));
  GRADFLOW_RETURN_IF_ERROR(MultiplyBatches(ctx, x_matrices, x_form, y_matrices, y_form, &matrices));
  *x = std::move(product);
  return absl::OkStatus();
}

// Sets *out to the operand in the order of the output, with dimensions of size 1. If the output
// repeats labels, writes to the diagonal and sets all other elements to 0.
absl::Status MakeOutput(KernelContext& ctx, const Expanded& equation, const TensorShape& shape,
                        LabeledOperand operand, Tensor* out) {
  Labels labels;
  DimVector target_strides;
  const DimVector all_strides = RowMajorStrides(shape.dim_sizes());
  for (size_t d = 0; d < equation.output.size(); ++d) {
    const Label label = equation.output[d];
    if (!Contains(operand.labels, label)) continue;
    const auto first = std::find(labels.begin(), labels.end(), label);
    if (first != labels.end()) {
      target_strides[first - labels.begin()] += all_strides[d];
    } else {
      labels.push_back(label);
      target_strides.push_back(all_strides[d]);
    }
  }
  GRADFLOW_RETURN_IF_ERROR(Permute(ctx, labels, &operand));
  if (operand.tensor.NumElements() == shape.num_elements()) {
    GRADFLOW_ASSIGN_OR_RETURN(*out, operand.tensor.Reshaped(shape));
    return absl::OkStatus();
  }
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(operand.tensor.dtype(), shape, out));
  const int64_t bytes = out->NumElements() * DataTypeSize(out->dtype());
  char* data = static_cast<char*>(out->raw_data());
  ParallelFor(ctx, bytes, BlockSizeForCost(0.05),
              [&](int64_t begin, int64_t end) { std::fill(data + begin, data + end, 0); });
  const auto dims = operand.tensor.shape().dim_sizes();
  CopyStrided(ctx.run(), dims, operand.tensor, {0, RowMajorStrides(dims)}, out,
              {0, target_strides});
  return absl::OkStatus();
}

class EinsumKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    std::string text;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("equation", &text));
    GRADFLOW_ASSIGN_OR_RETURN(equation_, ParseEquation(text, construction.num_inputs()));
    return absl::OkStatus();
  }

  absl::Status Compute(KernelContext& ctx) const override {
    const DataType type = ctx.expected_output_dtype(0);
    std::vector<PartialTensorShape> shapes;
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      if (ctx.input_dtype(i) != type) {
        return errors::InvalidArgument("inputs must be of type ", DataTypeString(type),
                                       ", but input ", i, " is ",
                                       DataTypeString(ctx.input_dtype(i)));
      }
      shapes.push_back(ctx.input(i).shape());
    }
    GRADFLOW_ASSIGN_OR_RETURN(const Expanded equation, Expand(equation_, shapes));
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape dims, OutputShape(equation));
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(dims.dim_sizes()));
    // If no dimension is 0, the sizes in the products below fit in an int64.
    bool empty = shape.num_elements() == 0;
    for (int i = 0; i < ctx.num_inputs(); ++i) empty |= ctx.input(i).NumElements() == 0;
    if (empty) return OutputZeros(ctx, shape);

    LabeledOperand product;
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      // The labels of the output and of the inputs that follow.
      Labels needed = equation.output;
      for (int j = i + 1; j < ctx.num_inputs(); ++j) {
        needed.insert(needed.end(), equation.inputs[j].begin(), equation.inputs[j].end());
      }
      Tensor wide;
      GRADFLOW_RETURN_IF_ERROR(ConvertElements(ctx, ctx.input(i), ProductType(type), &wide));
      LabeledOperand operand;
      GRADFLOW_RETURN_IF_ERROR(MakeOperand(ctx, std::move(wide), equation.inputs[i], &operand));
      Labels needed_here = needed;
      if (i > 0) {
        needed_here.insert(needed_here.end(), product.labels.begin(), product.labels.end());
      }
      GRADFLOW_RETURN_IF_ERROR(SumOut(ctx, needed_here, &operand));
      if (i == 0) {
        product = std::move(operand);
        continue;
      }
      // Multiply() sums over the labels of both operands. Other labels that are not needed are
      // summed before.
      Labels needed_there = needed;
      needed_there.insert(needed_there.end(), operand.labels.begin(), operand.labels.end());
      GRADFLOW_RETURN_IF_ERROR(SumOut(ctx, needed_there, &product));
      GRADFLOW_RETURN_IF_ERROR(Multiply(ctx, equation, needed, &product, std::move(operand)));
    }
    GRADFLOW_RETURN_IF_ERROR(SumOut(ctx, equation.output, &product));
    Tensor out;
    GRADFLOW_RETURN_IF_ERROR(MakeOutput(ctx, equation, shape, std::move(product), &out));
    if (out.dtype() == type) {
      ctx.set_output(0, std::move(out));
      return absl::OkStatus();
    }
    Tensor* rounded = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &rounded));
    RoundElements(ctx, out, rounded);
    return absl::OkStatus();
  }

 private:
  static absl::Status OutputZeros(KernelContext& ctx, const TensorShape& shape) {
    Tensor* out = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &out));
    char* data = static_cast<char*>(out->raw_data());
    ParallelFor(ctx, out->NumElements() * DataTypeSize(out->dtype()), BlockSizeForCost(0.05),
                [&](int64_t begin, int64_t end) { std::fill(data + begin, data + end, 0); });
    return absl::OkStatus();
  }

  Equation equation_;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("Einsum")
      .Group("linalg_ops")
      .Input("inputs: N * T")
      .Output("output: T")
      .Attr("equation: string")
      .Attr("N: int >= 1")
      .Attr("T: type")
      .Shape(EinsumShape)
      .Doc(R"(Computes sums of products of tensors by an equation in Einstein's notation.

An equation such as "bij,bjk->bik" has a label, a letter, for each dimension of the inputs and the
output. Dimensions with the same label have the same size. The output is the product of the inputs,
summed over the labels that are not in the output. A label that an input repeats selects the
diagonal. If the output repeats a label, only its diagonal is set, and all other elements are 0.
"..." stands for any number of dimensions, which broadcast. Inputs are multiplied from the first to
the last.

Half and bfloat16 are computed in float and rounded once. Integers wrap around.

inputs: Tensors of the shapes that the equation describes.
output: The sums of products.
equation: The subscripts of the inputs, separated by commas, then "->" and the subscript of the
  output.
N: The number of inputs.
T: The type of the inputs and the output, a type of numbers.)");
  registry.Kernel("Einsum", MakeKernel<EinsumKernel>).Types("T", DataTypesOf(NumberTypes()));
}

}  // namespace gradflow::einsum
