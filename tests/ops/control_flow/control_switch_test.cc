#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Returns the indexes of the outputs that have a value. All of them equal `data`.
std::vector<int> Taken(const absl::StatusOr<std::vector<Tensor>>& outputs, const Tensor& data) {
  EXPECT_THAT(outputs, IsOk());
  std::vector<int> taken;
  if (!outputs.ok()) return taken;
  for (size_t i = 0; i < outputs->size(); ++i) {
    if ((*outputs)[i].dtype() == DT_INVALID) continue;
    EXPECT_THAT((*outputs)[i], TensorEq(data));
    taken.push_back(static_cast<int>(i));
  }
  return taken;
}

TEST(Switch, PassesDataToOneOutput) {
  for (const Tensor& data : {AsTensor<float>({1, 2}), AsTensor<tstring>({"a"}),
                             AsTensor<int8_t>({1, 2, 3, 4}, {2, 2})}) {
    for (const bool pred : {false, true}) {
      OpTester op("Switch");
      op.Input(data).Input(AsScalar<bool>(pred));
      EXPECT_THAT(Taken(op.RunOn({data, AsScalar<bool>(pred)}), data), ElementsAre(pred ? 1 : 0));
      EXPECT_THAT(op.InferShapes(), IsOkAndHolds(ElementsAre(PartialTensorShape(data.shape()),
                                                             PartialTensorShape(data.shape()))));
    }
  }
}

TEST(Switch, NeedsAScalar) {
  ExpectErrors(
      {{"vector", OpTester("Switch").Input<float>({1}).Input<bool>({true}),
        "Shape must be rank 0 but is rank 1: pred has shape [1]"},
       {"_SwitchN", OpTester("_SwitchN").Input<float>({1}).Input<int32_t>({1}).Attr("num_outs", 2),
        "Shape must be rank 0 but is rank 1: output_index has shape [1]"}});
}

TEST(SwitchN, PassesDataToTheLastOutputForOtherIndexes) {
  const Tensor data = AsTensor<float>({1, 2});
  const struct {
    int32_t index;
    int taken;
  } cases[] = {{0, 0}, {1, 1}, {2, 2}, {3, 2}, {-1, 2}};
  for (const auto& test : cases) {
    const Tensor index = AsScalar<int32_t>(test.index);
    OpTester op("_SwitchN");
    op.Input(data).Input(index).Attr("num_outs", 3);
    EXPECT_THAT(Taken(op.RunOn({data, index}), data), ElementsAre(test.taken));
  }
}

TEST(Merge, ReturnsTheFirstInput) {
  const Tensor a = AsTensor<float>({1, 2});
  const Tensor b = AsTensor<float>({3, 4});
  EXPECT_THAT(OpTester("Merge").Input(a).Input(b).Run(),
              IsOkAndHolds(ElementsAre(TensorEq(a), TensorEq(AsScalar<int32_t>(0)))));
}

TEST(Merge, InfersTheDimensionsInWhichAllInputsAgree) {
  const PartialTensorShape unknown;
  const struct {
    std::vector<PartialTensorShape> inputs;
    PartialTensorShape output;
  } cases[] = {
      {{{2, 1}, {2, 1}, {2, 1}}, {2, 1}},  {{{2, 1}, {2, 2}, {3, 1}}, {-1, -1}},
      {{{2, 1}, {2, 1}, {3, 1}}, {-1, 1}}, {{{2, 1}, unknown}, unknown},
      {{unknown, {2, 1}}, unknown},        {{{2, 1}, {2, 1, 1}}, unknown},
  };
  for (const auto& test : cases) {
    OpTester op("Merge");
    for (const PartialTensorShape& shape : test.inputs) op.UnknownInput(DT_FLOAT, shape);
    EXPECT_THAT(op.InferShapes(),
                IsOkAndHolds(ElementsAre(test.output, PartialTensorShape(TensorShape()))));
  }
}

TEST(RefSelect, ReturnsAVariable) {
  const auto op = [](int32_t index) {
    return OpTester("RefSelect")
        .Input(AsScalar<int32_t>(index))
        .Input<float>({1, 2})
        .Input<float>({3, 4})
        .ShapeIsData();
  };
  // Run() returns the data outputs, then the variables. The reference output is left out.
  EXPECT_THAT(op(1).Run(), IsOkAndHolds(ElementsAre(TensorEq(AsTensor<float>({1, 2})),
                                                    TensorEq(AsTensor<float>({3, 4})))));
  EXPECT_THAT(op(2).Run(), StatusIs(kInvalidArgument, "index must be in [0, 2), but is 2"));
  EXPECT_THAT(op(-1).Run(), StatusIs(kInvalidArgument, "index must be in [0, 2), but is -1"));
}

TEST(RefSwitch, KeepsTheShape) {
  EXPECT_THAT(OpTester("RefSwitch")
                  .UnknownInput(DT_FLOAT, {2, 3})
                  .UnknownInput(DT_BOOL, TensorShape())
                  .Attr("T", DT_FLOAT)
                  .InferShapes(),
              IsOkAndHolds(ElementsAre(PartialTensorShape({2, 3}), PartialTensorShape({2, 3}))));
}

TEST(RefMerge, KeepsTheShape) {
  EXPECT_THAT(
      OpTester("RefMerge")
          .UnknownInput(DT_FLOAT, {2, 3})
          .UnknownInput(DT_FLOAT, {2, 3})
          .Attr("T", DT_FLOAT)
          .Attr("N", 2)
          .InferShapes(),
      IsOkAndHolds(ElementsAre(PartialTensorShape({2, 3}), PartialTensorShape(TensorShape()))));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
