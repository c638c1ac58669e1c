// Calls every public function that returns a result through a pointer with a null pointer. Some
// functions are left out, because null means that the caller does not want the result: Session::Run
// and similar functions, NodeBuilder::Finalize (node) and Saver::Restore (counters).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/op_def_builder.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/out_parameter.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_proto.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/core/types.h"
#include "gradflow/gradients/derivatives.h"
#include "gradflow/gradients/gradients.h"
#include "gradflow/graph/export.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/import.h"
#include "gradflow/graph/node_builder.h"
#include "gradflow/graph/scope.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/config.pb.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/op_def.pb.h"
#include "gradflow/proto/tensor.pb.h"
#include "gradflow/proto/tensor_shape.pb.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/testing/gradient_checker.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/training/input.h"
#include "gradflow/training/layers.h"
#include "gradflow/training/optimizer.h"

namespace gradflow {
namespace {

using ::absl::StatusCode;
using ::gradflow::testing::StatusIs;

// A call that passes null, and the parameter that its error must name.
struct Call {
  std::string function;
  std::string parameter;
  std::function<absl::Status()> call;
};

void ExpectErrors(const std::vector<Call>& calls) {
  for (const Call& call : calls) {
    EXPECT_THAT(call.call(),
                StatusIs(StatusCode::kInvalidArgument,
                         absl::StrCat(call.function, ": ", call.parameter, " must not be null")))
        << call.function;
  }
}

template <typename T>
Call GetNodeAttrCall() {
  return {"GetNodeAttr", "value",
          [] { return GetNodeAttr(NodeDef(), "T", static_cast<T*>(nullptr)); }};
}

TEST(OutParameters, AreCheckedInCore) {
  const auto in_kernel = [](const std::function<absl::Status(KernelContext&)>& call) {
    std::vector<Tensor> inputs(1);
    std::vector<Tensor> outputs(1);
    const DataTypeVector types = {DT_FLOAT};
    const RunContext run;
    KernelContext context(absl::MakeSpan(inputs), absl::MakeSpan(outputs), types, run);
    return call(context);
  };
  const PartialTensorShape shape({2, -1});
  ExpectErrors({
      GetNodeAttrCall<std::string>(),
      GetNodeAttrCall<int64_t>(),
      GetNodeAttrCall<int32_t>(),
      GetNodeAttrCall<float>(),
      GetNodeAttrCall<bool>(),
      GetNodeAttrCall<DataType>(),
      GetNodeAttrCall<TensorShape>(),
      GetNodeAttrCall<PartialTensorShape>(),
      GetNodeAttrCall<Tensor>(),
      GetNodeAttrCall<std::vector<std::string>>(),
      GetNodeAttrCall<std::vector<int64_t>>(),
      GetNodeAttrCall<std::vector<int32_t>>(),
      GetNodeAttrCall<std::vector<float>>(),
      GetNodeAttrCall<std::vector<bool>>(),
      GetNodeAttrCall<DataTypeVector>(),
      GetNodeAttrCall<std::vector<PartialTensorShape>>(),
      GetNodeAttrCall<std::vector<Tensor>>(),
      {"AttrSlice::Find", "value", [] { return AttrSlice(NodeDef()).Find("T", nullptr); }},
      {"OpDefBuilder::Finalize", "op_def", [] { return OpDefBuilder("A").Finalize(nullptr); }},
      {"OpDefBuilder::FinalizeUnchecked", "op_def",
       [] { return OpDefBuilder("A").FinalizeUnchecked(nullptr); }},
      {"KernelContext::AllocateOutput", "out",
       [&] {
         return in_kernel([](KernelContext& c) { return c.AllocateOutput(0, {}, nullptr); });
       }},
      {"KernelContext::ForwardInputOrAllocateOutput", "out",
       [&] {
         return in_kernel([](KernelContext& c) {
           return c.ForwardInputOrAllocateOutput(0, 0, TensorShape(), nullptr);
         });
       }},
      {"KernelContext::AllocateTemp", "out",
       [&] {
         return in_kernel(
             [](KernelContext& c) { return c.AllocateTemp(DT_FLOAT, TensorShape(), nullptr); });
       }},
      {"InOutTypesForNode", "inputs",
       [] {
         DataTypeVector types;
         return InOutTypesForNode(NodeDef(), OpDef(), nullptr, &types);
       }},
      {"InOutTypesForNode", "outputs",
       [] {
         DataTypeVector types;
         return InOutTypesForNode(NodeDef(), OpDef(), &types, nullptr);
       }},
      {"Tensor::BuildTensor", "out",
       [] { return Tensor::BuildTensor(DT_FLOAT, TensorShape(), nullptr); }},
      {"BuildTensorShapeBase", "out", [] { return TensorShape::BuildTensorShape({1}, nullptr); }},
      {"BuildTensorShapeBase", "out",
       [] { return TensorShape::BuildTensorShapeBase(TensorShapeProto(), nullptr); }},
      {"BuildTensorShapeBase", "out",
       [] { return PartialTensorShape::BuildPartialTensorShape({1}, nullptr); }},
      {"PartialTensorShape::MergeWith", "result", [&] { return shape.MergeWith(shape, nullptr); }},
      {"PartialTensorShape::ConcatenateWithStatus", "out",
       [&] { return shape.ConcatenateWithStatus(2, nullptr); }},
      {"PartialTensorShape::ConcatenateWithStatus", "out",
       [&] { return shape.ConcatenateWithStatus(shape, nullptr); }},
  });
}

TEST(OutParameters, AreCheckedInGraphsAndSessions) {
  const Scope scope = Scope::NewRootScope();
  const Output x = ops::Placeholder(scope, DT_FLOAT, ops::Placeholder::Shape({2}));
  const Output y = ops::Square(scope, x);
  const std::unique_ptr<Session> session(NewSession(SessionOptions()));
  GRADFLOW_ASSERT_OK(session->Create(GraphDef()));
  const ClientSession client(scope);
  ExpectErrors({
      {"ExportGraphDef", "graph_def", [&] { return ExportGraphDef(*scope.graph(), {}, nullptr); }},
      {"ImportGraphDef", "graph", [] { return ImportGraphDef({}, GraphDef(), nullptr); }},
      {"ImportGraphDef", "graph",
       [] {
         const GraphDef graph;
         return ImportGraphDef({}, graph, nullptr);
       }},
      {"NodeBuilder::Finalize", "graph", [] { return NodeBuilder("a", "NoOp").Finalize(nullptr); }},
      {"Scope::ToGraphDef", "graph_def", [&] { return scope.ToGraphDef(nullptr); }},
      {"Scope::ToGraph", "graph", [&] { return scope.ToGraph(nullptr); }},
      {"AddSymbolicGradients", "grad_outputs",
       [&] { return AddSymbolicGradients(scope, {y}, {x}, nullptr); }},
      {"AddSymbolicGradients", "grad_outputs",
       [&] { return AddSymbolicGradients(scope, {y}, {x}, {y}, nullptr); }},
      {"AddSparseSymbolicGradients", "grad_outputs",
       [&] { return AddSparseSymbolicGradients(scope, {y}, {x}, {y}, nullptr); }},
      {"Jacobian", "jacobian", [&] { return Jacobian(scope, y, x, nullptr); }},
      {"JacobianVectorProduct", "products",
       [&] { return JacobianVectorProduct(scope, {y}, {x}, {x}, nullptr); }},
      {"HessianVectorProduct", "products",
       [&] { return HessianVectorProduct(scope, y, {x}, {x}, nullptr); }},
      {"NewSession", "out_session", [] { return NewSession(SessionOptions(), nullptr); }},
      {"MakeCallable", "out_handle", [&] { return session->MakeCallable({}, nullptr); }},
      {"MakeCallable", "out_handle", [&] { return client.MakeCallable({}, nullptr); }},
      {"ComputeGradientError", "max_error",
       [&] {
         return testing::ComputeGradientError(scope, x, Tensor(DT_FLOAT, {2}), y, {2}, nullptr);
       }},
      {"ComputeGradientError", "max_error",
       [&] { return testing::ComputeGradientError(scope, {x}, {{2}}, {y}, {{2}}, nullptr); }},
  });
}

TEST(OutParameters, AreCheckedInTraining) {
  const Scope scope = Scope::NewRootScope();
  const Output x = ops::Placeholder(scope, DT_FLOAT, ops::Placeholder::Shape({2}));
  training::GradientDescent optimizer(scope);
  training::ExponentialMovingAverage average(scope, 0.9F);
  training::BatchesOptions batches_options;
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<training::Batches> batches,
                                training::Batches::Make({Tensor(DT_FLOAT, {64})}, batches_options));
  std::vector<Output>* const no_gradients = nullptr;
  std::vector<SparseGradient>* const no_slices = nullptr;
  ExpectErrors({
      {"Optimizer::ComputeGradients", "gradients",
       [&] { return optimizer.ComputeGradients(x, {x}, no_gradients); }},
      {"Optimizer::ComputeGradients", "gradients",
       [&] { return optimizer.ComputeGradients(x, {x}, no_slices); }},
      {"Optimizer::ApplyGradients", "train",
       [&] { return optimizer.ApplyGradients(std::vector<Output>{x}, {x}, nullptr); }},
      {"Optimizer::ApplyGradients", "train",
       [&] { return optimizer.ApplyGradients(std::vector<SparseGradient>(1), {x}, nullptr); }},
      {"Optimizer::Minimize", "train", [&] { return optimizer.Minimize(x, {x}, nullptr); }},
      {"ExponentialMovingAverage::Apply", "update",
       [&] { return average.Apply(scope, {x}, nullptr); }},
      {"Batches::Next", "batch", [&] { return batches->Next(nullptr); }},
  });
}

// Functions that do not return a status end the program with the same text.
TEST(OutParametersDeathTest, EndTheProgramInOtherFunctions) {
  const auto null = [](const std::string& call, const std::string& parameter) {
    return absl::StrCat("gradflow: ", call, ": ", parameter, " must not be null");
  };
  EXPECT_DEATH(SetAttrValue(int64_t{1}, nullptr), null("SetAttrValue", "out"));
  EXPECT_DEATH(SetAttrValue("a", nullptr), null("SetAttrValue", "out"));
  EXPECT_DEATH(SetAttrValue(Tensor(), nullptr), null("SetAttrValue", "out"));
  EXPECT_DEATH(ParseAttrValue("int", "1", nullptr), null("ParseAttrValue", "out"));
  EXPECT_DEATH(AddDefaultsToNodeDef(OpDef(), nullptr), null("AddDefaultsToNodeDef", "node"));
  EXPECT_DEATH(StripDefaultsFromNodeDef(OpDef(), nullptr),
               null("StripDefaultsFromNodeDef", "node"));
  EXPECT_DEATH(TensorToProto(Tensor(), nullptr), null("TensorToProto", "proto"));
  EXPECT_DEATH(Tensor().AsProtoField(nullptr), null("Tensor::AsProtoField", "proto"));
  EXPECT_DEATH(Tensor().AsProtoTensorContent(nullptr),
               null("Tensor::AsProtoTensorContent", "proto"));
  EXPECT_DEATH(TensorShape().AsProto(nullptr), null("TensorShape::AsProto", "proto"));
  EXPECT_DEATH(PartialTensorShape().AsProto(nullptr), null("PartialTensorShape::AsProto", "proto"));
  EXPECT_DEATH(PartialTensorShape().AsTensorShape(nullptr),
               null("PartialTensorShape::AsTensorShape", "shape"));
  EXPECT_DEATH(DataTypeFromString("float", nullptr), null("DataTypeFromString", "dtype"));
}

}  // namespace
}  // namespace gradflow
