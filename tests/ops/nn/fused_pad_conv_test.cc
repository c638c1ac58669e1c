// Compares FusedPadConv2D and FusedResizeAndPadConv2D with the ops that they combine.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gradflow/graph/scope.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

std::vector<int64_t> Strides() { return {1, 2, 1, 1}; }

// Returns the result of MirrorPad followed by Conv2D.
Tensor PadAndConvolve(const Tensor& x, const Tensor& paddings, const Tensor& filter,
                      const std::string& mode, const std::string& padding) {
  const absl::StatusOr<Tensor> padded =
      OpTester("MirrorPad").Input(x).Input(paddings).Attr("mode", mode).RunOne();
  EXPECT_THAT(padded, IsOk());
  const absl::StatusOr<Tensor> result = OpTester("Conv2D")
                                            .Input(*padded)
                                            .Input(filter)
                                            .Attr("strides", Strides())
                                            .Attr("padding", padding)
                                            .RunOne();
  EXPECT_THAT(result, IsOk());
  return *result;
}

Tensor Paddings() { return AsTensor<int32_t>({0, 0, 1, 2, 2, 1, 0, 0}, {4, 2}); }

TEST(FusedPadConv2D, EqualsMirrorPadAndConv2D) {
  for (const DataType dtype : {DT_HALF, DT_BFLOAT16, DT_FLOAT, DT_DOUBLE}) {
    const Tensor x = RandomTensor(dtype, {2, 5, 7, 3}, -1, 1);
    const Tensor filter = RandomTensor(dtype, {3, 2, 3, 4}, -1, 1);
    for (const char* mode : {"REFLECT", "SYMMETRIC"}) {
      for (const char* padding : {"SAME", "VALID"}) {
        EXPECT_THAT(OpTester("FusedPadConv2D")
                        .Input(x)
                        .Input(Paddings())
                        .Input(filter)
                        .Attr("mode", mode)
                        .Attr("strides", Strides())
                        .Attr("padding", padding)
                        .RunOne(),
                    TensorEq(PadAndConvolve(x, Paddings(), filter, mode, padding)))
            << DataTypeString(dtype) << " " << mode << " " << padding;
      }
    }
  }
}

TEST(FusedResizeAndPadConv2D, ResizesFirst) {
  for (const DataType dtype : {DT_HALF, DT_FLOAT, DT_DOUBLE}) {
    const Tensor x = RandomTensor(dtype, {1, 4, 3, 2}, -1, 1);
    const Tensor filter = RandomTensor(dtype, {2, 2, 2, 3}, -1, 1);
    const Tensor size = AsTensor<int32_t>({6, 5});
    for (const bool align : {false, true}) {
      const absl::StatusOr<Tensor> resized =
          OpTester("ResizeBilinear").Input(x).Input(size).Attr("align_corners", align).RunOne();
      ASSERT_THAT(resized, IsOk());
      const absl::StatusOr<Tensor> converted =
          OpTester("Cast").Input(*resized).Attr("DstT", dtype).RunOne();
      ASSERT_THAT(converted, IsOk());
      EXPECT_THAT(OpTester("FusedResizeAndPadConv2D")
                      .Input(x)
                      .Input(size)
                      .Input(Paddings())
                      .Input(filter)
                      .Attr("resize_align_corners", align)
                      .Attr("mode", "REFLECT")
                      .Attr("strides", Strides())
                      .Attr("padding", "VALID")
                      .RunOne(),
                  TensorEq(PadAndConvolve(*converted, Paddings(), filter, "REFLECT", "VALID")))
          << DataTypeString(dtype);
    }
  }
}

// A session keeps the reordered copy of a constant filter.
TEST(FusedPadConv2D, KeepsTheReorderedFilterLikeConv2D) {
  const auto bytes_kept = [](bool fused) {
    const Scope scope = Scope::NewRootScope();
    const Output x = ops::Placeholder(scope, DT_FLOAT);
    const Output filter = ops::Const(scope, RandomTensor(DT_FLOAT, {3, 3, 20, 30}));
    const Output paddings = ops::Const(scope, Paddings());
    const Output y = fused
                         ? Output(ops::FusedPadConv2D(scope, x, paddings, filter, "REFLECT",
                                                      {1, 1, 1, 1}, "VALID"))
                         : Output(ops::Conv2D(scope, ops::MirrorPad(scope, x, paddings, "REFLECT"),
                                              filter, {1, 1, 1, 1}, "VALID"));
    GraphDef graph;
    EXPECT_THAT(scope.ToGraphDef(&graph), IsOk());
    absl::StatusOr<std::unique_ptr<Session>> session = Session::Make({});
    EXPECT_THAT(session, IsOk());
    EXPECT_THAT((*session)->Create(graph), IsOk());
    {
      std::vector<Tensor> outputs;
      EXPECT_THAT((*session)->Run({{x.name(), RandomTensor(DT_FLOAT, {2, 9, 8, 20})}}, {y.name()},
                                  {}, &outputs),
                  IsOk());
    }
    return (*session)->MemoryStats().bytes_in_use;
  };
  EXPECT_EQ(bytes_kept(true), bytes_kept(false));
}

TEST(FusedPadConv2D, TakesEmptyTensorsAndRejectsInvalidInputs) {
  const auto run = [](const Tensor& x, const Tensor& paddings, const Tensor& filter,
                      const char* mode = "REFLECT") {
    return OpTester("FusedPadConv2D")
        .Input(x)
        .Input(paddings)
        .Input(filter)
        .Attr("mode", mode)
        .Attr("strides", {1, 1, 1, 1})
        .Attr("padding", "SAME")
        .RunOne();
  };
  const Tensor filter = RandomTensor(DT_FLOAT, {2, 2, 3, 4}, -1, 1);
  EXPECT_THAT(run(Tensor(DT_FLOAT, {0, 5, 5, 3}), Paddings(), filter, "SYMMETRIC"),
              TensorEq(Tensor(DT_FLOAT, {0, 8, 8, 4})));
  // REFLECT needs more elements than it adds.
  EXPECT_THAT(run(RandomTensor(DT_FLOAT, {1, 2, 2, 3}, -1, 1), Paddings(), filter),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("padding")));
  EXPECT_THAT(run(RandomTensor(DT_FLOAT, {5, 5, 3}, -1, 1), Paddings(), filter),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("padding")));
  EXPECT_THAT(run(RandomTensor(DT_FLOAT, {1, 5, 5, 2}, -1, 1), Paddings(), filter),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("depth")));
}

TEST(FusedResizeAndPadConv2D, SizeIsLimited) {
  EXPECT_THAT(OpTester("FusedResizeAndPadConv2D")
                  .Input(Tensor(DT_FLOAT, {1, 1, 1, 1}))
                  .Input(AsTensor<int32_t>({1879048192, 1879048192}))
                  .Input(AsTensor<int32_t>({0, 0, 0, 0, 0, 0, 0, 0}, {4, 2}))
                  .Input(Tensor(DT_FLOAT, {1, 1, 1, 1}))
                  .Attr("mode", "REFLECT")
                  .Attr("strides", {1, 1, 1, 1})
                  .Attr("padding", "SAME")
                  .RunOne(),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
