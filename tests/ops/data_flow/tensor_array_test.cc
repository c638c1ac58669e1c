// Tests of the TensorArray ops. Each test runs a graph, because the handle of an array lives in a
// run.
#include <string>
#include <utility>
#include <vector>

#include "gradflow/ops/standard_ops.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/ops/data_flow/run_graph.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TensorArrayTest : public ::testing::Test {
 protected:
  static ops::TensorArrayV3::Attrs Attrs() { return {}; }
  ops::TensorArrayV3 Array(int32_t size, const ops::TensorArrayV3::Attrs& attrs = {},
                           DataType dtype = DT_FLOAT) {
    return ops::TensorArrayV3(scope_, size, dtype, attrs.TensorArrayName("a"));
  }
  Output Write(const ops::TensorArrayV3& array, int32_t index, const Input& value,
               const Input& flow) {
    return ops::TensorArrayWriteV3(scope_, array.handle, index, value, flow);
  }
  Output Read(const Input& handle, int32_t index, const Input& flow, DataType dtype = DT_FLOAT) {
    return ops::TensorArrayReadV3(scope_, handle, index, flow, dtype);
  }
  absl::StatusOr<std::vector<Tensor>> RunGraph(const std::vector<Output>& fetches) {
    return testing::RunGraph(scope_, fetches);
  }
  // Expects an INVALID_ARGUMENT with this text.
  void ExpectError(const Output& fetch, const char* error) {
    EXPECT_THAT(RunGraph({fetch}), StatusIs(kInvalidArgument, HasSubstr(error)));
  }

  Scope scope_ = Scope::NewRootScope();
};

TEST_F(TensorArrayTest, TensorArrayWriteV3ThenTensorArrayReadV3) {
  const auto array = Array(2);
  Output flow = Write(array, 0, Input::Initializer({1.f, 2.f}), array.flow);
  flow = Write(array, 1, 3.f, flow);
  const Output first = Read(array.handle, 0, flow);
  const Output second = Read(array.handle, 1, flow);
  const Output size = ops::TensorArraySizeV3(scope_, array.handle, flow);
  EXPECT_THAT(
      RunGraph({first, second, size}),
      IsOkAndHolds(ElementsAre(TensorEq(AsTensor<float>({1, 2})), TensorEq(AsScalar<float>(3)),
                               TensorEq(AsScalar<int32_t>(2)))));
}

TEST_F(TensorArrayTest, ElementsAreWrittenOnceAndReadOnce) {
  const auto array = Array(2);
  const Output once = Write(array, 0, 1.f, array.flow);
  ExpectError(Write(array, 0, 1.f, once), "it has already been written to");
  const Output read = Read(array.handle, 0, once);
  const Scope after = scope_.WithControlDependencies(read);
  ExpectError(ops::TensorArrayReadV3(after, array.handle, 0, once, DT_FLOAT),
              "Could not read index 0 twice because it was cleared");
  ExpectError(ops::TensorArrayWriteV3(after, array.handle, 0, 1.f, once),
              "it has already been read");
}

TEST_F(TensorArrayTest, ElementsMayBeReadAgainWithoutClearAfterRead) {
  const auto array = Array(1, Attrs().ClearAfterRead(false));
  const Output flow = Write(array, 0, 1.f, array.flow);
  const Output read = Read(array.handle, 0, flow);
  const Output again =
      ops::TensorArrayReadV3(scope_.WithControlDependencies(read), array.handle, 0, flow, DT_FLOAT);
  EXPECT_THAT(RunGraph({read, again}), IsOkAndHolds(ElementsAre(TensorEq(AsScalar<float>(1)),
                                                                TensorEq(AsScalar<float>(1)))));
}

TEST_F(TensorArrayTest, ChecksIndexesTypesAndShapes) {
  const auto array = Array(2, Attrs().ElementShape({2}));
  ExpectError(
      Write(array, 2, Input::Initializer({1.f, 2.f}), array.flow),
      "TensorArray a: Tried to write to index 2 but array is not resizeable and size is: 2");
  ExpectError(Write(array, -1, Input::Initializer({1.f, 2.f}), array.flow),
              "Tried to write to index -1");
  ExpectError(Write(array, 0, 1.f, array.flow), "the value shape is []");
  ExpectError(Write(array, 0, Input::Initializer({1, 2}), array.flow),
              "TensorArray dtype is float but Op is trying to write dtype int32");
  ExpectError(Read(array.handle, 2, array.flow), "Tried to read from index 2 but array size is: 2");
  ExpectError(Read(array.handle, 0, array.flow, DT_INT32), "Op requested dtype int32");
  ExpectError(Array(-1).flow, "size must not be negative, but is -1");
  const auto variable = ops::VarHandleOp(scope_, DT_FLOAT, TensorShape({}));
  ExpectError(Read(variable, 0, 0.f), "handle must be a TensorArray");
}

