// Assign and AssignVariableOp.
#include <memory>
#include <utility>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/resource_handle.h"
#include "gradflow/core/resource_manager.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/core/variable.h"
#include "gradflow/ops/common/accumulate.h"
#include "gradflow/ops/common/elementwise.h"

namespace gradflow::assign {
namespace {

// Returns the shape that the variable and the value, input 1, must have. Returns INVALID_ARGUMENT
// if their shapes differ.
absl::StatusOr<PartialTensorShape> MergedShape(ShapeContext& c) {
  return MergeShapes("the variable", c.variable_shape(0), c.input_name(1), c.input(1));
}

absl::Status AssignShape(ShapeContext& c) {
  bool validates = true;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("validate_shape", &validates));
  PartialTensorShape shape = c.input(1);
  if (validates) {
    GRADFLOW_ASSIGN_OR_RETURN(shape, MergedShape(c));
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// Checks the type of the resource variable in addition to the shapes.
absl::Status AssignVariableShape(ShapeContext& c) {
  const DataType found = c.variable_type(0);
  if (found != DT_INVALID && found != c.input_type(1)) {
    return errors::InvalidArgument("the variable has type ", DataTypeString(found),
                                   ", but value has type ", DataTypeString(c.input_type(1)));
  }
  return MergedShape(c).status();
}

absl::Status UpdateShape(ShapeContext& c) {
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, MergedShape(c));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// ---- Assign, AssignVariableOp ----

class AssignKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("validate_shape", &validates_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const ResourceHandle handle, HandleOf(ctx, 0));
    std::shared_ptr<Variable> variable;
    if (handle.resource() != nullptr) {
      GRADFLOW_ASSIGN_OR_RETURN(variable, VariableOf(ctx, 0));
    } else if (ctx.resource_manager() == nullptr) {
      return errors::FailedPrecondition("variables need a session");
    } else {
      GRADFLOW_ASSIGN_OR_RETURN(
          variable,
          ctx.resource_manager()->LookupOrCreate<Variable>(handle.container(), handle.name(), [&] {
            return std::make_shared<Variable>(ctx.input_dtype(1), handle.shape(), handle.name());
          }));
    }
    GRADFLOW_ASSIGN_OR_RETURN(Tensor value, ForVariable(ctx, ctx.input(1)));
    GRADFLOW_RETURN_IF_ERROR(variable->Assign(std::move(value), validates_));
    if (ctx.num_outputs() > 0) ctx.set_output(0, ctx.input(0));
    return absl::OkStatus();
  }

 private:
  bool validates_ = false;
};

// ---- AssignAdd, AssignSub and their resource forms ----

template <Accumulation A>
class AssignUpdateKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    accumulate_ = FindAccumulation(A, construction.input_type(1));
    return absl::OkStatus();
  }
  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& value = ctx.input(1);
    VariableUpdate update;
    GRADFLOW_RETURN_IF_ERROR(update.Begin(ctx, {0}, value.dtype()));
    if (update.value(0).shape() != value.shape()) {
      return errors::InvalidArgument("variable '", errors::Printable(update.variable(0).name()),
                                     "' has shape ", update.value(0).shape().DebugString(),
                                     ", but value has shape ", value.shape().DebugString());
    }
    GRADFLOW_RETURN_IF_ERROR(update.MakeWritable());
    const int64_t size = DataTypeSize(value.dtype());
    char* to = static_cast<char*>(update.value(0).raw_data());
    const char* from = static_cast<const char*>(value.raw_data());
    ParallelFor(update.run(), value.NumElements(), BlockSizeForCost(kCheapNanoseconds),
                [&](int64_t begin, int64_t end) {
                  accumulate_(to + begin * size, 1, from + begin * size, 1, end - begin);
                });
    if (ctx.num_outputs() > 0) ctx.set_output(0, ctx.input(0));
    return absl::OkStatus();
  }

 private:
  AccumulateFn accumulate_ = nullptr;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("Assign")
      .Group("state_ops")
      .Input("ref: Ref(T)")
      .Input("value: T")
      .Output("output_ref: Ref(T)")
      .Attr("T: type")
      .Attr("validate_shape: bool = true")
      .Attr("use_locking: bool = true")
      .Shape(AssignShape)
      .Doc(R"(Gives a variable a value.

ref: The variable, which need not have a value.
value: The value.
output_ref: The variable, for nodes that use it after the assignment.
T: The type of the variable.
validate_shape: If true, it is an error if `value` does not have the shape of the variable.
use_locking: Has no effect: readers always see a whole value.)");
  registry.Kernel("Assign", MakeKernel<AssignKernel>).Types("T", AllDataTypes());
  registry.Op("AssignVariableOp")
      .Group("resource_variable_ops")
      .Input("resource: resource")
      .Input("value: dtype")
      .Attr("dtype: type")
      .Attr("validate_shape: bool = false")
      .Shape(AssignVariableShape)
      .Doc(R"(Gives a variable a value, and creates the variable if there is none.

resource: The variable.
value: The value.
dtype: The type of the variable.
validate_shape: If true, it is an error if the shape of `value` differs from the shape of the
  variable's value.)");
  registry.Kernel("AssignVariableOp", MakeKernel<AssignKernel>).Types("dtype", AllDataTypes());

  const struct {
    const char* op;
    const char* resource_op;
    const char* verb;
    KernelFactory factory;
  } updates[] = {
      {"AssignAdd", "AssignAddVariableOp", "Adds to",
       MakeKernel<AssignUpdateKernel<Accumulation::kAdd>>},
      {"AssignSub", "AssignSubVariableOp", "Subtracts from",
       MakeKernel<AssignUpdateKernel<Accumulation::kSub>>},
  };
  const DataTypeVector types = AccumulationTypes(Accumulation::kAdd);
  for (const auto& [op, resource_op, verb, factory] : updates) {
    registry.Op(op)
        .Group("state_ops")
        .Input("ref: Ref(T)")
        .Input("value: T")
        .Output("output_ref: Ref(T)")
        .Attr("T: numbertype")
        .Attr("use_locking: bool = false")
        .Shape(UpdateShape)
        .Doc(absl::StrCat(verb, R"( a variable.

ref: The variable.
value: A tensor of the shape of the variable.
output_ref: The variable, for nodes that use it after the update.
T: The type of the variable.
use_locking: Has no effect: concurrent updates are applied one after the other.)"));
    registry.Kernel(op, factory).Types("T", types);
    registry.Op(resource_op)
        .Group("resource_variable_ops")
        .Input("resource: resource")
        .Input("value: dtype")
        .Attr("dtype: type")
        .Shape(AssignVariableShape)
        .Doc(absl::StrCat(verb, R"( a variable.

Concurrent updates are applied one after the other.

resource: The variable.
value: A tensor of the shape of the variable.
dtype: The type of the variable.)"));
    registry.Kernel(resource_op, factory).Types("dtype", types);
  }
}

}  // namespace gradflow::assign
