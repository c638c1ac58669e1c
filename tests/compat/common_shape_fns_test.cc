// Tests of the common shape functions and of window sizes.
#include "tensorflow/core/framework/common_shape_fns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/kernel_shape_util.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference_testutil.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/lib/core/status_test_util.h"

namespace tensorflow {
namespace common_shape_fns_test {

using shape_inference::InferenceContext;
using shape_inference::ShapeHandle;
using ::testing::HasSubstr;
using ShapeFn = std::function<absl::Status(InferenceContext*)>;
namespace fns = shape_inference;

// The shape function of the op CompatAnyShapeFn. Each case sets it.
ShapeFn& CurrentFn() {
  static auto& fn = *new ShapeFn;
  return fn;
}

REGISTER_OP("CompatAnyShapeFn")
    .Input("x: N * float")
    .Output("y: M * float")
    .Attr("N: int")
    .Attr("M: int")
    .SetShapeFn([](InferenceContext* c) { return CurrentFn()(c); });

struct Case {
  ShapeFn fn;
  const char* ins;
  // The outputs in the notation of INFER_OK, or '!' and a part of the error.
  std::string outs;
  std::vector<std::pair<const char*, AttrValue>> attrs = {};
  std::vector<const Tensor*> tensors = {};
  int version = TF_GRAPH_DEF_VERSION;
};

void Check(const Case& c) {
  SCOPED_TRACE(absl::StrCat(c.ins, " to ", c.outs));
  const auto count = [](const std::string& list) {
    return list.empty() ? 0 : static_cast<int>(std::count(list.begin(), list.end(), ';')) + 1;
  };
  const bool fails = !c.outs.empty() && c.outs[0] == '!';
  ShapeInferenceTestOp op("CompatAnyShapeFn");
  AddNodeAttr("N", count(c.ins), &op.node_def);
  AddNodeAttr("M", fails ? 1 : count(c.outs), &op.node_def);
  for (const auto& [name, value] : c.attrs) (*op.node_def.mutable_attr())[name] = value;
  op.input_tensors = c.tensors;
  op.graph_def_version = c.version;
  CurrentFn() = c.fn;
  if (fails) {
    INFER_ERROR(c.outs.substr(1), op, c.ins);
  } else {
    INFER_OK(op, c.ins, c.outs);
  }
}

template <typename T>
std::pair<const char*, AttrValue> Attr(const char* name, const T& value) {
  AttrValue attr;
  SetAttrValue(value, &attr);
  return {name, attr};
}

// Binds the second argument of the shape function.
template <typename Fn>
ShapeFn With(Fn fn, int value) {
  return [=](InferenceContext* c) { return fn(c, value); };
}

TEST(CommonShapeFns, PassShapesThrough) {
  const ShapeFn rank = With(fns::UnchangedShapeWithRank, 2);
  const ShapeFn least = With(fns::UnchangedShapeWithRankAtLeast, 2);
  const ShapeFn most = With(fns::UnchangedShapeWithRankAtMost, 2);
  const Case cases[] = {
      {fns::UnchangedShape, "[2];[3]", "in0"},
      {rank, "[2,3]", "in0"},
      {rank, "?", "[?,?]"},
      {rank, "[2]", "!Shape must be rank 2 but is rank 1"},
      {rank, "[1,2,3]", "!Shape must be rank 2 but is rank 3"},
      {least, "?", "in0"},
      {least, "[1,2]", "in0"},
      {least, "[1,2,3]", "in0"},
      {least, "[1]", "!Shape must be at least rank 2 but is rank 1"},
      {most, "?", "in0"},
      {most, "[1,2]", "in0"},
      {most, "[]", "in0"},
      {most, "[1,2,3]", "!Shape must be at most rank 2 but is rank 3"},
      {fns::NoOutputs, "[1]", ""},
      {fns::ScalarShape, "[1]", "[]"},
      {[](InferenceContext* c) {
         c->set_output(0, c->input(0));
         return fns::UnknownShape(c);
       },
       "[1]", "?;?"},
      {fns::MergeBothInputsShapeFn, "[2,?];[?,3]", "[d0_0,d1_1]"},
      {fns::MergeBothInputsShapeFn, "[2];[3]", "!Dimension 0 in both shapes must be equal"},
  };
  for (const Case& c : cases) Check(c);
}

TEST(CommonShapeFns, BroadcastShapes) {
  const ShapeFn fn = fns::BroadcastBinaryOpShapeFn;
  const auto broadcast = [](bool error, bool same) -> ShapeFn {
    return [=](InferenceContext* c) {
      // The call must overwrite `out`, whatever the result.
      ShapeHandle out = c->input(0);
      const absl::Status status = fns::BroadcastBinaryOpOutputShapeFnHelper(
          c, c->input(0), c->input(same ? 0 : 1), error, &out);
      EXPECT_TRUE(status.ok() || !c->RankKnown(out));
      c->set_output(0, out);
      return status;
    };
  };
  const Case cases[] = {
      {fn, "[2,3];[2,3]", "[d0_0,d0_1]"},
      {fn, "[];[3]", "[d1_0]"},
      {fn, "[3];[]", "[d0_0]"},
      {fn, "[1];[]", "[d0_0]"},
      {fn, "[];[1]", "[d1_0]"},
      {fn, "[1];[1]", "[d1_0]"},
      {fn, "[];[]", "[]"},
      {fn, "[3];[?]", "[d0_0]"},
      {fn, "[?];[3]", "[d1_0]"},
      {fn, "[?];[1]", "[d0_0]"},
      {fn, "[1];[?]", "[d1_0]"},
      {fn, "[?];[?]", "[?]"},
      {fn, "[1];?", "?"},
      {fn, "?;[1]", "?"},
      {fn, "[2,1,4];[3,1]", "[d0_0,d1_0,d0_2]"},
      {fn, "[2,3];[2,4]", "!Dimensions must be equal, but are 3 and 4"},
      {With(fns::BroadcastBinaryOpOutputShapeFn, 1), "[2];[1]", "?;[d0_0]"},
      {broadcast(true, false), "[2];[3]", "!Dimensions must be equal, but are 2 and 3"},
      {broadcast(false, false), "[2];[3]", "?"},
      {broadcast(false, false), "[2];?", "?"},
      // If both operands are the same shape, unknown dimensions stay the same dimension.
      {broadcast(true, true), "[?,2];[9]", "[d0_0,d0_1]"},
  };
  for (const Case& c : cases) Check(c);
}

TEST(CommonShapeFns, MultiplyMatrices) {
  const auto flags = [](const char* a, bool value_a, const char* b, bool value_b) {
    return std::vector<std::pair<const char*, AttrValue>>{Attr(a, value_a), Attr(b, value_b)};
  };
  const auto transpose = [&](bool a, bool b) { return flags("transpose_a", a, "transpose_b", b); };
  const auto adj = [&](bool x, bool y) { return flags("adj_x", x, "adj_y", y); };
  const auto matmul = fns::MatMulShape;
  const auto batch = fns::BatchMatMulShape;
  const auto broadcast = fns::BatchMatMulV2Shape;
  const Case cases[] = {
      {matmul, "[2,3];[3,4]", "[d0_0,d1_1]", transpose(false, false)},
      {matmul, "[3,2];[3,4]", "[d0_1,d1_1]", transpose(true, false)},
      {matmul, "[2,3];[4,3]", "[d0_0,d1_0]", transpose(false, true)},
      {matmul, "[3,2];[4,3]", "[d0_1,d1_0]", transpose(true, true)},
      {matmul, "[2,3];[4,3]", "!but are 3 and 4", transpose(false, false)},
      {matmul, "[2];[3,4]", "!must be rank 2 but is rank 1", transpose(false, false)},
      {matmul, "[2,3];[3]", "!must be rank 2 but is rank 1", transpose(false, false)},
      {matmul, "[2,3];[3,4]", "!transpose_a", {Attr("transpose_b", false)}},
      {matmul, "[2,3];[3,4]", "!transpose_b", {Attr("transpose_a", false)}},
      {batch, "[2,3];[3,4]", "[d0_0,d1_1]", adj(false, false)},
      {batch, "[5,2,3];[5,3,4]", "[d0_0|d1_0,d0_1,d1_2]", adj(false, false)},
      {batch, "[5,3,2];[?,3,4]", "[d0_0,d0_2,d1_2]", adj(true, false)},
      {batch, "[?,2,3];[5,4,3]", "[d1_0,d0_1,d1_1]", adj(false, true)},
      {batch, "[6,5,3,2];[6,5,4,3]", "[d0_0,d0_1,d0_3,d1_2]", adj(true, true)},
      {batch, "[1,2,3];[5,3,4]", "!must be equal, but are 1 and 5", adj(false, false)},
      {batch, "[2,3];[5,3,4]", "!Shapes must be equal rank", adj(false, false)},
      {batch, "[3];[3,4]", "!at least rank 2 but is rank 1", adj(false, false)},
      {batch, "[2,3];[3]", "!at least rank 2 but is rank 1", adj(false, false)},
      {batch, "[2,3];[3,4]", "!adj_x", {Attr("adj_y", false)}},
      {batch, "[2,3];[3,4]", "!adj_y", {Attr("adj_x", false)}},
      {broadcast, "[1,2,3];[5,3,4]", "[d1_0,d0_1,d1_2]", adj(false, false)},
      {broadcast, "[2,2,3];[5,3,4]", "!but are 2 and 5", adj(false, false)},
      {broadcast, "[2,3];[4,4]", "!but are 3 and 4", adj(false, false)},
  };
  for (const Case& c : cases) Check(c);
}

TEST(CommonShapeFns, AddBiasesToTheChannels) {
  const auto first = Attr("data_format", "NCHW"), last = Attr("data_format", "NHWC");
  const auto add = fns::BiasAddShape;
  const auto grad = fns::BiasAddGradShape;
  const Case cases[] = {
      {add, "[2,3,4];[4]", "[d0_0,d0_1,d0_2|d1_0]"},
      {add, "[2,?];[4]", "[d0_0,d1_0]"},
      {add, "[2,4];[?]", "[d0_0,d0_1]", {last}},
      {add, "?;[4]", "?"},
      {add, "[4];[4]", "!at least rank 2 but is rank 1"},
      {add, "[2,3];[4]", "!but are 3 and 4"},
      {add, "[2,4];[4,1]", "!must be rank 1 but is rank 2"},
      {add, "[2,?,4];[3]", "[d0_0,d1_0,d0_2]", {first}},
      {add, "[2,3];[3]", "!at least rank 3 but is rank 2", {first}},
      {grad, "[2,3]", "[d0_1]"},
      {grad, "[2,3,4]", "[d0_2]", {last}},
      {grad, "[3]", "!at least rank 2 but is rank 1"},
      {grad, "[2,3,4]", "[d0_1]", {first}},
      {grad, "[2,3]", "!at least rank 3 but is rank 2", {first}},
      {grad, "?", "[?]"},
  };
  for (const Case& c : cases) Check(c);
}

TEST(CommonShapeFns, ReduceAxes) {
  const auto drop = Attr("keep_dims", false), keep = Attr("keep_dims", true);
  const Tensor one = test::AsTensor<int32>({1}), scalar = test::AsScalar<int32>(2);
  const Tensor two = test::AsTensor<int64>({-1, 0}), lowest = test::AsTensor<int64>({-3});
  const Tensor high = test::AsTensor<int32>({3}), low = test::AsTensor<int32>({-4});
  const Tensor real = test::AsTensor<float>({1}), none = test::AsTensor<int32>({});
  const auto fn = fns::ReductionShape;
  const Case cases[] = {
      {fn, "[2,3];[1]", "?", {drop}},
      {fn, "[2,3];[1]", "[?,?]", {keep}},
      {fn, "?;[1]", "?", {keep}},
      {fn, "?;[1]", "?", {keep}, {nullptr, &one}},
      {fn, "[2,3,4];[1]", "[d0_0,d0_2]", {drop}, {nullptr, &one}},
      {fn, "[2,3,4];[1]", "[d0_0,1,d0_2]", {keep}, {nullptr, &one}},
      {fn, "[2,3,4];[2]", "[d0_1]", {drop}, {nullptr, &two}},
      {fn, "[2,3,4];[2]", "[1,d0_1,1]", {keep}, {nullptr, &two}},
      {fn, "[2,3,4];[]", "[d0_0,d0_1]", {drop}, {nullptr, &scalar}},
      {fn, "[2,3,4];[1]", "[d0_1,d0_2]", {drop}, {nullptr, &lowest}},
      {fn, "[2,3];[0]", "[d0_0,d0_1]", {drop}, {nullptr, &none}},
      {fn,
       "[2,3,4];[1]",
       "!Invalid reduction dimension 3 for input with 3 dimensions.",
       {drop},
       {nullptr, &high}},
      {fn, "[2,3,4];[1]", "!Invalid reduction dimension -4 for", {drop}, {nullptr, &low}},
      {fn, "[2];[1]", "!must be int32 or int64, but are float", {drop}, {nullptr, &real}},
      {fn, "[2];[1]", "!keep_dims"},
      // Graphs of older versions may have axes of any rank.
      {fn, "[2];[1,1]", "!at most rank 1 but is rank 2", {drop}},
      {fn, "[2];[1,1]", "!at most rank 1 but is rank 2", {drop}, {}, 0},
      {fn, "[2];[1,1]", "!at most rank 1 but is rank 2", {drop}, {}, 21},
      {fn, "[2];[1,1]", "?", {drop}, {}, 20},
      {fn, "[2];[1,1]", "?", {drop}, {}, 1},
  };
  for (const Case& c : cases) Check(c);
}

TEST(CommonShapeFns, Concatenate) {
  constexpr int kMax = gradflow::kMaxDims;
  const Tensor zero = test::AsScalar<int32>(0), one = test::AsScalar<int64>(1);
  const Tensor last = test::AsScalar<int32>(-1), vector = test::AsTensor<int32>({0});
  const Tensor high = test::AsScalar<int32>(kMax), highest = test::AsScalar<int32>(kMax - 1);
  const Tensor low = test::AsScalar<int32>(-kMax - 1), lowest = test::AsScalar<int32>(-kMax);
  const auto v2 = fns::ConcatV2Shape;
  const ShapeFn first_two = With(fns::ConcatShape, 2);
  const std::string far = "!the axis of a concatenation is ";
  const Case cases[] = {
      {v2, "[2,5];[?,3];[]", "[d0_0,8]", {}, {nullptr, nullptr, &one}},
      {v2, "[2,5];[?,?];[]", "[d0_0,?]", {}, {nullptr, nullptr, &last}},
      {v2, "[2,5];[3,5];[]", "[5,d0_1|d1_1]", {}, {nullptr, nullptr, &zero}},
      {v2, "[2,5];[2,?];[]", "[?,?]"},
      {v2, "?;[2];[]", "[?]"},
      {v2, "[];?;[]", "!at least rank 1 but is rank 0"},
      {v2, "[2];[2,3];[]", "!must be rank 1 but is rank 2"},
      {v2, "[2];[3];[1]", "!must be rank 0 but is rank 1"},
      {v2, "[2];[3];[]", "!Input must be scalar but has rank 1", {}, {nullptr, nullptr, &vector}},
      {v2, "[2];[3];[]", "!at least rank 2 but is rank 1", {}, {nullptr, nullptr, &one}},
      {v2, "[];[2];[]", "!at least rank 1 but is rank 0", {}, {nullptr, nullptr, &zero}},
      {v2, "[2,1];[];[]", "!at least rank 1 but is rank 0", {}, {nullptr, nullptr, &last}},
      {v2, "[2];[3];[]", absl::StrCat(far, kMax), {}, {nullptr, nullptr, &high}},
      {v2, "[2];[3];[]", absl::StrCat(far, -kMax - 1), {}, {nullptr, nullptr, &low}},
      {v2,
       "[2];[3];[]",
       absl::StrCat("!at least rank ", kMax, " but is"),
       {},
       {nullptr, nullptr, &highest}},
      {v2,
       "[2];[3];[]",
       absl::StrCat("!at least rank ", kMax, " but is"),
       {},
       {nullptr, nullptr, &lowest}},
      // Concatenates the first two inputs. The third is ignored.
      {first_two, "[];[2];[3];[4,4]", "[5]", {}, {&zero}},
      {first_two, "[];[2];[3];[4,4]", "[?]"},
  };
  for (const Case& c : cases) Check(c);
}

TEST(CommonShapeFns, ReadShapes) {
  const Tensor sizes = test::AsTensor<int32>({2, 3});
  const auto shapes = [](const std::vector<PartialTensorShape>& list) {
    return std::vector<std::pair<const char*, AttrValue>>{Attr("shapes", list)};
  };
  const Case cases[] = {
      {fns::ExplicitShape, "[1]", "[2,?]", {Attr("shape", PartialTensorShape({2, -1}))}},
      {fns::ExplicitShape, "[1]", "?", {Attr("shape", PartialTensorShape())}},
      {fns::ExplicitShape, "[1]", "!shape"},
      {fns::ExplicitShapes, "[1]", "[2,?];?", shapes({{2, -1}, PartialTensorShape()})},
      {fns::ExplicitShapes, "[1]", "!attribute shapes is empty", shapes({})},
      {fns::ExplicitShapes, "[1]", "!attribute shapes is missing"},
      {fns::RandomShape, "[2]", "[2,3]", {}, {&sizes}},
      {fns::RandomShape, "[3]", "[?,?,?]"},
      {fns::RandomShape, "[]", "!must be rank 1 but is rank 0"},
  };
  for (const Case& c : cases) Check(c);
}

TEST(CommonShapeFns, ScatterOverGroups) {
  const Tensor zero = test::AsScalar<int32>(0), one = test::AsScalar<int32>(1);
  const Tensor vector = test::AsTensor<int32>({0});
  const auto fn = fns::ReduceScatterShape;
  const Case cases[] = {
      {fn, "?;[2];[]", "in0"},
      {fn, "[8,6];[2];[]", "!ReduceScatter group_assignment should be rank 2"},
      {fn, "[8,6];[2,4];[]", "[?,?]"},
      {fn, "[8,6];?;[]", "[?,?]"},
      {fn, "[8,6];[2,4];[]", "[2,d0_1]", {}, {nullptr, nullptr, &zero}},
      {fn, "[6,8];[2,4];[]", "[d0_0,2]", {}, {nullptr, nullptr, &one}},
      {fn, "[8];?;[]", "[?]", {}, {nullptr, nullptr, &zero}},
      {fn, "[6];[2,4];[]", "!divisible by 4 but is 6", {}, {nullptr, nullptr, &zero}},
      {fn, "[8];[2,4];[]", "!must be scalar", {}, {nullptr, nullptr, &vector}},
  };
  for (const Case& c : cases) Check(c);
}

TEST(CommonShapeFns, ValidatesSparseTensors) {
  const auto fn = [](InferenceContext* c) {
    return fns::ValidateSparseTensor(c, c->input(0), c->input(1), c->input(2));
  };
  const Case cases[] = {
      {fn, "[5,3];[5];[3]", ""},
      {fn, "?;?;?", ""},
      {fn, "[5];[5];[3]", "!must be rank 2 but is rank 1"},
      {fn, "[5,3];[5,1];[3]", "!must be rank 1 but is rank 2"},
      {fn, "[5,3];[5];[3,1]", "!must be rank 1 but is rank 2"},
      {fn, "[5,3];[4];[3]", "!but are 5 and 4"},
      {fn, "[5,3];[5];[2]", "!but are 3 and 2"},
  };
  for (const Case& c : cases) Check(c);
}

TEST(CommonShapeFns, ServeOpsByTheirAttributes) {
  const std::vector<int> window = {1, 2, 2, 1};
  const Tensor begin = test::AsTensor<int32>({1, 0}), size = test::AsTensor<int32>({2, -1});
  const auto type = Attr("T", DT_FLOAT);
  const std::vector<std::pair<const char*, AttrValue>> pool = {
      type, Attr("ksize", window), Attr("strides", window), Attr("padding", "VALID")};
  const Case cases[] = {
      {fns::AvgPoolShape, "[8,6,4,3]", "[d0_0,3,2,d0_3]", pool},
      {fns::MaxPoolShape, "[8,6,4,3]", "[d0_0,3,2,d0_3]", pool},
      {fns::EinsumShape, "[2,3];[3,4]", "[d0_0,d1_1]", {type, Attr("equation", "ij,jk->ik")}},
      {fns::FusedBatchNormShape,
       "[8,6,4,3];[3];[3];[3];[3]",
       "[d0_0,d0_1,d0_2,3];[3];[3];[3];[3]",
       {type, Attr("is_training", false)}},
      {fns::FusedBatchNormGradShape,
       "[8,6,4,3];[8,6,4,3];[3];[3];[3]",
       "[8,6,4,3];[3];[3];[0];[0]",
       {type}},
      {fns::GatherNdShape, "[2,3,9];[5,1]", "[d1_0,3,9]", {}},
      {fns::SliceShape, "[4,5];[2];[2]", "[2,d0_1]", {}, {nullptr, &begin, &size}},
      {fns::AvgPoolShape, "[8,6,4]", "!rank", pool},
  };
  for (const Case& c : cases) Check(c);
}

TEST(WindowedOutputSize, ReadsPaddings) {
  Padding padding = VALID;
  for (const auto& [text, expected] : std::vector<std::pair<const char*, Padding>>{
           {"SAME", SAME}, {"VALID", VALID}, {"EXPLICIT", EXPLICIT}}) {
    TF_EXPECT_OK(GetPaddingFromString(text, &padding));
    EXPECT_EQ(padding, expected);
  }
  const absl::Status status = GetPaddingFromString("same", &padding);
  EXPECT_EQ(status.code(), error::INVALID_ARGUMENT);
  EXPECT_EQ(status.message(), "padding must be VALID, SAME or EXPLICIT, but is 'same'");
  EXPECT_EQ(padding, EXPLICIT);
}

TEST(WindowedOutputSize, ChecksItsArguments) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  constexpr int64_t kHalf = int64_t{1} << 62;
  const struct {
    int64_t input, filter, dilation, stride;
    Padding padding;
    int64_t before, after;
    // "size before after", or the beginning of the error.
    const char* result;
  } cases[] = {
      {10, 3, 1, 3, VALID, 7, 7, "3 0 0"},
      {3, 3, 1, 1, VALID, 7, 7, "1 0 0"},
      {2, 3, 1, 1, VALID, 7, 7,
       "Computed output size would be negative: 0 [input_size: 2, effective_filter_size: 3, "
       "stride: 1]"},
      {5, 1, 1, 1, VALID, 7, 7, "5 0 0"},
      {6, 2, 4, 1, VALID, 7, 7, "2 0 0"},
      {10, 3, 1, 3, SAME, 7, 7, "4 1 1"},
      {9, 4, 1, 3, SAME, 7, 7, "3 0 1"},
      {9, 1, 1, 3, SAME, 7, 7, "3 0 0"},
      {10, 3, 1, 1, EXPLICIT, 2, 3, "13 2 3"},
      {0, 2, 1, 1, EXPLICIT, 1, 1, "1 1 1"},
      {kMax - 1, 1, 1, kMax, EXPLICIT, 1, 0, "1 1 0"},
      {kMax - 1, 1, 1, kMax, EXPLICIT, 1, 1, "the padded input has more than 2^63 - 1 elements"},
      {kMax, 1, 1, kMax, EXPLICIT, 1, 0, "the padded input has more than 2^63 - 1 elements"},
      {5, 1, 1, 0, VALID, 7, 7, "Stride must be > 0, but got 0"},
      {5, 1, 0, 1, VALID, 7, 7, "Dilation rate must be >= 1, but got 0"},
      {5, 0, 1, 1, VALID, 7, 7, "a window of 0 elements, dilated by 1, does not fit an input of 5"},
      {-1, 1, 1, 1, SAME, 7, 7,
       "a window of 1 elements, dilated by 1, does not fit an input of -1"},
      {5, kHalf + 1, 2, 1, VALID, 7, 7, "a window of 4611686018427387905 elements, dilated by 2"},
      {5, 2, kMax, 1, VALID, 7, 7, "a window of 2 elements, dilated by 9223372036854775807"},
      {5, 2, kMax - 1, 1, VALID, 7, 7, "Computed output size would be negative: "},
  };
  for (const auto& c : cases) {
    int64_t size = -1, before = c.before, after = c.after;
    const absl::Status status = GetWindowedOutputSizeVerbose(
        c.input, c.filter, c.dilation, c.stride, c.padding, &size, &before, &after);
    if (status.ok()) {
      EXPECT_EQ(absl::StrCat(size, " ", before, " ", after), c.result);
    } else {
      EXPECT_EQ(status.code(), error::INVALID_ARGUMENT);
      EXPECT_EQ(status.message().substr(0, std::strlen(c.result)), c.result);
    }
    // The short form has a single padding.
    int64_t short_size = -1, padding = c.before;
    const absl::Status short_status = GetWindowedOutputSize(c.input, c.filter, c.dilation, c.stride,
                                                            c.padding, &short_size, &padding);
    if (c.padding == EXPLICIT) {
      EXPECT_EQ(short_status.message(),
                "explicit padding has two sizes: GetWindowedOutputSizeVerbose");
    } else {
      EXPECT_EQ(short_status, status);
      EXPECT_EQ(short_size, size);
      EXPECT_EQ(padding, before);
    }
  }
}

}  // namespace common_shape_fns_test
}  // namespace tensorflow
