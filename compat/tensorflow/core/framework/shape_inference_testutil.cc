#include "tensorflow/core/framework/shape_inference_testutil.h"

#include <algorithm>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gradflow/core/status.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow {
namespace shape_inference {
namespace {

std::vector<std::string> SplitList(absl::string_view text, char separator) {
  if (text.empty()) return {};
  return absl::StrSplit(text, separator);
}

// Parses "in3".
bool ParseInput(absl::string_view text, int* input) {
  return absl::ConsumePrefix(&text, "in") && absl::SimpleAtoi(text, input);
}

// Parses "d0_1".
bool ParseDim(absl::string_view text, int* input, int* dim) {
  if (!absl::ConsumePrefix(&text, "d")) return false;
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits('_', 1));
  return absl::SimpleAtoi(parts.first, input) && absl::SimpleAtoi(parts.second, dim);
}

// Returns true if both sizes are equal, or both unknown.
bool IsEqual(DimensionHandle a, DimensionHandle b) {
  return InferenceContext::Value(a) == InferenceContext::Value(b);
}

bool IsEqual(InferenceContext* c, ShapeHandle a, ShapeHandle b) {
  if (c->Rank(a) != c->Rank(b)) return false;
  int d = 0;
  while (d < c->Rank(a) && IsEqual(c->Dim(a, d), c->Dim(b, d))) ++d;
  return d >= c->Rank(a);
}

// Returns true if a size is the expected one: "?", "3" or "d0_1|d1_0".
absl::StatusOr<bool> IsExpected(InferenceContext* c, DimensionHandle dim,
                                absl::string_view expected) {
  if (expected == "?") return !InferenceContext::ValueKnown(dim);
  int64 size = 0;
  if (absl::SimpleAtoi(expected, &size)) return InferenceContext::Value(dim) == size;
  for (const std::string& item : SplitList(expected, '|')) {
    int i = 0;
    int d = 0;
    if (!ParseDim(item, &i, &d) || i < 0 || i >= c->num_inputs() || d < 0 ||
        d >= c->Rank(c->input(i))) {
      return errors::InvalidArgument("'", item, "' is not a dimension");
    }
    if (IsEqual(c->Dim(c->input(i), d), dim)) return true;
  }
  return false;
}

// Returns true if a shape is the expected one: "?", "in0|in1" or "[1,?,d0_1|d1_0]".
absl::StatusOr<bool> IsExpected(InferenceContext* c, ShapeHandle shape,
                                absl::string_view expected) {
  if (expected == "?") return !InferenceContext::RankKnown(shape);
  if (absl::ConsumePrefix(&expected, "[") && absl::ConsumeSuffix(&expected, "]")) {
    const std::vector<std::string> dims = SplitList(absl::StripAsciiWhitespace(expected), ',');
    if (c->Rank(shape) != static_cast<int32>(dims.size())) return false;
    for (size_t d = 0; d < dims.size(); ++d) {
      GRADFLOW_ASSIGN_OR_RETURN(
          const bool is_equal,
          IsExpected(c, c->Dim(shape, d), absl::StripAsciiWhitespace(dims[d])));
      if (!is_equal) return false;
    }
    return true;
  }
  for (const std::string& item : SplitList(expected, '|')) {
    int i = 0;
    if (!ParseInput(item, &i) || i < 0 || i >= c->num_inputs()) {
      return errors::InvalidArgument("'", item, "' is not an input");
    }
    if (IsEqual(c, c->input(i), shape)) return true;
  }
  return false;
}

}  // namespace

absl::Status ShapeInferenceTestutil::MakeShapeFromString(InferenceContext::ShapeManager* manager,
                                                         absl::string_view spec,
                                                         ShapeHandle* output) {
  absl::string_view text = absl::StripAsciiWhitespace(spec);
  if (text == "?") {
    *output = manager->UnknownShape();
    return absl::OkStatus();
  }
  if (!absl::ConsumePrefix(&text, "[") || !absl::ConsumeSuffix(&text, "]")) {
    return errors::InvalidArgument("the shape '", spec, "' has no brackets");
  }
  std::vector<DimensionHandle> dims;
  for (const std::string& item : SplitList(absl::StripAsciiWhitespace(text), ',')) {
    int64 size = InferenceContext::kUnknownDim;
    if (absl::StripAsciiWhitespace(item) != "?" && !absl::SimpleAtoi(item, &size)) {
      return errors::InvalidArgument("the shape '", spec, "' has dimension '", item, "'");
    }
    dims.push_back(manager->MakeDim(size));
  }
  *output = manager->MakeShape(dims);
  return absl::OkStatus();
}

