// Tests of custom ops with TensorFlow's current names (absl::Status, int64_t, absl::string_view):
// lists, argument names, attributes, failing shape functions, and kernels that shard their work.
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/test.h"
#include "tensorflow/core/util/work_sharder.h"

namespace tensorflow {
namespace {

using shape_inference::DimensionHandle;
using shape_inference::InferenceContext;
using shape_inference::ShapeHandle;

// The kernel is registered before its op, as can happen if they are in different files.
class RowSumsOp : public OpKernel {
 public:
  explicit RowSumsOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("scale", &scale_));
  }

  void Compute(OpKernelContext* context) override {
    OpInputList rows;
    OP_REQUIRES_OK(context, context->input_list("rows", &rows));
    const Tensor* start = nullptr;
    OP_REQUIRES_OK(context, context->input("start", &start));
    OP_REQUIRES(context, TensorShapeUtils::IsScalar(start->shape()),
                absl::InvalidArgumentError(
                    absl::StrCat("start must be scalar, got ", start->shape().DebugString())));
    OpOutputList sums;
    OP_REQUIRES_OK(context, context->output_list("sums", &sums));
    for (int i = 0; i < rows.size(); ++i) {
      Tensor* sum = nullptr;
      OP_REQUIRES_OK(context, sums.allocate(i, TensorShape({}), &sum));
      Tensor partial;
      OP_REQUIRES_OK(context, context->allocate_temp(DT_FLOAT, rows[i].shape(), &partial));
      const auto in = rows[i].flat<float>();
      auto out = partial.flat<float>();
      auto work = [&](int64_t begin, int64_t end) {
        for (int64_t j = begin; j < end; ++j) out(j) = in(j)*scale_;
      };
      const DeviceBase::CpuWorkerThreads& threads =
          *context->device()->tensorflow_cpu_worker_threads();
      Shard(threads.num_threads, threads.workers, in.size(), 1000, work);
      float total = start->scalar<float>()();
      for (int64_t j = 0; j < out.size(); ++j) total += out(j);
      sum->scalar<float>()() = total;
    }
    Tensor* count = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output("count", TensorShape({1}), &count));
    count->vec<int64_t>()(0) = rows.size();
  }

 private:
  float scale_;
};

REGISTER_KERNEL_BUILDER(Name("CompatRowSums").Device(DEVICE_CPU), RowSumsOp);

REGISTER_OP("CompatRowSums")
    .Input("rows: N * float")
    .Input("start: float")
    .Output("sums: N * float")
    .Output("count: int64")
    .Attr("N: int >= 1")
    .Attr("scale: float = 1.0")
    .SetShapeFn([](InferenceContext* c) {
      std::vector<ShapeHandle> rows;
      TF_RETURN_IF_ERROR(c->input("rows", &rows));
      DimensionHandle length = c->UnknownDim();
      for (ShapeHandle row : rows) {
        TF_RETURN_IF_ERROR(c->WithRank(row, 1, &row));
        TF_RETURN_IF_ERROR(c->Merge(length, c->Dim(row, 0), &length));
      }
      ShapeHandle unused;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(c->num_inputs() - 1), 0, &unused));
      TF_RETURN_IF_ERROR(c->set_output("sums", std::vector<ShapeHandle>(rows.size(), c->Scalar())));
      TF_RETURN_IF_ERROR(c->set_output("count", {c->Vector(1)}));
      return absl::OkStatus();
    });

// The output is [batch, 2 * columns, columns of the second input].
absl::Status MixShape(InferenceContext* c) {
  ShapeHandle a, b;
  TF_RETURN_IF_ERROR(c->WithRankAtLeast(c->input(0), 2, &a));
  TF_RETURN_IF_ERROR(c->WithRankAtMost(c->input(1), 2, &b));
  DimensionHandle twice;
  TF_RETURN_IF_ERROR(c->Multiply(c->Dim(a, -1), 2, &twice));
  ShapeHandle batch;
  TF_RETURN_IF_ERROR(c->Subshape(a, 0, -1, &batch));
  ShapeHandle out;
  TF_RETURN_IF_ERROR(c->Concatenate(batch, c->Vector(twice), &out));
  TF_RETURN_IF_ERROR(c->Concatenate(out, c->MakeShape({c->Dim(b, 1), 3}), &out));
  c->set_output(0, out);
  if (!c->RankKnown(b)) c->set_output(0, c->UnknownShape());
  return absl::OkStatus();
}
REGISTER_OP("CompatMix")
    .Input("a: float")
    .Input("b: float")
    .Output("c: float")
    .SetShapeFn(MixShape);

