// Tests of what TensorArrays, stacks and queues have in common.
#include <functional>
#include <string>
#include <vector>

#include "gradflow/core/registry.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/op_def.pb.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/ops/data_flow/run_graph.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

// A resource that lives in a run.
struct Holder {
  const char* name;
  // Makes a holder of tensors of type `dtype`.
  std::function<Output(const Scope& scope, DataType dtype)> make;
  // Adds a tensor, and returns an output of the node.
  std::function<Output(const Scope& scope, const Output& handle, const Input& value)> add;
  // The error if there is no memory for the holder.
  const char* memory_error;
};

std::vector<Holder> Holders() {
  return {
      {"TensorArray",
       [](const Scope& scope, DataType dtype) {
         return ops::TensorArrayV3(scope, 0, dtype, ops::TensorArrayV3::DynamicSize(true)).handle;
       },
       [](const Scope& scope, const Output& handle, const Input& value) -> Output {
         return ops::TensorArrayWriteV3(scope, handle, 0, value, 0.f);
       },
       "out of memory for the elements of a TensorArray"},
      {"Stack", [](const Scope& scope, DataType dtype) { return ops::StackV2(scope, -1, dtype); },
       [](const Scope& scope, const Output& handle, const Input& value) -> Output {
         return ops::StackPushV2(scope, handle, value);
       },
       "out of memory for a stack of tensors"},
  };
}

TEST(Holders, ManyEmptyOnesExceedTheMemoryLimit) {
  SessionOptions options;
  options.tensor_memory_limit_bytes = 128 << 10;
  for (const Holder& holder : Holders()) {
    const Scope scope = Scope::NewRootScope();
    std::vector<Output> handles;
    for (int i = 0; i < 1000; ++i) handles.push_back(holder.make(scope, DT_FLOAT));
    EXPECT_THAT(RunGraph(scope, {ops::Pack(scope, handles)}, options),
                StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr(holder.memory_error)));
  }
}

// Holders that hold each other would never be freed.
TEST(Holders, HoldOnlyHandlesOfYoungerHolders) {
  for (const Holder& holder : Holders()) {
    for (const Holder& other : Holders()) {
      SCOPED_TRACE(absl::StrCat(holder.name, " ", other.name));
      const Scope scope = Scope::NewRootScope();
      const Output older = other.make(scope, DT_RESOURCE);
      const Output middle = holder.make(scope.WithControlDependencies(older), DT_RESOURCE);
      const Output younger = other.make(scope.WithControlDependencies(middle), DT_RESOURCE);
      const Scope last = scope.WithControlDependencies(younger);
      EXPECT_THAT(RunGraph(scope, {ops::Shape(last, holder.add(last, middle, younger))}), IsOk());
      EXPECT_THAT(RunGraph(scope, {ops::Shape(last, holder.add(last, middle, middle))}),
                  StatusIs(kInvalidArgument, HasSubstr("cannot hold the handle of itself")));
      EXPECT_THAT(RunGraph(scope, {ops::Shape(last, holder.add(last, middle, older))}),
                  StatusIs(kInvalidArgument, HasSubstr("a resource that was made before it")));
    }
  }
}

// A handle in a list also keeps its resource alive.
TEST(Holders, SearchLists) {
  for (const Holder& holder : Holders()) {
    for (const int depth : {1, 3, 20'000}) {
      SCOPED_TRACE(absl::StrCat(holder.name, " ", depth));
      const Scope scope = Scope::NewRootScope();
      const Output handle = holder.make(scope, DT_VARIANT);
      const Input any_shape(-1);
      Output list = ops::TensorListPushBack(
          scope, ops::EmptyTensorList(scope, any_shape, -1, DT_RESOURCE), handle);
      if (depth == 3) {
        for (int d = 1; d < depth; ++d) {
          list = ops::TensorListPushBack(
              scope, ops::EmptyTensorList(scope, any_shape, -1, DT_VARIANT), list);
        }
      } else if (depth > 3) {
        list = ops::TensorListReserve(scope, any_shape, depth, DT_VARIANT);
      }
      EXPECT_THAT(RunGraph(scope, {ops::Shape(scope, holder.add(scope, handle, list))}),
                  depth > 3
                      ? StatusIs(absl::StatusCode::kResourceExhausted,
                                 HasSubstr("cannot hold lists with more than 10000"))
                      : StatusIs(kInvalidArgument, HasSubstr("cannot hold the handle of itself")));
    }
  }
}

// Common-subexpression elimination must not merge two reads.
TEST(Holders, HaveStatefulOps) {
  for (const char* op : {"TensorArrayV3",
                         "TensorArrayGradV3",
                         "TensorArrayGradWithShape",
                         "TensorArrayWriteV3",
                         "TensorArrayReadV3",
                         "TensorArrayGatherV3",
                         "TensorArrayScatterV3",
                         "TensorArrayConcatV3",
                         "TensorArraySplitV3",
                         "TensorArraySizeV3",
                         "TensorArrayCloseV3",
                         "StackV2",
                         "StackPushV2",
                         "StackPopV2",
                         "StackCloseV2",
                         "FIFOQueueV2",
                         "PaddingFIFOQueueV2",
                         "PriorityQueueV2",
                         "RandomShuffleQueueV2",
                         "QueueEnqueueV2",
                         "QueueEnqueueManyV2",
                         "QueueDequeueV2",
                         "QueueDequeueManyV2",
                         "QueueDequeueUpToV2",
                         "QueueCloseV2",
                         "QueueIsClosedV2",
                         "QueueSizeV2",
                         "Stage",
                         "Unstage"}) {
    EXPECT_TRUE((*GlobalRegistry().LookUpOp(op))->def().is_stateful()) << op;
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
