// Tests of graphs that GraphDefBuilder and test::graph build, and of asynchronous kernels.
#include "tensorflow/core/graph/graph_def_builder.h"

#include <gmock/gmock.h>

#include <memory>

#include "tensorflow/core/common_runtime/graph_constructor.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/graph/testlib.h"
#include "tensorflow/core/kernels/bounds_check.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/platform/threadpool.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow/core/util/guarded_philox_random.h"

namespace tensorflow {
namespace {

using ::testing::HasSubstr;

// Runs a graph and returns the value of `fetch`.
absl::StatusOr<Tensor> RunGraph(const GraphDef& graph, const std::string& fetch) {
  const std::unique_ptr<Session> session(NewSession(SessionOptions()));
  TF_RETURN_IF_ERROR(session->Create(graph));
  std::vector<Tensor> outputs;
  TF_RETURN_IF_ERROR(session->Run({}, {fetch}, {}, &outputs));
  return outputs[0];
}

TEST(GraphDefBuilderTest, BuildsGraphs) {
  GraphDefBuilder b;
  Node* x = ops::SourceOp("Const", b.opts()
                                       .WithName("x")
                                       .WithAttr("dtype", DT_FLOAT)
                                       .WithAttr("value", test::AsTensor<float>({1, 2})));
  Node* y = ops::UnaryOp("Neg", x, b.opts());
  Node* z = ops::UnaryOp("Neg", y, b.opts().WithControlInput(x));
  ASSERT_NE(z, nullptr) << b.opts().StatusToString();
  EXPECT_EQ(y->name(), "Neg");
  EXPECT_EQ(z->name(), "Neg/_1");
  ops::BinaryOp("Sub", z, y, b.opts().WithName("difference").WithDevice("/cpu:0"));
  EXPECT_FALSE(b.opts().HaveError());
  GraphDef graph;
  TF_ASSERT_OK(b.ToGraphDef(&graph));
  EXPECT_EQ(graph.node(2).input(1), "^x");
  EXPECT_EQ(graph.node(3).device(), "/cpu:0");
  const auto result = RunGraph(graph, "difference");
  TF_ASSERT_OK(result.status());
  test::ExpectTensorEqual<float>(*result, test::AsTensor<float>({2, 4}));
}

TEST(GraphDefBuilderTest, KeepsTheFirstError) {
  GraphDefBuilder b;
  Node* x = ops::SourceOp("NoSuchOp", b.opts());
  EXPECT_EQ(x, nullptr);
  EXPECT_TRUE(b.opts().HaveError());
  EXPECT_EQ(ops::UnaryOp("Neg", x, b.opts()), nullptr);
  GraphDef graph;
  const absl::Status status = b.ToGraphDef(&graph);
  EXPECT_EQ(status.code(), error::NOT_FOUND) << status;
  EXPECT_THAT(b.opts().StatusToString(), HasSubstr("NoSuchOp"));
}

TEST(GraphDefBuilderTest, ConnectsEachInput) {
  GraphDefBuilder b(GraphDefBuilder::kFailImmediately);
  const auto source = [&](DataType type) {
    return ops::SourceOp("Placeholder", b.opts().WithAttr("dtype", type));
  };
  Node* const condition = source(DT_BOOL);
  Node* const x = source(DT_FLOAT);
  Node* const y = source(DT_FLOAT);
  EXPECT_EQ(condition->name(), "Placeholder");
  EXPECT_EQ(x->name(), "Placeholder/_1");
  EXPECT_EQ(y->name(), "Placeholder/_2");
  Node* const select =
      ops::TernaryOp("Select", condition, x, y, b.opts().WithControlInputs({x, y}));
  EXPECT_THAT(select->def().input(),
              ::testing::ElementsAre("Placeholder", "Placeholder/_1", "Placeholder/_2",
                                     "^Placeholder/_1", "^Placeholder/_2"));
  EXPECT_EQ(select->requested_device(), "");
  EXPECT_EQ(b.opts().StatusToString(), "OK");
  GraphDefBuilder other;
  EXPECT_EQ(ops::BinaryOp("Sub", x, static_cast<Node*>(nullptr), other.opts()), nullptr);
  GraphDef graph;
  const absl::Status status = other.ToGraphDef(&graph);
  EXPECT_EQ(status.code(), error::INVALID_ARGUMENT);
  EXPECT_EQ(status.message(), "an input of 'Sub' is not a node");
}

TEST(GraphDefBuilderDeathTest, EndsTheProgramIfAsked) {
  GraphDefBuilder b(GraphDefBuilder::kFailImmediately);
  EXPECT_DEATH(ops::SourceOp("NoSuchOp", b.opts()), "NoSuchOp");
}

TEST(TestGraphTest, AddsNodes) {
  Graph g(OpRegistry::Global());
  Node* x = test::graph::Constant(&g, test::AsTensor<float>({1, -2, 3, 4}, {2, 2}));
  Node* product = test::graph::Matmul(&g, x, x, false, true);
  Node* relu = test::graph::Relu(&g, product);
  Node* axis = test::graph::Constant(&g, test::AsTensor<int32>({0}));
  Node* sum = test::graph::Reduce(&g, "Sum", relu, axis);
  test::graph::NoOp(&g, {sum});
  EXPECT_EQ(g.NewName("n"), "n/_6");
  GraphDef def;
  test::graph::ToGraphDef(&g, &def);
  const auto result = RunGraph(def, sum->name());
  TF_ASSERT_OK(result.status());
  // The product is [[5, -5], [-5, 25]]. Relu replaces -5 by 0.
  test::ExpectTensorEqual<float>(*result, test::AsTensor<float>({5, 25}));

  Graph copy(OpRegistry::Global());
  TF_ASSERT_OK(ConvertGraphDefToGraph(GraphConstructorOptions(), def, &copy));
  EXPECT_EQ(copy.num_nodes(), g.num_nodes());
}

// ---- Asynchronous kernels ----

REGISTER_OP("CompatLater")
    .Input("x: float")
    .Output("y: float")
    .Attr("fail: {'no', 'require', 'status', 'forget'} = 'no'")
    .SetIsStateful()
    .SetShapeFn(shape_inference::UnchangedShape);

// Returns its input from a thread of a pool, or fails as the attribute `fail` says.
class LaterOp : public AsyncOpKernel {
 public:
  explicit LaterOp(OpKernelConstruction* context)
      : AsyncOpKernel(context), pool_(Env::Default(), ThreadOptions(), "later", 2) {
    OP_REQUIRES_OK(context, context->GetAttr("fail", &fail_));
  }
  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    OP_REQUIRES_ASYNC(context, fail_ != "require", errors::InvalidArgument("not required"), done);
    pool_.Schedule([this, context, done] {
      Env::Default()->SleepForMicroseconds(100);
      OP_REQUIRES_OK_ASYNC(context, fail_ == "status" ? errors::DataLoss("lost") : absl::OkStatus(),
                           done);
      if (fail_ != "forget") context->set_output(0, context->input(0));
      done();
    });
  }