absl::Status ShapeInferenceTestutil::InferShapes(const ShapeInferenceTestOp& op,
                                                 const std::string& ins,
                                                 const std::string& expected_outs) {
  const OpRegistrationData* data = nullptr;
  TF_RETURN_IF_ERROR(OpRegistry::Global()->LookUp(op.name, &data));
  InferenceContext::ShapeManager manager;
  std::vector<ShapeHandle> inputs;
  for (const std::string& spec : SplitList(ins, ';')) {
    inputs.emplace_back();
    TF_RETURN_IF_ERROR(MakeShapeFromString(&manager, spec, &inputs.back()));
  }
  std::vector<std::unique_ptr<std::vector<ShapeAndType>>> handles;
  for (const auto* values : op.input_resource_handle_shapes_and_types) {
    handles.emplace_back();
    if (values == nullptr) continue;
    handles.back() = std::make_unique<std::vector<ShapeAndType>>();
    for (const auto& [spec, dtype] : *values) {
      ShapeHandle shape;
      TF_RETURN_IF_ERROR(MakeShapeFromString(&manager, spec, &shape));
      handles.back()->emplace_back(shape, dtype);
    }
  }
  InferenceContext c(op.graph_def_version, op.node_def, data->op_def, inputs, op.input_tensors, {},
                     std::move(handles));
  TF_RETURN_IF_ERROR(c.construction_status());
  if (data->shape_inference_fn == nullptr) {
    return errors::InvalidArgument("No shape inference function exists for op '", op.name, "'");
  }
  const absl::Status status = c.Run(data->shape_inference_fn);
  if (expected_outs == "e") {
    if (status.ok()) return errors::Unknown("Shape inference should have returned error");
    return status;
  }
  TF_RETURN_IF_ERROR(status);
  const std::vector<std::string> expected = SplitList(expected_outs, ';');
  if (static_cast<int>(expected.size()) != c.num_outputs()) {
    return errors::Unknown(
        "The expected output string lists the wrong number of outputs. It lists ", expected.size(),
        " but should list ", c.num_outputs());
  }
  const bool has_plain_fn = HasPlainShapeFn(op.name);
  for (int i = 0; i < c.num_outputs(); ++i) {
    TF_RETURN_IF_ERROR(has_plain_fn ? CheckValues(&c, i, expected[i])
                                    : CheckOutput(&c, i, expected[i]));
  }
  return absl::OkStatus();
}

absl::Status ShapeInferenceTestutil::CheckValues(InferenceContext* c, int output,
                                                 absl::string_view expected) {
  const ShapeHandle out = c->output(output);
  const absl::StatusOr<bool> is_expected = IsExpected(c, out, absl::StripAsciiWhitespace(expected));
  if (!is_expected.ok()) {
    return errors::InvalidArgument("Output ", output, ": ", is_expected.status().message());
  }
  if (*is_expected) return absl::OkStatus();
  return errors::Unknown("Output ", output, " was expected to be ", expected, ". Output shape was ",
                         c->DebugString(out));
}

