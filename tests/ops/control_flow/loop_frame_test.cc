#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"

namespace gradflow {
namespace testing {
namespace {

OpTester Loop(const char* op, const Tensor& data) {
  OpTester tester(op);
  tester.Input(data);
  if (std::string(op) == "Enter") tester.Attr("frame_name", "loop").ShapeIsData();
  return tester;
}

TEST(LoopFrame, OpsReturnTheirInput) {
  for (const char* op : {"Enter", "Exit", "NextIteration"}) {
    for (const Tensor& data : {AsTensor<float>({1, 2}), AsTensor<tstring>({"a", "b"})}) {
      EXPECT_THAT(Loop(op, data).RunOne(), TensorEq(data)) << op;
    }
  }
}

TEST(Enter, KeepsTheShapeOfConstants) {
  const auto shape = [](const char* op, bool is_constant) {
    return OpTester(op)
        .UnknownInput(DT_FLOAT, {2, 3})
        .Attr("T", DT_FLOAT)
        .Attr("frame_name", "loop")
        .Attr("is_constant", is_constant)
        .InferShape();
  };
  for (const char* op : {"Enter", "RefEnter"}) {
    EXPECT_THAT(shape(op, true), IsOkAndHolds(PartialTensorShape({2, 3})));
    // The shape of a variable may change in the loop.
    EXPECT_THAT(shape(op, false), IsOkAndHolds(PartialTensorShape()));
  }
}

TEST(LoopFrame, ReferencesKeepTheirShape) {
  for (const char* op : {"RefExit", "RefNextIteration"}) {
    EXPECT_THAT(OpTester(op).UnknownInput(DT_FLOAT, {2, 3}).Attr("T", DT_FLOAT).InferShape(),
                IsOkAndHolds(PartialTensorShape({2, 3})));
  }
}

TEST(LoopCond, ReturnsAScalar) {
  for (const bool value : {false, true}) {
    EXPECT_THAT(OpTester("LoopCond").Input(AsScalar<bool>(value)).RunOne(),
                TensorEq(AsScalar<bool>(value)));
  }
  ExpectErrors({{"vector", OpTester("LoopCond").Input<bool>({true}),
                 "Shape must be rank 0 but is rank 1: input has shape [1]"}});
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
