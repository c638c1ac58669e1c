// Tests of tensor slices, types and shapes, and of definitions of kernels and functions.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/framework/device_attributes.pb.h"
#include "tensorflow/core/framework/full_type.pb.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/kernel_def.pb.h"
#include "tensorflow/core/framework/kernel_def_builder.h"
#include "tensorflow/core/framework/kernel_def_util.h"
#include "tensorflow/core/framework/partial_tensor_shape.h"
#include "tensorflow/core/framework/tensor_matcher.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/tensor_slice.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/platform/status_matchers.h"
#include "tensorflow/core/platform/test.h"

namespace tensorflow {
namespace {

using ::tensorflow::testing::StatusIs;
using ::testing::HasSubstr;

TEST(TensorSliceTest, ParsesAndPrints) {
  const TensorSlice slice = TensorSlice::ParseOrDie("-:0,10:14,1");
  ASSERT_EQ(slice.dims(), 3);
  EXPECT_TRUE(slice.IsFullAt(0));
  EXPECT_EQ(slice.start(1), 0);
  EXPECT_EQ(slice.length(1), 10);
  EXPECT_EQ(slice.end(2), 15);
  EXPECT_EQ(slice.DebugString(), "-:0,10:14,1");
  EXPECT_FALSE(slice.IsFull());
  EXPECT_TRUE(TensorSlice(2).IsFull());
  EXPECT_EQ(TensorSlice::ParseOrDie("").dims(), 0);
  TensorSlice output;
  for (const char* text : {"1", "1,2,3", "a,b", "-1,2", "1,0", "1,-1", ":"}) {
    EXPECT_THAT(TensorSlice::Parse(text, &output), StatusIs(error::INVALID_ARGUMENT)) << text;
  }

  TensorSliceProto proto;
  slice.AsProto(&proto);
  EXPECT_FALSE(TensorSlice::HasExtentLength(proto.extent(0)));
  EXPECT_EQ(TensorSlice::GetExtentLength(proto.extent(1)), 10);
  EXPECT_EQ(TensorSlice(proto), slice);
  TF_ASSERT_OK(TensorSlice::BuildTensorSlice(proto, &output));
  EXPECT_EQ(output, slice);
  proto.mutable_extent(1)->set_length(-2);
  EXPECT_THAT(TensorSlice::BuildTensorSlice(proto, &output), StatusIs(error::INVALID_ARGUMENT));
  proto.mutable_extent(1)->set_start(-2);
  EXPECT_THAT(TensorSlice::BuildTensorSlice(proto, &output), StatusIs(error::INVALID_ARGUMENT));
  proto.mutable_extent(1)->set_start(kint64max);
  proto.mutable_extent(1)->set_length(1);
  EXPECT_THAT(TensorSlice::BuildTensorSlice(proto, &output), StatusIs(error::INVALID_ARGUMENT));
  EXPECT_EQ(output, slice);
}

TEST(TensorSliceTest, IntersectsAndCovers) {
  const TensorSlice a = TensorSlice::ParseOrDie("-:2,4");
  TensorSlice result;
  EXPECT_TRUE(a.Intersect(TensorSlice::ParseOrDie("1,3:4,9"), &result));
  EXPECT_EQ(result.DebugString(), "1,3:4,2");
  EXPECT_TRUE(a.Overlaps(TensorSlice::ParseOrDie("-:5,1")));
  EXPECT_FALSE(a.Intersect(TensorSlice::ParseOrDie("-:6,1"), &result));
  EXPECT_EQ(result.dims(), 0);
  EXPECT_FALSE(a.Overlaps(TensorSlice(3)));

  a.ComputeRelative(TensorSlice::ParseOrDie("1,3:4,2"), &result);
  EXPECT_EQ(result.DebugString(), "1,3:2,2");
  TensorSlice cover = TensorSlice::ParseOrDie("2,2:2,2");
  cover.UpdateToCover(TensorSlice::ParseOrDie("-:7,1"));
  EXPECT_EQ(cover.DebugString(), "-:2,6");
  cover.Extend(3);
  EXPECT_EQ(cover.DebugString(), "-:2,6:-");

  TensorShape shape;
  TF_ASSERT_OK(a.SliceTensorShape({3, 8}, &shape));
  EXPECT_EQ(shape, TensorShape({3, 4}));
  EXPECT_THAT(a.SliceTensorShape({3, 5}, &shape), StatusIs(error::INTERNAL));
  EXPECT_EQ(shape, TensorShape());
  EXPECT_THAT(a.SliceTensorShape({3}, &shape), StatusIs(error::INTERNAL));
  std::vector<int64> indices(3), sizes(3);
  a.FillIndicesAndSizes(TensorShape({3, 8}), &indices, &sizes);
  EXPECT_EQ(indices, (std::vector<int64>{0, 2, 0}));
  EXPECT_EQ(sizes, (std::vector<int64>{3, 4, 1}));
}

TEST(ShapeUtilsTest, ComparesListsOfShapes) {
  EXPECT_EQ(TensorShapeUtils::ShapeListString({TensorShape({2, 3}), TensorShape()}), "[[2,3], []]");
  const std::vector<PartialTensorShape> shapes = {{2, -1}, PartialTensorShape()};
  EXPECT_EQ(PartialTensorShapeUtils::PartialShapeListString(shapes), "[[2,?], <unknown>]");
  EXPECT_TRUE(PartialTensorShapeUtils::AreIdentical(shapes, shapes));
  const std::vector<PartialTensorShape> known = {{2, 3}, {4}};
  EXPECT_FALSE(PartialTensorShapeUtils::AreIdentical(shapes, known));
  EXPECT_TRUE(PartialTensorShapeUtils::AreCompatible(shapes, known));
  EXPECT_FALSE(PartialTensorShapeUtils::AreCompatible(shapes, {known[0]}));

  int64 elements = 0;
  TF_ASSERT_OK(TensorShapeUtils::NumElements({2, 3, 4}, &elements));
  EXPECT_EQ(elements, 24);
  EXPECT_FALSE(TensorShapeUtils::NumElements({kint64max, 2}, &elements).ok());
  PartialTensorShape partial;
  TF_ASSERT_OK(TensorShapeUtils::MakeShape(std::vector<int32>{5, -1}, &partial));
  EXPECT_EQ(partial, PartialTensorShape({5, -1}));
#ifdef GRADFLOW_EIGEN_VIEWS
  EXPECT_EQ((TensorShape({2, 3}).AsEigenDSizes<2>()[1]), 3);
  EXPECT_EQ((TensorShape({2, 3}).AsEigenDSizesWithPadding<3>()[2]), 1);
  Eigen::DSizes<Eigen::DenseIndex, 1> sizes;
  EXPECT_FALSE(TensorShape({2, 3}).AsEigenDSizesWithStatus<1>(&sizes).ok());
#endif
}

TEST(TypesTest, HasNamesAndSets) {
  EXPECT_EQ(DataTypeString(MakeRefType(DT_FLOAT)), "float_ref");
  EXPECT_EQ(DT_FLOAT_REF, DT_FLOAT + kDataTypeRefOffset);
  EXPECT_EQ(DataTypeSliceString({DT_FLOAT, DT_INT32}), "float, int32");
  EXPECT_EQ(DataTypeSliceString({}), "");
  EXPECT_EQ(DeviceTypeString(DeviceType(DEVICE_CPU)), "CPU");
  EXPECT_TRUE(DataTypeIsUnsigned(DT_UINT16));
  EXPECT_FALSE(DataTypeIsUnsigned(DT_INT16));
  EXPECT_TRUE(DataTypeCanUseMemcpy(DT_INT64));
  EXPECT_FALSE(DataTypeCanUseMemcpy(DT_STRING));
  EXPECT_TRUE(DataTypeAlwaysOnHost(DT_STRING));
  for (const DataType type : AllTypes()) {
    DataType parsed;
    EXPECT_TRUE(DataTypeFromString(DataTypeString(type), &parsed));
    EXPECT_EQ(parsed, type);
  }
  FullTypeDef full;
  map_dtype_to_child_of_tensor(DT_INT32, full);
  EXPECT_EQ(full.type_id(), TFT_TENSOR);
  ASSERT_EQ(full.args_size(), 1);
  EXPECT_EQ(full.args(0).type_id(), TFT_INT32);
}

TEST(KernelDefTest, BuildsDefinitions) {
  const std::unique_ptr<const KernelDef> def(
      KernelDefBuilder("Op")
          .Device(DEVICE_CPU)
          .TypeConstraint<float>("T")
          .AttrConstraint("mode", gtl::ArraySlice<std::string>({"a", "b"}))
          .AttrConstraint("n", int64_t{3})
          .AttrConstraint("flag", true)
          .HostMemory("x")
          .Label("fast")
          .Priority(2)
          .Build());
  EXPECT_EQ(def->op(), "Op");
  EXPECT_EQ(def->device_type(), "CPU");
  EXPECT_EQ(def->host_memory_arg(0), "x");
  EXPECT_EQ(def->label(), "fast");
  EXPECT_EQ(def->priority(), 2);

  NodeDef node;
  node.set_name("node");
  const auto matches = [&] {
    bool match = false;
    TF_EXPECT_OK(KernelAttrsMatch(*def, AttrSlice(node), &match));
    return match;
  };
  (*node.mutable_attr())["T"].set_type(DT_FLOAT);
  (*node.mutable_attr())["mode"].set_s("b");
  (*node.mutable_attr())["n"].set_i(3);
  (*node.mutable_attr())["flag"].mutable_list()->add_b(true);
  EXPECT_TRUE(matches());
  (*node.mutable_attr())["flag"].mutable_list()->add_b(false);
  EXPECT_FALSE(matches());
  (*node.mutable_attr())["flag"].set_b(true);
  EXPECT_TRUE(matches());
  (*node.mutable_attr())["n"].set_i(4);
  EXPECT_FALSE(matches());
  (*node.mutable_attr())["n"].set_f(3);
  bool match = true;
  EXPECT_THAT(KernelAttrsMatch(*def, AttrSlice(node), &match), StatusIs(error::INVALID_ARGUMENT));
  EXPECT_FALSE(match);
  node.mutable_attr()->erase("n");
  EXPECT_THAT(KernelAttrsMatch(*def, AttrSlice(node), &match),
              StatusIs(error::INVALID_ARGUMENT, HasSubstr("has constraint on attr 'n' not in")));
  KernelDef unknown;
  unknown.add_constraint()->set_name("T");
  EXPECT_THAT(KernelAttrsMatch(unknown, AttrSlice(node), &match), StatusIs(error::UNIMPLEMENTED));
}

TEST(FunctionDefHelperTest, DefinesFunctions) {
  const Tensor two(2.0f);
  const FunctionDef function = FunctionDefHelper::Define(
      "Twice", {"x: T"}, {"y: T"}, {"T: {float, double}"},
      {FunctionDefHelper::Const("two", 2.0f),
       {{"scaled"}, "Cast", {"two"}, {{"SrcT", DT_FLOAT}, {"DstT", "$T"}}},
       {{"y"}, "Mul", {"x", "scaled"}, {{"T", "$T"}}, {"two"}, "/cpu:0"}});
  EXPECT_EQ(function.signature().name(), "Twice");
  EXPECT_EQ(function.signature().attr(0).name(), "T");
  ASSERT_EQ(function.node_def_size(), 3);
  const NodeDef& y = function.node_def(2);
  EXPECT_EQ(y.name(), "y");
  EXPECT_EQ(y.device(), "/cpu:0");
  ASSERT_EQ(y.input_size(), 3);
  EXPECT_EQ(y.input(0), "x");
  EXPECT_EQ(y.input(1), "scaled:y:0");
  EXPECT_EQ(y.input(2), "^two");
  EXPECT_EQ(y.attr().at("T").placeholder(), "T");
  EXPECT_EQ(function.node_def(0).attr().at("dtype").type(), DT_FLOAT);
  EXPECT_EQ(function.ret().at("y"), "y:z:0");
}

TEST(FunctionDefHelperTest, CreatesFunctions) {
  const FunctionDef function = FunctionDefHelper::Create(
      "Call", {"x: float"}, {"y: float"}, {},
      {{{"call"},
        "PartitionedCall",
        {"x"},
        {{"f", FunctionDefHelper::FunctionRef("Twice", {{"T", DT_FLOAT}})}}},
       {{}, "NoOp", {}, {}, {"call"}, "", "done"}},
      {{"y", "call:output:0"}}, {{"finished", "done"}});
  EXPECT_EQ(function.node_def(0).attr().at("f").func().name(), "Twice");
  EXPECT_EQ(function.node_def(0).attr().at("f").func().attr().at("T").type(), DT_FLOAT);
  EXPECT_EQ(function.node_def(1).name(), "done");
  EXPECT_EQ(function.ret().at("y"), "call:output:0");
  EXPECT_EQ(function.control_ret().at("finished"), "done");
  EXPECT_EQ(function.signature().control_output(0), "finished");
}

TEST(ScopeTest, CreatesOutputs) {
  Scope root = Scope::NewRootScope();
  Output sum;
  TF_ASSERT_OK(CreateOutputWithScope("AddV2", {Input(1.0f), Input(2.0f)}, root, &sum));
  EXPECT_EQ(sum.node()->type_string(), "AddV2");
  Output none;
  TF_ASSERT_OK(CreateOutputWithScope("NoOp", {}, root, &none));
  EXPECT_EQ(none.op().num_outputs(), 0);
  EXPECT_FALSE(CreateOutputWithScope("NoSuchOp", {}, root, &none).ok());
  EXPECT_FALSE(root.ok());
}

TEST(TensorMatcherTest, ComparesTensors) {
  EXPECT_THAT(Tensor(1.0f), test::TensorEq(Tensor(1.0f + 1e-7f)));
  EXPECT_THAT(Tensor(1.0f), ::testing::Not(test::TensorEq(Tensor(1.1f))));
  EXPECT_THAT(Tensor(1), ::testing::Not(test::TensorEq(Tensor(1.0f))));
}

TEST(DeviceAttributesTest, HasFields) {
  DeviceAttributes device;
  device.set_name("/device:CPU:0");
  device.mutable_locality()->set_numa_node(1);
  DeviceAttributes parsed;
  ASSERT_TRUE(parsed.ParseFromString(device.SerializeAsString()));
  EXPECT_EQ(parsed.locality().numa_node(), 1);
}

}  // namespace
}  // namespace tensorflow