REGISTER_OP("CompatSame")
    .Input("x: T")
    .Output("y: T")
    .Attr("T: type")
    .SetShapeFn(shape_inference::UnchangedShape);
REGISTER_OP("CompatForgetful").Input("x: float").Output("y: float").Output("z: float");

class ForgetfulOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override { context->set_output(0, context->input(0)); }
};
REGISTER_KERNEL_BUILDER(Name("CompatForgetful").Device(DEVICE_CPU), ForgetfulOp);

// Accesses inputs and outputs that do not exist.
REGISTER_OP("CompatGreedy").Input("x: float").Output("y: float").Attr("use: int");

class GreedyOp : public OpKernel {
 public:
  explicit GreedyOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("use", &use_));
    const DataType type = use_ == 5   ? context->input_type(1)
                          : use_ == 6 ? context->output_type(-1)
                                      : DT_INVALID;
    EXPECT_EQ(type, DT_INVALID);
  }
  void Compute(OpKernelContext* context) override {
    context->set_output(0, context->input(0));
    EXPECT_EQ(context->mutable_output(7), nullptr);
    Tensor* output = nullptr;
    switch (use_) {
      case 0:
        return context->set_output(-1, context->input(0));
      case 1:
        OP_REQUIRES_OK(context, context->allocate_output(1, TensorShape({2}), &output));
        return;
      case 2:
        EXPECT_EQ(context->input(9).NumElements(), 0);
        return;
      case 3:
        EXPECT_EQ(context->input_dtype(-1), DT_INVALID);
        return;
      default:
        EXPECT_EQ(context->expected_output_dtype(5), DT_INVALID);
    }
  }

 private:
  int32 use_;
};
REGISTER_KERNEL_BUILDER(Name("CompatGreedy").Device(DEVICE_CPU), GreedyOp);

// Accesses inputs that do not exist.
REGISTER_OP("CompatNoInputs")
    .Input("x: N * float")
    .Output("y: float")
    .Attr("N: int >= 0")
    .SetShapeFn([](InferenceContext* c) {
      EXPECT_EQ(c->input_tensor(0), nullptr);
      return absl::OkStatus();
    });
REGISTER_OP("CompatMin").Output("y: float").SetShapeFn([](InferenceContext* c) {
  const auto min = [c](shape_inference::DimensionHandle a, shape_inference::DimensionHandle b) {
    shape_inference::DimensionHandle result;
    TF_CHECK_OK(c->Min(a, b, &result));
    return InferenceContext::Value(result);
  };
  EXPECT_EQ(min(c->MakeDim(0), c->UnknownDim()), 0);
  EXPECT_EQ(min(c->UnknownDim(), c->MakeDim(0)), 0);
  EXPECT_EQ(min(c->MakeDim(3), c->UnknownDim()), -1);
  EXPECT_EQ(min(c->UnknownDim(), c->MakeDim(3)), -1);
  EXPECT_EQ(min(c->MakeDim(3), c->MakeDim(2)), 2);
  EXPECT_EQ(min(c->MakeDim(2), c->MakeDim(3)), 2);
  return absl::OkStatus();
});
REGISTER_OP("CompatNoSuchInput").Output("y: float").SetShapeFn([](InferenceContext* c) {
  EXPECT_FALSE(InferenceContext::RankKnown(c->input(3)));
  return absl::OkStatus();
});
REGISTER_OP("CompatNoSuchOutput").Output("y: float").SetShapeFn([](InferenceContext* c) {
  c->set_output(5, c->Scalar());
  return absl::OkStatus();
});

// The shape is the value of an input.
REGISTER_OP("CompatOfShape")
    .Input("shape: int32")
    .Output("y: float")
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle shape;
      TF_RETURN_IF_ERROR(c->MakeShapeFromShapeTensor(0, &shape));
      c->set_output(0, shape);
      return absl::OkStatus();
    });