 private:
  std::string fail_;
  thread::ThreadPool pool_;
};
REGISTER_KERNEL_BUILDER(Name("CompatLater").Device(DEVICE_CPU), LaterOp);

class AsyncOpKernelTest : public ::testing::Test {
 protected:
  static absl::StatusOr<Tensor> RunLater(const std::string& fail) {
    GraphDefBuilder b;
    const Tensor x = test::AsTensor<float>({1, 2});
    Node* source =
        ops::SourceOp("Const", b.opts().WithAttr("dtype", DT_FLOAT).WithAttr("value", x));
    ops::UnaryOp("CompatLater", source, b.opts().WithName("y").WithAttr("fail", fail));
    GraphDef graph;
    TF_RETURN_IF_ERROR(b.ToGraphDef(&graph));
    return RunGraph(graph, "y");
  }
};

TEST_F(AsyncOpKernelTest, EndsLater) {
  const auto y = RunLater("no");
  TF_ASSERT_OK(y.status());
  test::ExpectTensorEqual<float>(*y, test::AsTensor<float>({1, 2}));
}

TEST_F(AsyncOpKernelTest, Fails) {
  EXPECT_EQ(RunLater("require").status().code(), error::INVALID_ARGUMENT);
  EXPECT_EQ(RunLater("status").status().code(), error::DATA_LOSS);
  const absl::Status status = RunLater("forget").status();
  EXPECT_EQ(status.code(), error::INTERNAL);
  EXPECT_THAT(std::string(status.message()), HasSubstr("has not set output 0"));
}

// ---- Helpers of kernels ----

TEST(BoundsCheckTest, ChecksBothEnds) {
  EXPECT_TRUE(FastBoundsCheck(0, 1));
  EXPECT_FALSE(FastBoundsCheck(1, 1));
  EXPECT_FALSE(FastBoundsCheck(-1, int64{1} << 40));
  EXPECT_TRUE(FastBoundsCheck(int64{1} << 39, int64{1} << 40));
  EXPECT_FALSE(FastBoundsCheck(int64{1} << 40, 5));
}

TEST(GuardedPhiloxRandomTest, ReservesDisjointNumbers) {
  GuardedPhiloxRandom generator;
  generator.Init(3, 4);
  random::PhiloxRandom first = generator.ReserveSamples128(2);
  random::PhiloxRandom second = generator.ReserveSamples32(5);
  first();
  first();
  EXPECT_EQ(first(), second());
  random::PhiloxRandom third = generator.ReserveRandomOutputs(1, 1);
  second();
  EXPECT_EQ(second(), third());
}

}  // namespace
}  // namespace tensorflow
