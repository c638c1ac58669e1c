// Tests of OpKernelContext and OpKernelConstruction: the results of each member, and its errors.
#include "tensorflow/core/framework/op_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/fake_input.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/platform/status_matchers.h"

namespace tensorflow {
namespace op_kernel_test {

using ::tensorflow::testing::StatusIs;

// Bodies of the constructor and the Compute function of the kernels below.
std::function<void(OpKernelConstruction*)> on_construction;
std::function<void(OpKernelContext*)> on_compute;

REGISTER_OP("OpKernelParts")
    .Input("a: float")
    .Input("r: Ref(float)")
    .Input("l: N * float")
    .Output("x: float")
    .Output("m: N * float")
    .Attr("N: int >= 0");
class PartsOp : public OpKernel {
 public:
  explicit PartsOp(OpKernelConstruction* context) : OpKernel(context) {
    if (on_construction) on_construction(context);
  }
  void Compute(OpKernelContext* context) override { on_compute(context); }
};
REGISTER_KERNEL_BUILDER(Name("OpKernelParts").Device(DEVICE_CPU), PartsOp);

std::unique_ptr<OpKernel> MakeKernel() {
  NodeDef node;
  TF_CHECK_OK(NodeDefBuilder("n", "OpKernelParts")
                  .Input(FakeInput(DT_FLOAT))
                  .Input(FakeInput(DT_FLOAT_REF))
                  .Input(FakeInput(2, DT_FLOAT))
                  .Finalize(&node));
  absl::StatusOr<std::unique_ptr<OpKernel>> kernel = CreateOpKernel(DEVICE_CPU, node);
  TF_CHECK_OK(kernel.status());
  return *std::move(kernel);
}

// A context without a session. The kernel has the inputs 0: a, 1: r, 2 and 3: l, and the outputs
// 0: x, 1 and 2: m.
struct OwnContext {
  std::unique_ptr<OpKernel> kernel = MakeKernel();
  Tensor a = test::AsTensor<float>({1, 2});
  Tensor r = test::AsScalar<float>(3);
  Tensor l[2] = {test::AsTensor<float>({4, 5}), test::AsTensor<float>({6})};
  mutex mu;
  const bool required[3] = {true, false, true};
  std::vector<TensorValue> inputs = {TensorValue(&a), TensorValue(&mu, &r), TensorValue(&l[0]),
                                     TensorValue(&l[1])};
  OpKernelContext::Params params = [this] {
    OpKernelContext::Params made;
    made.op_kernel = kernel.get();
    made.inputs = inputs;
    made.step_id = 17;
    made.output_required_array = required;
    return made;
  }();
  OpKernelContext context{&params};
  OpKernelContext* operator->() { return &context; }
};

// Matches the error for an unknown name, or for the name of a list.
auto IsUnknown(const std::string& kind) {
  return StatusIs(error::INVALID_ARGUMENT, "Unknown " + kind + " name: none");
}
auto IsAList(const std::string& kind, const std::string& name) {
  return StatusIs(error::INVALID_ARGUMENT,
                  kind + " '" + name + "' is a list of 2 where one tensor is expected");
}

TEST(OpKernelContextNames, FindInputsAndOutputs) {
  OwnContext c;
  const Tensor* in = nullptr;
  DataType dtype = DT_INVALID;
  Tensor value;
  mutex* mu = nullptr;
  TF_ASSERT_OK(c->input("a", &in));
  EXPECT_EQ(in, &c->input(0));
  TF_ASSERT_OK(c->input_dtype("r", &dtype));
  EXPECT_EQ(dtype, DT_FLOAT_REF);
  TF_ASSERT_OK(c->input_ref_mutex("r", &mu));
  EXPECT_EQ(mu, &c.mu);
  TF_ASSERT_OK(c->mutable_input("r", &value, /*lock_held=*/false));
  EXPECT_TRUE(value.SharesBufferWith(c.r));
  Tensor* out = nullptr;
  TF_ASSERT_OK(c->set_output("x", c.a));
  TF_ASSERT_OK(c->mutable_output("x", &out));
  EXPECT_TRUE(out->SharesBufferWith(c.a));
  TF_ASSERT_OK(c->allocate_output("x", TensorShape({3}), &out));
  EXPECT_EQ(c->mutable_output(0), out);
  EXPECT_EQ(out->NumElements(), 3);
  Tensor own(5.f);
  TF_ASSERT_OK(c->set_output_ref("x", &c.mu, &own));
  EXPECT_TRUE(c->mutable_output(0)->SharesBufferWith(own));

  OpInputList list;
  OpOutputList outputs;
  OpMutableInputList references;
  for (const absl::Status& status :
       {c->input("none", &in), c->input_dtype("none", &dtype), c->input_ref_mutex("none", &mu),
        c->mutable_input("none", &value, false), c->replace_ref_input("none", value, false),
        c->input_list("none", &list), c->mutable_input_list("none", &references),
        c->forward_input_to_output_with_shape("none", "x", TensorShape({}), &out),
        c->forward_input_or_allocate_output({"a", "none"}, "x", TensorShape({}), &out)}) {
    EXPECT_THAT(status, IsUnknown("input"));
  }
  for (const absl::Status& status :
       {c->set_output("none", c.a), c->mutable_output("none", &out),
        c->output_list("none", &outputs), c->allocate_output("none", TensorShape({}), &out),
        c->set_output_ref("none", &c.mu, &own),
        c->forward_input_to_output_with_shape("a", "none", TensorShape({}), &out),
        c->forward_input_or_allocate_output({"a"}, "none", TensorShape({}), &out)}) {
    EXPECT_THAT(status, IsUnknown("output"));
  }
  EXPECT_THAT(c->input("l", &in), IsAList("input", "l"));
  EXPECT_THAT(c->input_dtype("l", &dtype), IsAList("input", "l"));
  EXPECT_THAT(c->set_output("m", c.a), IsAList("output", "m"));
  TF_EXPECT_OK(c->status());
}

TEST(OpKernelContextLists, HaveTheTensorsOfTheirArguments) {
  OwnContext c;
  OpInputList inputs;
  TF_ASSERT_OK(c->input_list("l", &inputs));
  ASSERT_EQ(inputs.size(), 2);
  EXPECT_EQ(&inputs[1], &c->input(3));
  OpMutableInputList references;
  TF_ASSERT_OK(c->mutable_input_list("r", &references));
  ASSERT_EQ(references.size(), 1);
  EXPECT_EQ(references.ref_mutex(0), &c.mu);
  TF_ASSERT_OK(c->mutable_input_list("l", &references));
  EXPECT_TRUE(references.at(1, false).SharesBufferWith(c.l[1]));
  OpOutputList outputs;
  TF_ASSERT_OK(c->output_list("m", &outputs));
  ASSERT_EQ(outputs.size(), 2);
  EXPECT_FALSE(outputs.required(0));
  EXPECT_TRUE(outputs.required(1));
  EXPECT_EQ(outputs.expected_output_dtype(1), DT_FLOAT);
  Tensor* out = nullptr;
  TF_ASSERT_OK(outputs.allocate(1, TensorShape({7}), &out));
  EXPECT_EQ(c->mutable_output(2), out);
  EXPECT_EQ(outputs[1]->NumElements(), 7);
  EXPECT_EQ(outputs[0], nullptr);
  outputs.set(0, c.a);
  EXPECT_TRUE(c->mutable_output(1)->SharesBufferWith(c.a));
  outputs.set_ref(1, &c.mu, &c.r);
  EXPECT_TRUE(c->mutable_output(2)->SharesBufferWith(c.r));
  TF_EXPECT_OK(c->status());
}

TEST(OpKernelContextIndices, FailTheRunIfTheyDoNotExist) {
  const auto input_error = [](int i) {
    return StatusIs(error::INTERNAL, absl::StrCat("the kernel asked for input ", i, " of 4"));
  };
  const auto output_error = [](int i) {
    return StatusIs(error::INTERNAL, absl::StrCat("bad index=", i, ": the kernel has 3 outputs"));
  };
  for (const int i : {-1, 4}) {
    const std::function<void(OwnContext&)> kCalls[] = {
        [i](OwnContext& c) { EXPECT_EQ(c->input(i).NumElements(), 0); },
        [i](OwnContext& c) { EXPECT_EQ(c->input_dtype(i), DT_INVALID); },
        [i](OwnContext& c) { EXPECT_FALSE(c->has_input(i)); },
        [i](OwnContext& c) { EXPECT_FALSE(c->input_is_ref(i)); },
        [i](OwnContext& c) { EXPECT_EQ(c->input_ref_mutex(i), nullptr); },
        [i](OwnContext& c) { EXPECT_FALSE(c->mutable_input(i, false).IsInitialized()); },
        [i](OwnContext& c) { c->replace_ref_input(i, c.a, false); },
        [i](OwnContext& c) { c->delete_ref_input(i, false); },
        [i](OwnContext& c) { c->forward_ref_input_to_ref_output(i, 0); },
        [i](OwnContext& c) {
          EXPECT_EQ(c->forward_input(i, 0, DT_FLOAT, TensorShape({2}), DEVICE_MEMORY, {}), nullptr);
        }};
    for (const auto& call : kCalls) {
      OwnContext c;
      call(c);
      EXPECT_THAT(c->status(), input_error(i));
    }
    OwnContext c;
    EXPECT_THAT(c->get_input(i).status(),
                StatusIs(error::INVALID_ARGUMENT,
                         absl::StrCat("Given index was ", i,
                                      ", but index of input must be greater than 0, less than the "
                                      "number of inputs (4), and not a ref.")));
    TF_EXPECT_OK(c->status());
  }
  for (const int i : {-1, 3}) {
    const std::function<void(OwnContext&)> kCalls[] = {
        [i](OwnContext& c) { EXPECT_EQ(c->expected_output_dtype(i), DT_INVALID); },
        [i](OwnContext& c) { c->set_output(i, c.a); },
        [i](OwnContext& c) { c->set_output_ref(i, &c.mu, &c.r); },
        [i](OwnContext& c) { c->forward_ref_input_to_ref_output(1, i); },
        [i](OwnContext& c) { EXPECT_EQ(c->release_output(i).tensor, nullptr); },
        [i](OwnContext& c) {
          Tensor* out = nullptr;
          EXPECT_FALSE(c->forward_input_to_output_with_shape(0, i, TensorShape({2}), &out));
        }};
    for (const auto& call : kCalls) {
      OwnContext c;
      call(c);
      EXPECT_THAT(c->status(), output_error(i));
    }
    OwnContext c;
    Tensor* out = nullptr;
    EXPECT_THAT(c->allocate_output(i, TensorShape({}), &out), output_error(i));
    EXPECT_THAT(c->forward_input_or_allocate_output({0}, i, TensorShape({}), &out),
                output_error(i));
    EXPECT_EQ(c->mutable_output(i), nullptr);
    TF_EXPECT_OK(c->status());
  }
  // get_input() does not return references.
  OwnContext c;
  EXPECT_EQ(c->get_input(1).status().code(), error::INVALID_ARGUMENT);
  EXPECT_EQ(*c->get_input(0), &c->input(0));
  EXPECT_EQ(c->step_id(), 17);
  // Without a runner, functions run at once.
  bool ran = false;
  (*c->runner())([&ran] { ran = true; });
  EXPECT_TRUE(ran);
}

TEST(OpKernelContextForwarding, ReusesInputsWithoutOtherHolders) {
  const TensorShape two({2});
  Tensor* out = nullptr;
  {
    // The caller still holds the inputs.
    OwnContext c;
    int forwarded = 9;
    TF_ASSERT_OK(c->forward_input_or_allocate_output({0, 2}, 0, two, &out, &forwarded));
    EXPECT_EQ(forwarded, -1);
    EXPECT_FALSE(out->SharesBufferWith(c.a));
    EXPECT_EQ(c->mutable_output(0), out);
    EXPECT_THAT(
        c->forward_input_to_output_with_shape("a", "x", two, &out),
        StatusIs(error::FAILED_PRECONDITION, "OpKernel could not forward input 'a' to output 'x'"));
  }
  {
    // Input 3 has one element, and the caller holds input 0.
    OwnContext c;
    c.l[0] = c.l[1] = Tensor();
    const void* const memory = c->input(2).data();
    int forwarded = 9;
    TF_ASSERT_OK(c->forward_input_or_allocate_output({0, 3, 2}, 1, two, &out, &forwarded));
    EXPECT_EQ(forwarded, 2);
    EXPECT_EQ(out->data(), memory);
    EXPECT_EQ(c->mutable_output(1), out);
  }
  {
    OwnContext c;
    c.a = Tensor();
    const void* const memory = c->input(0).data();
    TF_ASSERT_OK(c->forward_input_or_allocate_output({"r", "a"}, "x", two, &out));
    EXPECT_EQ(out->data(), memory);
    EXPECT_EQ(c->mutable_output(0), out);
  }
  {
    OwnContext c;
    c.a = c.r = c.l[0] = Tensor();
    const void* const memory = c->input(0).data();
    TF_ASSERT_OK(c->forward_input_to_output_with_shape("a", "x", TensorShape({2, 1}), &out));
    EXPECT_EQ(out->data(), memory);
    EXPECT_EQ(out->dims(), 2);
    EXPECT_EQ(c->mutable_output(0), out);
    // A reference is never reused.
    EXPECT_EQ(c->forward_input(1, 0, DT_FLOAT, TensorShape({}), DEVICE_MEMORY, {}), nullptr);
    const void* const second = c->input(2).data();
    Tensor temp;
    TF_ASSERT_OK(c->forward_input_or_allocate_temp({1, 3, 2}, DT_FLOAT, two, &temp));
    EXPECT_EQ(temp.data(), second);
    TF_ASSERT_OK(c->forward_input_or_allocate_temp({1}, DT_INT32, two, &temp));
    EXPECT_EQ(temp.dtype(), DT_INT32);
    TF_EXPECT_OK(c->status());
  }
  // Strings are never reused.
  OwnContext c;
  Tensor text = test::AsTensor<tstring>({"a"});
  c.inputs[0] = TensorValue(&text);
  c.params.inputs = c.inputs;
  OpKernelContext of_text(&c.params);
  text = Tensor();
  EXPECT_EQ(of_text.forward_input(0, 0, DT_STRING, TensorShape({1}), DEVICE_MEMORY, {}), nullptr);
}

TEST(OpKernelContextReferences, AreReplacedAndDeleted) {
  OwnContext c;
  const Tensor next = test::AsScalar<float>(8);
  c->replace_ref_input(1, next, /*lock_held=*/false);
  EXPECT_TRUE(c.r.SharesBufferWith(next));
  {
    // The kernel already holds the lock, so the call must not wait for it.
    const mutex_lock lock(c.mu);
    const Tensor last = test::AsScalar<float>(9);
    TF_ASSERT_OK(c->replace_ref_input("r", last, /*lock_held=*/true));
    EXPECT_TRUE(c.r.SharesBufferWith(last));
    EXPECT_TRUE(c->mutable_input(1, /*lock_held=*/true).SharesBufferWith(last));
  }
  c->forward_ref_input_to_ref_output(1, 0);
  EXPECT_TRUE(c->mutable_output(0)->SharesBufferWith(c.r));
  EXPECT_THAT(c->replace_ref_input("a", next, false),
              StatusIs(error::INVALID_ARGUMENT, "input 'a' is not a reference"));
  TF_EXPECT_OK(c->status());
  c->replace_ref_input(0, next, false);
  EXPECT_THAT(c->status(), StatusIs(error::INTERNAL, "input 0 is not a reference"));

  for (const bool lock_held : {false, true}) {
    OwnContext d;
    d.inputs[1].tensor = new Tensor(1.f);
    d.params.inputs = d.inputs;
    OpKernelContext context(&d.params);
    if (lock_held) d.mu.lock();
    context.delete_ref_input(1, lock_held);
    if (lock_held) d.mu.unlock();
    EXPECT_FALSE(context.has_input(1));
    EXPECT_FALSE(context.mutable_input(1, false).IsInitialized());
    TF_EXPECT_OK(context.status());
    context.replace_ref_input(1, next, false);
    EXPECT_THAT(context.status(), StatusIs(error::INTERNAL, "input 1 is not a reference"));
    d->delete_ref_input(0, lock_held);
    EXPECT_THAT(d->status(),
                StatusIs(error::INTERNAL, "input 0 is not a tensor that the kernel may delete"));
  }
}

TEST(OpKernelContextReleases, ReleaseOutputsThatAreSet) {
  OwnContext c;
  EXPECT_EQ(c->release_output(0).tensor, nullptr);
  c->set_output(0, c.a);
  const std::unique_ptr<Tensor> released(c->release_output(0).tensor);
  EXPECT_TRUE(released->SharesBufferWith(c.a));
  EXPECT_EQ(c->release_output(0).tensor, nullptr);
  TF_EXPECT_OK(c->status());
}

TEST(OpKernelContextChecks, CompareShapesAndSignatures) {
  OwnContext c;
  EXPECT_FALSE(c->ValidateInputsAreSameShape(nullptr));
  EXPECT_THAT(c->status(),
              StatusIs(error::INVALID_ARGUMENT,
                       "Inputs to operation must have the same size and shape. Input 0: [2] != "
                       "input 1: []"));
  for (TensorValue& input : c.inputs) input = TensorValue(&c.a);
  c.params.inputs = c.inputs;
  OpKernelContext same(&c.params);
  EXPECT_TRUE(same.ValidateInputsAreSameShape(nullptr));
  TF_EXPECT_OK(same.MatchSignature({DT_FLOAT, DT_FLOAT_REF, DT_FLOAT, DT_FLOAT},
                                   {DT_FLOAT, DT_FLOAT, DT_FLOAT}));
  EXPECT_THAT(same.MatchSignature({DT_FLOAT}, {DT_FLOAT, DT_FLOAT, DT_FLOAT}),
              StatusIs(error::INVALID_ARGUMENT,
                       "Signature mismatch, have: float, float_ref, float, float->float, float, "
                       "float expected: float->float, float, float"));
  EXPECT_EQ(c.kernel->TraceString(c.context, true),
            "n:OpKernelParts#shape=(float[2];;float[2];float[1])#");
  EXPECT_EQ(c.kernel->TraceString(c.context, false), "n:OpKernelParts");
  c.params.inputs = std::vector<TensorValue>();
  EXPECT_EQ(c.kernel->TraceString(OpKernelContext(&c.params), true), "n:OpKernelParts");
  // More inputs than the kernel has, all empty.
  const std::vector<TensorValue> more(6);
  c.params.inputs = more;
  EXPECT_EQ(c.kernel->TraceString(OpKernelContext(&c.params), true),
            "n:OpKernelParts#shape=(;;;;;)#");
  TensorShape shape;
  EXPECT_THAT(
      c.kernel->MakeShape(test::AsScalar<int32>(2), &shape),
      StatusIs(error::INVALID_ARGUMENT, "shape must be a vector of {int32,int64}, got shape []"));
  int start = 0, stop = 0;
  TF_EXPECT_OK(c.kernel->InputRange("l", &start, &stop));
  EXPECT_EQ(std::pair(start, stop), std::pair(2, 4));
  TF_EXPECT_OK(c.kernel->OutputRange("m", &start, &stop));
  EXPECT_EQ(std::pair(start, stop), std::pair(1, 3));
}

TEST(OpKernelContextWithoutAKernel, HasOnlyInputs) {
  Tensor x(2.f);
  const std::vector<TensorValue> inputs = {TensorValue(&x)};
  OpKernelContext::Params params;
  params.inputs = inputs;
  OpKernelContext context(&params);
  EXPECT_EQ(context.num_outputs(), 0);
  EXPECT_TRUE(context.input(0).SharesBufferWith(x));
  EXPECT_EQ(context.device()->name(), "/device:CPU:0");
  EXPECT_EQ(context.device()->attributes().device_type(), "CPU");
  EXPECT_TRUE(context.output_required(0));
  Tensor copy;
  absl::Status status = errors::Internal("not called");
  context.device()->CopyTensorInSameDevice(&x, &copy, nullptr,
                                           [&](const absl::Status& done) { status = done; });
  TF_EXPECT_OK(status);
  test::ExpectTensorEqual<float>(copy, x);
  EXPECT_FALSE(copy.SharesBufferWith(x));
}

TEST(OpKernelConstructionTest, ChecksTypesAndMemory) {
  int calls = 0;
  on_construction = [&calls](OpKernelConstruction* context) {
    ++calls;
    EXPECT_EQ(context->input_type(1), DT_FLOAT_REF);
    EXPECT_EQ(context->output_type(2), DT_FLOAT);
    EXPECT_EQ(context->input_type(3), DT_FLOAT);
    TF_EXPECT_OK(context->MatchSignature({DT_FLOAT, DT_FLOAT_REF, DT_FLOAT, DT_FLOAT},
                                         {DT_FLOAT, DT_FLOAT, DT_FLOAT}));
    EXPECT_EQ(context->MatchSignature({}, {DT_FLOAT, DT_FLOAT, DT_FLOAT}).code(),
              error::INVALID_ARGUMENT);
    Tensor temp;
    TF_EXPECT_OK(context->allocate_temp(DT_FLOAT, TensorShape({2}), &temp));
    const TensorShape huge({int64{1} << 60});
    EXPECT_EQ(context->allocate_temp(DT_DOUBLE, huge, &temp).code(), error::RESOURCE_EXHAUSTED);
    PersistentTensor persistent;
    EXPECT_EQ(context->allocate_persistent(DT_DOUBLE, huge, &persistent, nullptr).code(),
              error::RESOURCE_EXHAUSTED);
    TF_EXPECT_OK(context->allocate_persistent(DT_FLOAT, TensorShape({3}), &persistent, nullptr));
    EXPECT_EQ(persistent.NumElements(), 3);
    // A kernel whose node differs from the context's node.
    struct RenamedOp : OpKernel {
      explicit RenamedOp(OpKernelConstruction* context)
          : OpKernel(context, NodeDef(), /*is_deferred=*/true) {}
      void Compute(OpKernelContext*) override {}
    };
    const RenamedOp renamed(context);
    EXPECT_EQ(renamed.name(), "");
    EXPECT_EQ(renamed.num_inputs(), 4);
    EXPECT_TRUE(renamed.is_deferred());
    EXPECT_EQ(context->def().name(), "n");
    TF_EXPECT_OK(context->status());
  };
  const std::unique_ptr<OpKernel> kernel = MakeKernel();
  EXPECT_EQ(calls, 1);
  for (const auto& [is_input, i, message] :
       {std::tuple(true, -1, "input -1 of 4"), std::tuple(true, 4, "input 4 of 4"),
        std::tuple(false, -1, "output -1 of 3"), std::tuple(false, 3, "output 3 of 3")}) {
    on_construction = [is_input = is_input, i = i](OpKernelConstruction* context) {
      EXPECT_EQ(is_input ? context->input_type(i) : context->output_type(i), DT_INVALID);
    };
    EXPECT_THAT(
        CreateOpKernel(DEVICE_CPU, kernel->def()).status(),
        StatusIs(error::INTERNAL, absl::StrCat("the kernel asked for the type of ", message)));
  }
  on_construction = nullptr;
}

TEST(AsyncOpKernelWithoutASession, ComputesAndWaits) {
  struct LaterOp : AsyncOpKernel {
    using AsyncOpKernel::AsyncOpKernel;
    void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
      thread.reset(Env::Default()->StartThread({}, "later", [context, done] {
        context->set_output(0, context->input(0));
        done();
      }));
    }
    std::unique_ptr<Thread> thread;
  };
  std::unique_ptr<LaterOp> later;
  on_construction = [&later](OpKernelConstruction* context) {
    later = std::make_unique<LaterOp>(context);
  };
  OwnContext c;
  on_construction = nullptr;
  EXPECT_EQ(later->AsAsync(), later.get());
  later->Compute(&c.context);
  EXPECT_TRUE(c->mutable_output(0)->SharesBufferWith(c.a));
}

}  // namespace op_kernel_test
}  // namespace tensorflow
