// Tests of members of kernels, their construction and their contexts that few programs use.
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/register_types.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/platform/test.h"
#include "tensorflow/core/public/version.h"

namespace tensorflow {
namespace kernel_surface_test {

// The function that the kernel of CompatSurface runs in a session.
std::function<void(OpKernelContext*)>* compute = nullptr;

REGISTER_OP("CompatSurface")
    .Input("xs: N * float")
    .Output("ys: N * float")
    .Attr("N: int >= 1")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      for (int i = 0; i < c->num_outputs(); ++i) c->set_output(i, c->UnknownShape());
      return absl::OkStatus();
    });

class SurfaceOp : public OpKernel {
 public:
  explicit SurfaceOp(OpKernelConstruction* context) : OpKernel(context, true) {
    EXPECT_EQ(context->env(), Env::Default());
    EXPECT_EQ(context->device()->name(), "/device:CPU:0");
    EXPECT_EQ(context->device()->env(), Env::Default());
    EXPECT_EQ(context->resource_manager(), nullptr);
    EXPECT_EQ(context->graph_def_version(), TF_GRAPH_DEF_VERSION);
    Tensor temp;
    TF_EXPECT_OK(context->allocate_temp(DT_FLOAT, TensorShape({2}), &temp, AllocatorAttributes()));
    EXPECT_EQ(temp.NumElements(), 2);
    Tensor* kept = nullptr;
    TF_EXPECT_OK(context->allocate_persistent(DT_FLOAT, TensorShape({3}), &kept_, &kept));
    kept->flat<float>().setConstant(7);
    EXPECT_EQ(kept_.NumElements(), 3);
  }
  void Compute(OpKernelContext* context) override {
    EXPECT_EQ(kept_.AccessTensor(context)->flat<float>()(2), 7);
    EXPECT_EQ(name_view(), name());
    EXPECT_EQ(type_string_view(), "CompatSurface");
    EXPECT_TRUE(is_deferred());
    EXPECT_EQ(const_tensor(), nullptr);
    TensorShape shape;
    TF_EXPECT_OK(MakeShape(test::AsTensor<int32>({2, 3}), &shape));
    EXPECT_EQ(shape, TensorShape({2, 3}));
    EXPECT_EQ(MakeShape(test::AsScalar<int32>(2), &shape).code(), error::INVALID_ARGUMENT);
    EXPECT_TRUE(IsLegacyScalar(TensorShape({})) && !IsLegacyScalar(TensorShape({1})));
    EXPECT_TRUE(IsLegacyVector(TensorShape({1})) && !IsLegacyVector(TensorShape({})));
    (*compute)(context);
  }

 private:
  PersistentTensor kept_;
};
REGISTER_KERNEL_BUILDER(Name("CompatSurface").Device(DEVICE_CPU), SurfaceOp);

// Runs a kernel on 2 * [1, 2] and 2 * [3, 4], which no other node reads. Returns its outputs.
absl::Status RunKernel(std::function<void(OpKernelContext*)> with, std::vector<Tensor>* outputs) {
  compute = &with;
  Scope root = Scope::NewRootScope();
  // x is a placeholder, so that the products are not folded into constants, whose memory could not
  // be reused.
  auto x = ops::Placeholder(root, DT_FLOAT);
  auto a = ops::Mul(root, x, ops::Const(root, {1.f, 2.f}));
  auto b = ops::Mul(root, x, ops::Const(root, {3.f, 4.f}));
  Node* node;
  TF_RETURN_IF_ERROR(NodeBuilder("surface", "CompatSurface")
                         .Input({{a.node(), 0}, {b.node(), 0}})
                         .Finalize(root.graph(), &node));
  ClientSession session(root);
  return session.Run({{x, 2.f}}, {Output(node, 0), Output(node, 1)}, outputs);
}