TEST_F(TensorArrayTest, ElementsThatAreNotWrittenAreZeros) {
  const auto array = Array(1, Attrs().ElementShape({2}));
  EXPECT_THAT(RunGraph({Read(array.handle, 0, array.flow)}),
              IsOkAndHolds(ElementsAre(TensorEq(AsTensor<float>({0, 0})))));
  const auto unknown = Array(1);
  ExpectError(Read(unknown.handle, 0, unknown.flow), "the element shape is not fully defined");
}

TEST_F(TensorArrayTest, IdenticalElementShapesFollowFromTheFirst) {
  const auto array = Array(2, Attrs().IdenticalElementShapes(true));
  const Output flow = Write(array, 0, Input::Initializer({1.f, 2.f}), array.flow);
  EXPECT_THAT(RunGraph({Read(array.handle, 1, flow)}),
              IsOkAndHolds(ElementsAre(TensorEq(AsTensor<float>({0, 0})))));
  ExpectError(Write(array, 1, 1.f, flow), "the value shape is []");
}

TEST_F(TensorArrayTest, DynamicArraysGrow) {
  const auto array = Array(0, Attrs().DynamicSize(true));
  const Output flow = Write(array, 4, 1.f, array.flow);
  EXPECT_THAT(RunGraph({ops::TensorArraySizeV3(scope_, array.handle, flow)}),
              IsOkAndHolds(ElementsAre(TensorEq(AsScalar<int32_t>(5)))));
}

TEST_F(TensorArrayTest, LargeArraysExceedTheMemoryLimit) {
  const auto array = Array(2147483647);
  SessionOptions options;
  options.tensor_memory_limit_bytes = 1 << 20;
  EXPECT_THAT(testing::RunGraph(scope_, {array.flow}, options),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("out of memory for the elements of a TensorArray")));
}

TEST_F(TensorArrayTest, TensorArrayScatterV3ThenTensorArrayGatherV3) {
  const auto array = Array(3);
  const Output flow = ops::TensorArrayScatterV3(
      scope_, array.handle, Input::Initializer({2, 0, 1}),
      Input::Initializer({{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}}), array.flow);
  const Output gathered =
      ops::TensorArrayGatherV3(scope_, array.handle, Input::Initializer({0, 2}), flow, DT_FLOAT);
  EXPECT_THAT(RunGraph({gathered}),
              IsOkAndHolds(ElementsAre(TensorEq(AsTensor<float>({3, 4, 1, 2}, {2, 2})))));
}

TEST_F(TensorArrayTest, ScatterAndGatherCheckTheirInputs) {
  const auto array = Array(3);
  const auto scatter = [&](const Input& indices, const Input& value) {
    return ops::TensorArrayScatterV3(scope_, array.handle, indices, value, array.flow);
  };
  ExpectError(scatter(Input::Initializer({3}), Input::Initializer({1.f})),
              "Max scatter index must be < array size (3 vs. 3)");
  ExpectError(scatter(Input::Initializer({0, 1}), Input::Initializer({1.f})),
              "Expected len(indices) == values.shape[0], but saw: 2 vs. 1");
  const Output flow = Write(array, 1, Input::Initializer({1.f}), Write(array, 0, 1.f, array.flow));
  const auto gather = [&](const Input& indices) {
    return ops::TensorArrayGatherV3(scope_, array.handle, indices, flow, DT_FLOAT);
  };
  ExpectError(gather(Input::Initializer({0, 1})), "TensorArray has inconsistent shapes");
  ExpectError(gather(Input(Tensor(DT_INT32, {0}))), "TensorArray has size zero");
}

TEST_F(TensorArrayTest, TensorArraySplitV3ThenTensorArrayConcatV3) {
  const auto array = Array(3);
  const Tensor lengths = AsTensor<int64_t>({2, 0, 1});
  const Output flow = ops::TensorArraySplitV3(
      scope_, array.handle, Input::Initializer({{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}}), lengths,
      array.flow);
  const ops::TensorArrayConcatV3 all(scope_, array.handle, flow, DT_FLOAT);
  EXPECT_THAT(RunGraph({all.value, all.lengths}),
              IsOkAndHolds(ElementsAre(TensorEq(AsTensor<float>({1, 2, 3, 4, 5, 6}, {3, 2})),
                                       TensorEq(lengths))));
}