// Outputs shapes of unknown rank.
REGISTER_OP("CompatUnknown")
    .Input("x: float")
    .Output("same_rank: float")
    .Output("part: float")
    .SetShapeFn([](InferenceContext* c) {
      c->set_output(0, c->UnknownShapeOfRank(c->Rank(c->input(0))));
      ShapeHandle part;
      TF_RETURN_IF_ERROR(c->Subshape(c->input(0), 1, 3, &part));
      c->set_output(1, part);
      return absl::OkStatus();
    });

// Adds one, in place if possible. The second output is the index of the reused input.
REGISTER_OP("CompatInPlace")
    .Input("a: float")
    .Input("b: float")
    .Output("sum: float")
    .Output("forwarded: int32");

class InPlaceOp : public OpKernel {
 public:
  explicit InPlaceOp(OpKernelConstruction* context) : OpKernel(context) {}
  void Compute(OpKernelContext* context) override {
    const Tensor& b = context->input(1);
    Tensor* sum = nullptr;
    int forwarded = -2;
    OP_REQUIRES_OK(
        context, context->forward_input_or_allocate_output({0, 1}, 0, b.shape(), &sum, &forwarded));
    const auto in = b.flat<float>();
    auto out = sum->flat<float>();
    for (int64_t i = 0; i < in.size(); ++i) out(i) = in(i) + 1;
    context->set_output(1, Tensor(static_cast<int32_t>(forwarded)));
  }
};
REGISTER_KERNEL_BUILDER(Name("CompatInPlace").Device(DEVICE_CPU), InPlaceOp);

Operation AddNode(const Scope& scope, NodeBuilder* builder) {
  scope.UpdateBuilder(builder);
  Node* node = nullptr;
  scope.UpdateStatus(builder->Finalize(scope.graph(), &node));
  return Operation(node);
}

Operation RowSums(const Scope& scope, const InputList& rows, const Input& start, float scale) {
  NodeBuilder builder(scope.GetUniqueNameForOp("RowSums"), "CompatRowSums");
  builder.Input(ops::AsNodeOutList(scope, rows))
      .Input(ops::AsNodeOut(scope, start))
      .Attr("scale", scale);
  return AddNode(scope, &builder);
}

TEST(CurrentCustomOpTest, KernelsReadListsAndNamedArguments) {
  const Scope root = Scope::NewRootScope();
  const Operation sums = RowSums(root, {{1.f, 2.f}, {3.f, 4.f}}, 10.f, 2.f);
  TF_CHECK_OK(root.status());
  EXPECT_EQ(sums.num_outputs(), 3);
  std::vector<Tensor> outputs;
  const absl::Status status =
      ClientSession(root).Run({Output(sums, 0), Output(sums, 1), Output(sums, 2)}, &outputs);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(outputs[0].scalar<float>()(), 16);
  EXPECT_EQ(outputs[1].scalar<float>()(), 24);
  EXPECT_EQ(outputs[2].vec<int64_t>()(0), 2);
}

TEST(CurrentCustomOpTest, ShapeFunctionMayFail) {
  const Scope root = Scope::NewRootScope();
  RowSums(root, {{1.f, 2.f}, {3.f, 4.f, 5.f}}, 0.f, 1.f);
  EXPECT_TRUE(absl::IsInvalidArgument(root.status())) << root.status();
  EXPECT_TRUE(
      absl::StrContains(root.status().message(), "Dimensions must be equal, but are 2 and 3"))
      << root.status();
}

TEST(CurrentCustomOpTest, KernelRejectsWhatTheShapeFunctionCannotSee) {
  const Scope root = Scope::NewRootScope();
  auto start = ops::Placeholder(root, DT_FLOAT);
  const Operation sums = RowSums(root, {{1.f, 2.f}}, start, 1.f);
  TF_CHECK_OK(root.status());
  std::vector<Tensor> outputs;
  const absl::Status status =
      ClientSession(root).Run({{start, {1.f, 2.f}}}, {Output(sums, 0)}, &outputs);
  EXPECT_TRUE(absl::StrContains(status.message(), "start must be scalar, got [2]")) << status;
}