TEST(KernelSurface, ContextHasItsParts) {
  std::vector<Tensor> outputs;
  TF_ASSERT_OK(RunKernel(
      [](OpKernelContext* context) {
        EXPECT_EQ(context->env(), Env::Default());
        EXPECT_EQ(context->step_container(), nullptr);
        EXPECT_EQ(context->session_metadata(), nullptr);
        EXPECT_FALSE(context->is_input_dead());
        EXPECT_FALSE(context->deadline().has_value());
        EXPECT_TRUE(context->output_required(1));
        bool ran = false;
        (*context->runner())([&ran] { ran = true; });
        EXPECT_TRUE(ran);
        Allocator* const allocator = context->get_allocator(AllocatorAttributes());
        void* const block = allocator->AllocateRaw(Allocator::kAllocatorAlignment, 10);
        EXPECT_NE(block, nullptr);
        allocator->DeallocateRaw(block);

        const absl::StatusOr<const Tensor*> input = context->get_input(1);
        TF_ASSERT_OK(input.status());
        EXPECT_EQ(*input, &context->input(1));
        EXPECT_EQ(context->get_input(2).status().code(), error::INVALID_ARGUMENT);

        OpInputList list;
        TF_ASSERT_OK(context->input_list("xs", &list));
        OpInputList::Iterator it = list.begin();
        EXPECT_EQ(it->NumElements(), 2);
        EXPECT_EQ(&*it++, &context->input(0));
        EXPECT_EQ(&*it, &context->input(1));
        EXPECT_EQ(std::count_if(list.begin(), list.end(),
                                [](const Tensor& t) { return t.flat<float>()(0) == 6; }),
                  1);
        OpOutputList out;
        TF_ASSERT_OK(context->output_list("ys", &out));
        EXPECT_TRUE(out.required(0));
        for (int i = 0; i < out.size(); ++i) out.set(i, list[i]);
        int with_elements = 0;
        for (Tensor* tensor : out) with_elements += tensor->NumElements() == 2;
        EXPECT_EQ(with_elements, 2);
      },
      &outputs));
  test::ExpectTensorEqual<float>(outputs[1], test::AsTensor<float>({6, 8}));
}

TEST(KernelSurface, ReusesTheMemoryOfInputs) {
  std::vector<Tensor> outputs;
  TF_ASSERT_OK(RunKernel(
      [](OpKernelContext* context) {
        const AllocatorAttributes any;
        const void* const memory = context->input(0).data();
        // The type or the size differs.
        EXPECT_EQ(context->forward_input(0, 0, DT_INT32, TensorShape({2}), DEVICE_MEMORY, any),
                  nullptr);
        EXPECT_EQ(context->forward_input(0, 0, DT_FLOAT, TensorShape({3}), DEVICE_MEMORY, any),
                  nullptr);
        Tensor held = context->input(0);
        EXPECT_EQ(context->forward_input(0, 0, DT_FLOAT, TensorShape({2}), DEVICE_MEMORY, any),
                  nullptr);
        held = Tensor();
        std::unique_ptr<Tensor> taken =
            context->forward_input(0, 0, DT_FLOAT, TensorShape({2, 1}), DEVICE_MEMORY, any);
        ASSERT_NE(taken, nullptr);
        EXPECT_EQ(taken->data(), memory);
        EXPECT_EQ(taken->dims(), 2);
        EXPECT_TRUE(taken->RefCountIsOne());
        taken->flat<float>().setConstant(5);
        context->set_output(0, *taken);
        // The input was already taken.
        Tensor temp;
        TF_ASSERT_OK(
            context->forward_input_or_allocate_temp({0}, DT_FLOAT, TensorShape({2}), &temp));
        EXPECT_NE(temp.data(), memory);
        const void* const second = context->input(1).data();
        Tensor* out = nullptr;
        ASSERT_TRUE(context->forward_input_to_output_with_shape(1, 1, TensorShape({1, 2}), &out));
        EXPECT_EQ(out->data(), second);
        EXPECT_FALSE(context->forward_input_to_output_with_shape(1, 1, TensorShape({1, 2}), &out));
        // The arguments are lists.
        EXPECT_EQ(
            context->forward_input_to_output_with_shape("xs", "ys", TensorShape({2}), &out).code(),
            error::INVALID_ARGUMENT);
        Tensor* kept = nullptr;
        PersistentTensor persistent;
        TF_ASSERT_OK(context->allocate_persistent(DT_FLOAT, TensorShape({2}), &persistent, &kept));
        EXPECT_EQ(persistent.AccessTensor(context), kept);
        EXPECT_TRUE(persistent.IsInitialized());
      },
      &outputs));
  test::ExpectTensorEqual<float>(outputs[0], test::AsTensor<float>({5, 5}, TensorShape({2, 1})));
  test::ExpectTensorEqual<float>(outputs[1], test::AsTensor<float>({6, 8}, TensorShape({1, 2})));
}