absl::Status ShapeInferenceTestutil::CheckOutput(InferenceContext* c, int output,
                                                 absl::string_view expected) {
  const ShapeHandle out = c->output(output);
  const std::string shown = absl::StrCat(" Output shape was ", c->DebugString(out));
  expected = absl::StripAsciiWhitespace(expected);

  // ---- The whole shape ----
  int matched = -1;
  for (int i = 0; i < c->num_inputs() && matched < 0; ++i) {
    if (c->input(i).SameHandle(out)) matched = i;
  }
  if (absl::StartsWith(expected, "in")) {
    if (matched < 0) {
      return errors::Unknown("Output ", output, " should have matched an input shape by handle, ",
                             "but matched no input shape.", shown);
    }
    for (const std::string& item : SplitList(expected, '|')) {
      int input = 0;
      if (!ParseInput(item, &input)) {
        return errors::InvalidArgument("Output ", output, ": '", item, "' is not an input");
      }
      if (input == matched) return absl::OkStatus();
    }
    return errors::Unknown("Output ", output, " matched input ", matched,
                           " and should have matched one of (", expected, ").", shown);
  }
  if (matched >= 0) {
    return errors::Unknown("Output ", output, " matched input ", matched,
                           " by handle but was expected to not match an input shape.", shown);
  }
  if (expected == "?") {
    if (!InferenceContext::RankKnown(out)) return absl::OkStatus();
    return errors::Unknown("Output ", output, " expected to be unknown.", shown);
  }

  // ---- Each dimension ----
  absl::string_view list = expected;
  if (!absl::ConsumePrefix(&list, "[") || !absl::ConsumeSuffix(&list, "]")) {
    return errors::InvalidArgument("Output ", output, ": '", expected, "' is not a shape");
  }
  const std::vector<std::string> dims = SplitList(absl::StripAsciiWhitespace(list), ',');
  const int32 rank = InferenceContext::Rank(out);
  if (rank != static_cast<int32>(dims.size())) {
    return errors::Unknown("Output ", output, " expected rank ", dims.size(), " but was ",
                           rank < 0 ? "?" : absl::StrCat(rank), ".", shown);
  }
  for (int d = 0; d < rank; ++d) {
    const DimensionHandle dim = c->Dim(out, d);
    const std::string where = absl::StrCat("Output dim ", output, ",", d);
    const absl::string_view item = absl::StripAsciiWhitespace(dims[d]);
    std::string source;
    for (int i = 0; i < c->num_inputs() && source.empty(); ++i) {
      for (int k = 0; k < c->Rank(c->input(i)) && source.empty(); ++k) {
        if (c->Dim(c->input(i), k).SameHandle(dim)) source = absl::StrCat("d", i, "_", k);
      }
    }
    int input = 0, index = 0;
    if (ParseDim(SplitList(item, '|').empty() ? "" : SplitList(item, '|')[0], &input, &index)) {
      if (source.empty()) {
        return errors::Unknown(where, " was expected to match one of (", item,
                               ") but matched no input dimension.", shown);
      }
      bool found = false;
      for (const std::string& choice : SplitList(item, '|')) {
        if (!ParseDim(choice, &input, &index)) {
          return errors::InvalidArgument(where, ": '", choice, "' is not a dimension");
        }
        // An input may contain the same dimension twice.
        found = found || (input >= 0 && input < c->num_inputs() &&
                          c->Dim(c->input(input), index).SameHandle(dim));
      }
      if (!found) {
        return errors::Unknown(where, " matched input ", source,
                               ", but should have matched one of (", item, ").", shown);
      }
      continue;
    }
    const bool known = InferenceContext::ValueKnown(dim);
    if (item == "?") {
      if (!source.empty()) {
        return errors::Unknown(where, " expected to be an unknown but matched input ", source, ".",
                               shown);
      }
      if (known) {
        return errors::Unknown(where, " expected to be unknown but was ", c->DebugString(dim), ".",
                               shown);
      }
      continue;
    }
    int64 size = 0;
    if (!absl::SimpleAtoi(item, &size)) {
      return errors::Unknown(where, ": the expected dimension value '", item,
                             "' failed to parse as int64.", shown);
    }
    if (!source.empty()) {
      return errors::Unknown(where, " expected to be ", size, " but matched input ", source, ".",
                             shown);
    }
    if (!known || InferenceContext::Value(dim) != size) {
      return errors::Unknown(where, " expected to be ", size, " but was ", c->DebugString(dim), ".",
                             shown);
    }
  }
  return absl::OkStatus();
}

}  // namespace shape_inference
}  // namespace tensorflow