TEST(CurrentCustomOpTest, ShapeFunctionsDoArithmetic) {
  const Scope root = Scope::NewRootScope();
  const auto shape = [&](const Output& a, const Output& b) {
    NodeBuilder builder(root.GetUniqueNameForOp("Mix"), "CompatMix");
    builder.Input(a).Input(b);
    const Operation op = AddNode(root, &builder);
    return op.node() == nullptr ? std::string(root.status().message())
                                : op.node()->output_shape(0).DebugString();
  };
  const auto placeholder = [&](const PartialTensorShape& shape) {
    return ops::Placeholder(root, DT_FLOAT, ops::Placeholder::Shape(shape)).output;
  };
  EXPECT_EQ(shape(placeholder({7, 5}), placeholder({2, 4})), "[7,10,4,3]");
  EXPECT_EQ(shape(placeholder({6, 7, -1}), placeholder({2, -1})), "[6,7,?,?,3]");
  EXPECT_EQ(shape(placeholder({7, 5}), placeholder(PartialTensorShape())), "<unknown>");
  EXPECT_TRUE(absl::StrContains(shape(placeholder({7}), placeholder({2, 4})),
                                "Shape must be at least rank 2 but is rank 1"))
      << root.status();
}

TEST(CurrentCustomOpTest, CommonShapeFunctionWorksWithoutAKernel) {
  const Scope root = Scope::NewRootScope();
  NodeBuilder builder("same", "CompatSame");
  builder.Input(ops::AsNodeOut(root, {1.f, 2.f, 3.f}));
  const Operation same = AddNode(root, &builder);
  TF_CHECK_OK(root.status());
  EXPECT_EQ(same.node()->output_shape(0).DebugString(), "[3]");
  std::vector<Tensor> outputs;
  EXPECT_TRUE(absl::IsUnimplemented(ClientSession(root).Run({Output(same, 0)}, &outputs)));
}

TEST(CurrentCustomOpTest, ForwardsTheFirstInputThatNoOtherNodeNeeds) {
  const Scope root = Scope::NewRootScope();
  auto fed = ops::Placeholder(root, DT_FLOAT);
  // The scalar `a` has too few elements; `b` has no other consumer.
  auto b = ops::Neg(root, fed);
  NodeBuilder builder("in_place", "CompatInPlace");
  builder.Input(ops::AsNodeOut(root, 1.f)).Input(ops::AsNodeOut(root, b));
  const Operation op = AddNode(root, &builder);
  TF_CHECK_OK(root.status());
  std::vector<Tensor> outputs;
  const ClientSession session(root);
  TF_CHECK_OK(session.Run({{fed, {1.f, 2.f}}}, {Output(op, 0), Output(op, 1)}, &outputs));
  test::ExpectTensorEqual<float>(outputs[0], test::AsTensor<float>({0, -1}));
  EXPECT_EQ(outputs[1].scalar<int32_t>()(), 1);
  // If b is also fetched, it must not be overwritten.
  TF_CHECK_OK(session.Run({{fed, {1.f, 2.f}}}, {Output(op, 0), Output(op, 1), b}, &outputs));
  test::ExpectTensorEqual<float>(outputs[0], test::AsTensor<float>({0, -1}));
  EXPECT_EQ(outputs[1].scalar<int32_t>()(), -1);
  test::ExpectTensorEqual<float>(outputs[2], test::AsTensor<float>({-1, -2}));
}

TEST(CurrentCustomOpTest, UnsetOutputIsAnError) {
  const Scope root = Scope::NewRootScope();
  NodeBuilder builder("forgetful", "CompatForgetful");
  builder.Input(ops::AsNodeOut(root, 1.f));
  const Operation op = AddNode(root, &builder);
  std::vector<Tensor> outputs;
  const absl::Status status = ClientSession(root).Run({Output(op, 1)}, &outputs);
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "has not set output 1")) << status;
}