TEST_F(TensorArrayTest, SplitChecksTheLengths) {
  const auto array = Array(2);
  const auto split = [&](const Tensor& lengths) {
    return ops::TensorArraySplitV3(scope_, array.handle, Input::Initializer({1.f, 2.f}), lengths,
                                   array.flow);
  };
  ExpectError(split(AsTensor<int64_t>({1, 2})), "sum of lengths is 3");
  ExpectError(split(AsTensor<int64_t>({3, -1})), "lengths[0] must be in [0, 2], but is 3");
  ExpectError(split(AsTensor<int64_t>({2})), "size is not equal to the size of lengths (2 vs. 1)");
}

TEST_F(TensorArrayTest, GradientsOfTensorArrayGradV3AddUp) {
  const auto array = Array(2, Attrs().ClearAfterRead(false));
  const Output flow = Write(array, 0, Input::Initializer({1.f, 2.f}), array.flow);
  const ops::TensorArrayGradV3 gradient(scope_, array.handle, flow, "gradients");
  Output sum = gradient.flow_out;
  for (int i = 0; i < 3; ++i) {
    sum = ops::TensorArrayWriteV3(scope_, gradient.grad_handle, 0, Input::Initializer({1.f, 10.f}),
                                  sum);
  }
  const ops::TensorArrayGradV3 same(scope_, array.handle, sum, "gradients");
  const ops::TensorArrayGradV3 other(scope_, array.handle, sum, "other");
  EXPECT_THAT(RunGraph({Read(same.grad_handle, 0, same.flow_out), Read(other.grad_handle, 0, sum)}),
              IsOkAndHolds(ElementsAre(TensorEq(AsTensor<float>({3, 30})),
                                       TensorEq(AsTensor<float>({0, 0})))));
}

TEST_F(TensorArrayTest, TheOrderOfGradientsIsLimited) {
  const auto array = Array(1);
  Output handle = array.handle;
  Output flow = Write(array, 0, Input::Initializer({1.f, 2.f}), array.flow);
  for (int order = 1; order <= 101; ++order) {
    const ops::TensorArrayGradV3 gradient(scope_, handle, flow, "gradients");
    handle = gradient.grad_handle;
    flow = gradient.flow_out;
    if (order < 100) continue;
    if (order == 100) {
      EXPECT_THAT(RunGraph({Read(handle, 0, flow)}),
                  IsOkAndHolds(ElementsAre(TensorEq(AsTensor<float>({0, 0})))));
    } else {
      ExpectError(flow, "Unable to create a gradients TensorArray of an order above 100.");
    }
  }
}

TEST_F(TensorArrayTest, TensorArrayGradWithShapePrependsDimensions) {
  const auto array = Array(1);
  const Output flow = Write(array, 0, Input::Initializer({1.f, 2.f}), array.flow);
  const ops::TensorArrayGradWithShape gradient(scope_, array.handle, flow, Input::Initializer({2}),
                                               "gradients");
  EXPECT_THAT(RunGraph({Read(gradient.grad_handle, 0, gradient.flow_out)}),
              IsOkAndHolds(ElementsAre(TensorEq(AsTensor<float>({0, 0, 0, 0}, {2, 2})))));
}

TEST_F(TensorArrayTest, TensorArrayCloseV3EndsTheUse) {
  const auto array = Array(1);
  const Operation close = ops::TensorArrayCloseV3(scope_, array.handle);
  ExpectError(ops::TensorArraySizeV3(scope_.WithControlDependencies(std::vector<Operation>{close}),
                                     array.handle, array.flow),
              "TensorArray a has already been closed");
}

TEST_F(TensorArrayTest, HoldsStrings) {
  const auto array = Array(2, {}, DT_STRING);
  const Output flow = Write(array, 1, "b", Write(array, 0, "a", array.flow));
  EXPECT_THAT(RunGraph({ops::TensorArrayGatherV3(scope_, array.handle, Input::Initializer({0, 1}),
                                                 flow, DT_STRING)}),
              IsOkAndHolds(ElementsAre(TensorEq(AsTensor<tstring>({"a", "b"})))));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