REGISTER_OP("CompatRefs").Input("refs: Ref(N * float)").Output("y: Ref(float)").Attr("N: int >= 1");
class RefsOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    OpMutableInputList refs;
    OP_REQUIRES_OK(context, context->mutable_input_list("refs", &refs));
    ASSERT_EQ(refs.size(), 2);
    const mutex_lock lock(*refs.ref_mutex(1));
    refs.at(1, true).flat<float>()(0) = 9;
    EXPECT_EQ(context->mutable_input_list("ref", &refs).code(), error::INVALID_ARGUMENT);
    static Tensor& own = *new Tensor(4.f);
    static mutex& own_mutex = *new mutex;
    OP_REQUIRES_OK(context, context->set_output_ref("y", &own_mutex, &own));
  }
};
REGISTER_KERNEL_BUILDER(Name("CompatRefs").Device(DEVICE_CPU), RefsOp);

TEST(KernelSurface, SupportsReferencesAndParams) {
  NodeDef node;
  node.set_name("n");
  node.set_op("CompatRefs");
  node.add_input("a");
  node.add_input("b");
  (*node.mutable_attr())["N"].set_i(2);
  EXPECT_TRUE(KernelDefAvailable(DEVICE_CPU, node));
  EXPECT_FALSE(KernelDefAvailable(DEVICE_GPU, node));
  absl::Status status;
  DeviceBase device(Env::Default());
  const std::unique_ptr<OpKernel> kernel =
      CreateOpKernel(DEVICE_CPU, &device, cpu_allocator(), node, TF_GRAPH_DEF_VERSION, &status);
  TF_ASSERT_OK(status);
  Tensor a(1.f), b(2.f);
  mutex mu_a, mu_b;
  const std::vector<TensorValue> inputs = {{&mu_a, &a}, {&mu_b, &b}};
  EXPECT_EQ(inputs[0].dtype(), DT_FLOAT_REF);
  EXPECT_EQ(inputs[0].dtype_safe(), DT_FLOAT_REF);
  EXPECT_EQ(TensorValue(&a).dtype_safe(), DT_FLOAT);
  OpKernelContext::Params params;
  params.op_kernel = kernel.get();
  params.device = &device;
  params.inputs = inputs;
  params.is_input_dead = true;
  params.deadline = absl::UnixEpoch();
  const bool required[] = {false};
  params.output_required_array = required;
  std::function<void(std::function<void()>)> runner = [](const std::function<void()>&) {};
  params.runner = &runner;
  OpKernelContext context(&params);
  kernel->Compute(&context);
  TF_EXPECT_OK(context.status());
  EXPECT_EQ(b.flat<float>()(0), 9);
  EXPECT_EQ(context.mutable_output(0)->flat<float>()(0), 4);
  EXPECT_TRUE(context.is_input_dead());
  EXPECT_EQ(context.deadline(), absl::UnixEpoch());
  EXPECT_FALSE(context.output_required(0));
  EXPECT_EQ(context.runner(), &runner);

  NodeDef relu;
  relu.set_name("r");
  relu.set_op("Relu");
  relu.add_input("a");
  (*relu.mutable_attr())["T"].set_type(DT_FLOAT);
  EXPECT_TRUE(KernelDefAvailable(DEVICE_CPU, relu));
}

// Counts the types of a set.
#define COUNT_TYPE(type) ++count;
#define COUNT(SET)             \
  [] {                         \
    int count = 0;             \
    TF_CALL_##SET(COUNT_TYPE); \
    return count;              \
  }()

TEST(RegisterTypes, HasTheSetsOfTensorFlow) {
  EXPECT_EQ(COUNT(INTEGRAL_TYPES_NO_INT32), 7);
  EXPECT_EQ(COUNT(REAL_NUMBER_TYPES_NO_INT32), 11);
  EXPECT_EQ(COUNT(REAL_NUMBER_TYPES_NO_BFLOAT16), 11);
  EXPECT_EQ(COUNT(NUMBER_TYPES_NO_INT32), 13);
  EXPECT_EQ(COUNT(POD_TYPES), 15);
  EXPECT_EQ(COUNT(POD_STRING_TYPES), 16);
  EXPECT_EQ(COUNT(ALL_TYPES), 18);
  EXPECT_EQ(COUNT(GPU_NUMBER_TYPES), 4);
  EXPECT_EQ(COUNT(GPU_ALL_TYPES), 7);
  EXPECT_EQ(COUNT(GPU_NUMBER_TYPES_NO_HALF), 2);
  EXPECT_EQ(COUNT(SAVE_RESTORE_TYPES), 18);
  EXPECT_EQ(COUNT(float8_e5m2) + COUNT(float8_e4m3fn) + COUNT(int4) + COUNT(uint4), 4);
}

}  // namespace kernel_surface_test
}  // namespace tensorflow