TEST(CurrentCustomOpTest, MissingOutputIsAnError) {
  const char* const texts[] = {"bad index=-1: the kernel has 1 outputs",
                               "bad index=1: the kernel has 1 outputs",
                               "the kernel asked for input 9 of 1",
                               "the kernel asked for input -1 of 1",
                               "bad index=5: the kernel has 1 outputs",
                               "the kernel asked for the type of input 1 of 1",
                               "the kernel asked for the type of output -1 of 1"};
  for (int use = 0; use < 7; ++use) {
    const Scope root = Scope::NewRootScope();
    NodeBuilder builder("greedy", "CompatGreedy");
    builder.Input(ops::AsNodeOut(root, 1.f)).Attr("use", use);
    const Operation op = AddNode(root, &builder);
    std::vector<Tensor> outputs;
    const absl::Status status = ClientSession(root).Run({Output(op, 0)}, &outputs);
    EXPECT_TRUE(absl::IsInternal(status)) << status;
    EXPECT_EQ(status.message(), absl::StrCat("node 'greedy' (CompatGreedy): ", texts[use]));
  }
}

// The kernel reuses the first input that it may overwrite.
TEST(CurrentCustomOpTest, ForwardsNoInputThatIsNeededElsewhere) {
  const Scope root = Scope::NewRootScope();
  const Output x = ops::Placeholder(root, DT_FLOAT);
  // The next run still needs the constant.
  const Output a = ops::Const(root, {1.f, 2.f});
  const Output b = ops::Neg(root, x);
  NodeBuilder builder("n", "CompatInPlace");
  builder.Input(a).Input(b);
  const Operation op = AddNode(root, &builder);
  TF_CHECK_OK(root.status());
  ClientSession session(root);
  for (int run = 0; run < 2; ++run) {
    std::vector<Tensor> outputs;
    TF_CHECK_OK(session.Run({{x, {3.f, 4.f}}}, {Output(op, 0), Output(op, 1), a}, &outputs));
    EXPECT_EQ(outputs[0].flat<float>()(0), -2);
    EXPECT_EQ(outputs[1].scalar<int32>()(), 1);
    EXPECT_EQ(outputs[2].flat<float>()(0), 1);
  }
}

TEST(CurrentCustomOpTest, EveryOutputOfAListHasItsShape) {
  const Scope root = Scope::NewRootScope();
  const Operation sums = RowSums(root, {{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}}, 10.f, 2.f);
  TF_CHECK_OK(root.status());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(sums.node()->output_shape(i).DebugString(), "[]");
  EXPECT_EQ(sums.node()->output_shape(3).DebugString(), "[1]");
}

REGISTER_OP("CompatUnknownShapes")
    .Output("y: float")
    .Output("z: float")
    .SetShapeFn(shape_inference::UnknownShape);

TEST(CurrentCustomOpTest, UnknownShapeAppliesToEachOutput) {
  const Scope root = Scope::NewRootScope();
  NodeBuilder builder("n", "CompatUnknownShapes");
  const Operation op = AddNode(root, &builder);
  TF_CHECK_OK(root.status());
  EXPECT_EQ(op.node()->output_shape(0).DebugString(), "<unknown>");
  EXPECT_EQ(op.node()->output_shape(1).DebugString(), "<unknown>");
}

// Reads a list as a single tensor.
REGISTER_OP("CompatOneOfMany").Input("x: N * float").Output("y: float").Attr("N: int >= 1");

class OneOfManyOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    const Tensor* x = nullptr;
    OP_REQUIRES_OK(context, context->input("x", &x));
    context->set_output(0, *x);
  }
};
REGISTER_KERNEL_BUILDER(Name("CompatOneOfMany").Device(DEVICE_CPU), OneOfManyOp);

TEST(CurrentCustomOpTest, AListIsNotOneTensor) {
  for (const int count : {1, 3}) {
    const Scope root = Scope::NewRootScope();
    NodeBuilder builder("n", "CompatOneOfMany");
    builder.Input(std::vector<NodeBuilder::NodeOut>(count, ops::AsNodeOut(root, 1.f)));
    const Operation op = AddNode(root, &builder);
    TF_CHECK_OK(root.status());
    std::vector<Tensor> outputs;
    const absl::Status status = ClientSession(root).Run({Output(op, 0)}, &outputs);
    if (count == 1) {
      TF_CHECK_OK(status);
      continue;
    }
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_EQ(status.message(),
              "node 'n' (CompatOneOfMany): input 'x' is a list of 3 where one tensor is expected");
  }
}

TEST(CurrentCustomOpTest, ShardOfOneStaysOnItsThread) {
  const tbb::global_control control(tbb::global_control::max_allowed_parallelism, 8);
  const gradflow::RunContext run;
  thread::ThreadPool pool(&run);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::vector<int64_t> begins;
  tbb::task_arena(8).execute([&] {
    Shard(1, &pool, 20, int64_t{1} << 40, [&](int64_t begin, int64_t) {
      const std::lock_guard<std::mutex> lock(mutex);
      threads.insert(std::this_thread::get_id());
      begins.push_back(begin);
    });
  });
  EXPECT_EQ(threads.size(), 1u);
  EXPECT_EQ(begins.size(), 20u);
  EXPECT_TRUE(std::is_sorted(begins.begin(), begins.end()));
}

TEST(CurrentCustomOpTest, TheMinimumOfZeroAndAnythingIsZero) {
  const Scope root = Scope::NewRootScope();
  NodeBuilder builder("n", "CompatMin");
  AddNode(root, &builder);
  TF_CHECK_OK(root.status());
}

TEST(CurrentCustomOpTest, MissingShapesAreAnError) {
  for (const std::string kind : {"Input", "Output"}) {
    const Scope root = Scope::NewRootScope();
    NodeBuilder builder("n", "CompatNoSuch" + kind);
    AddNode(root, &builder);
    EXPECT_EQ(root.status().message(),
              absl::StrCat("node 'n' (CompatNoSuch", kind, "): the shape function asked for ",
                           kind == "Input" ? "input 3 of 0" : "output 5 of 1"));
    EXPECT_TRUE(absl::IsInternal(root.status()));
  }
}

TEST(CurrentCustomOpTest, AnEmptyListHasNoInput) {
  const Scope root = Scope::NewRootScope();
  NodeBuilder none("none", "CompatNoInputs");
  none.Input(std::vector<NodeBuilder::NodeOut>());
  AddNode(root, &none);
  EXPECT_EQ(root.status().message(),
            "node 'none' (CompatNoInputs): the shape function asked for input 0 of 0");
}

TEST(CurrentCustomOpTest, ShapesMayBePartlyKnownValues) {
  const Scope root = Scope::NewRootScope();
  const Output x = ops::Placeholder(root, DT_FLOAT, ops::Placeholder::Shape({-1, 5}));
  const auto shape_of = [&](const Output& value) {
    NodeBuilder builder(root.GetUniqueNameForOp("OfShape"), "CompatOfShape");
    builder.Input(value);
    const Operation op = AddNode(root, &builder);
    TF_CHECK_OK(root.status());
    return op.node()->output_shape(0).DebugString();
  };
  const Output shape = ops::Shape(root, x);
  EXPECT_EQ(shape_of(shape), "[?,5]");
  EXPECT_EQ(shape_of(ops::Concat(root, {shape, Output(ops::Const(root, {3}))}, 0)), "[?,5,3]");
  EXPECT_EQ(shape_of(ops::Identity(root, ops::Const(root, {3, -1}))), "[3,?]");
  EXPECT_EQ(shape_of(ops::Placeholder(root, DT_INT32, ops::Placeholder::Shape({2}))), "[?,?]");
}

TEST(CurrentCustomOpTest, UnknownShapesStayUnknown) {
  const Scope root = Scope::NewRootScope();
  const auto shapes = [&](const PartialTensorShape& shape) {
    const Output x = ops::Placeholder(root, DT_FLOAT, ops::Placeholder::Shape(shape)).output;
    NodeBuilder builder(root.GetUniqueNameForOp("Unknown"), "CompatUnknown");
    builder.Input(x);
    const Operation op = AddNode(root, &builder);
    TF_CHECK_OK(root.status());
    return absl::StrCat(op.node()->output_shape(0).DebugString(), " ",
                        op.node()->output_shape(1).DebugString());
  };
  EXPECT_EQ(shapes({4, 5}), "[?,?] [5]");
  EXPECT_EQ(shapes({4, 5, 6, 7}), "[?,?,?,?] [5,6]");
  EXPECT_EQ(shapes(PartialTensorShape()), "<unknown> <unknown>");
}

}  // namespace
}  // namespace tensorflow
