// Ops that create and read variables: Variable, VarHandleOp, ReadVariableOp and others.
#include "gradflow/core/variable.h"

#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/resource_handle.h"
#include "gradflow/core/resource_manager.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/proto/node_def.pb.h"

namespace gradflow::variable {
namespace {

// The shared name of variables that live as long as a tensor holds their handle. The same value as
// in TensorFlow.
constexpr char kAnonymous[] = "cd2c89b7-88b7-44c8-ad83-06c2a9158347";

// The attributes of a node that identify its variable.
struct Identity {
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("dtype", &dtype));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("shape", &shape));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("container", &container));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("shared_name", &name));
    if (name.empty()) name = construction.def().name();
    if (absl::StartsWith(container, kReservedContainers)) {
      return errors::InvalidArgument("container '", errors::Printable(container), "' is reserved");
    }
    return absl::OkStatus();
  }

  DataType dtype = DT_INVALID;
  PartialTensorShape shape;
  std::string container;
  std::string name;
};

// ---- VarHandleOp ----

class VarHandleKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(id_.Init(construction));
    handle_ = Tensor(ResourceHandle(id_.container, id_.name, id_.dtype, id_.shape));
    return absl::OkStatus();
  }
  absl::Status Compute(KernelContext& ctx) const override {
    if (id_.name != kAnonymous) {
      ctx.set_output(0, handle_);
      return absl::OkStatus();
    }
    auto variable = std::make_shared<Variable>(id_.dtype, id_.shape, "anonymous");
    ctx.set_output(0,
                   Tensor(ResourceHandle(std::move(variable), "anonymous", id_.dtype, id_.shape)));
    return absl::OkStatus();
  }
  bool IsCheap() const override { return true; }

 private:
  Identity id_;
  Tensor handle_;
};

// ---- Variable, VariableV2 ----

absl::Status VariableShape(ShapeContext& c) {
  PartialTensorShape shape;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("shape", &shape));
  // In Variable, the shape of a scalar means an unknown shape.
  if (c.def().op() == "Variable" && shape.dims() == 0) shape = PartialTensorShape();
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

class VariableKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(id_.Init(construction));
    if (construction.def().op() == "Variable" && id_.shape.dims() == 0) {
      id_.shape = PartialTensorShape();
    }
    return absl::OkStatus();
  }
  absl::Status Compute(KernelContext& ctx) const override {
    if (ctx.resource_manager() == nullptr) {
      return errors::FailedPrecondition("variables need a session");
    }
    GRADFLOW_ASSIGN_OR_RETURN(
        std::shared_ptr<Variable> variable,
        ctx.resource_manager()->LookupOrCreate<Variable>(id_.container, id_.name, [&] {
          return std::make_shared<Variable>(id_.dtype, id_.shape, id_.name);
        }));
    if (variable->dtype() != id_.dtype) {
      return errors::InvalidArgument("variable '", errors::Printable(id_.name), "' has type ",
                                     DataTypeString(variable->dtype()), ", expected ",
                                     DataTypeString(id_.dtype));
    }
    ctx.set_output(0, Tensor(ResourceHandle(std::move(variable), id_.name, id_.dtype, id_.shape)));
    return absl::OkStatus();
  }
  bool IsCheap() const override { return true; }

 private:
  Identity id_;
};

// ---- Reading ----

absl::Status IsInitialized(KernelContext& ctx) {
  const absl::StatusOr<std::shared_ptr<Variable>> variable = VariableOf(ctx, 0);
  if (!variable.ok() && !absl::IsFailedPrecondition(variable.status())) return variable.status();
  ctx.set_output(0, Tensor(variable.ok() && (*variable)->IsInitialized()));
  return absl::OkStatus();
}

absl::Status ReadShape(ShapeContext& c) {
  DataType dtype = DT_INVALID;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("dtype", &dtype));
  const DataType found = c.variable_type(0);
  if (found != DT_INVALID && found != dtype) {
    return errors::InvalidArgument("the variable has type ", DataTypeString(found), ", expected ",
                                   DataTypeString(dtype));
  }
  c.set_output(0, c.variable_shape(0));
  return absl::OkStatus();
}

absl::Status Read(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(Tensor value, ReadVariable(ctx, 0, ctx.expected_output_dtype(0)));
  ctx.set_output(0, std::move(value));
  return absl::OkStatus();
}

absl::Status VariableShapeShape(ShapeContext& c) {
  const PartialTensorShape shape = c.variable_shape(0);
  c.set_output(0, PartialTensorShape({shape.unknown_rank() ? -1 : shape.dims()}));
  return absl::OkStatus();
}

absl::Status ShapeOfVariable(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<Variable> variable, VariableOf(ctx, 0));
  GRADFLOW_ASSIGN_OR_RETURN(const Tensor value, variable->Read());
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {value.dims()}, &output));
  for (int d = 0; d < value.dims(); ++d) {
    const int64_t size = value.dim_size(d);
    if (output->dtype() == DT_INT64) {
      output->flat<int64_t>()(d) = size;
    } else if (size <= std::numeric_limits<int32_t>::max()) {
      output->flat<int32_t>()(d) = static_cast<int32_t>(size);
    } else {
      return errors::InvalidArgument("dimension ", d, " of variable '",
                                     errors::Printable(variable->name()), "', ", size,
                                     ", exceeds int32");
    }
  }
  return absl::OkStatus();
}

// ---- DestroyResourceOp, DisableCopyOnRead ----

class DestroyKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("ignore_lookup_error", &ignores_missing_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const ResourceHandle handle, HandleOf(ctx, 0));
    // The holders of the handle keep the resource alive.
    if (handle.resource() != nullptr) return absl::OkStatus();
    if (ctx.resource_manager() == nullptr) {
      return errors::FailedPrecondition("resources need a session");
    }
    if (const auto variable =
            ctx.resource_manager()->Lookup<Variable>(handle.container(), handle.name());
        variable.ok() && (*variable)->IsFrozen()) {
      return (*variable)->Frozen();
    }
    const absl::Status status = ctx.resource_manager()->Delete(handle.container(), handle.name());
    return ignores_missing_ && absl::IsNotFound(status) ? absl::OkStatus() : status;
  }
  bool IsCheap() const override { return true; }

 private:
  bool ignores_missing_ = true;
};

absl::Status DisableCopyOnRead(KernelContext& ctx) { return VariableOf(ctx, 0).status(); }

}  // namespace

void Register(Registry& registry) {
  registry.Op("VarHandleOp")
      .Group("resource_variable_ops")
      .Output("resource: resource")
      .Attr("container: string = ''")
      .Attr("shared_name: string = ''")
      .Attr("debug_name: string = ''")
      .Attr("dtype: type")
      .Attr("shape: shape")
      .Attr("allowed_devices: list(string) = []")
      .Stateful()
      .Shape(ScalarShape)
      .Doc(R"(Returns the handle of a variable.

The variable lives in the session. `AssignVariableOp` creates it. Nodes with the same container and
name share a variable.

resource: The handle.
container: The container of the variable; "" is the default one.
shared_name: The name of the variable; "" for the name of the node.
debug_name: Has no effect.
dtype: The type of the variable.
shape: The shape of its values, or its known part.
allowed_devices: Has no effect.)");
  registry.Kernel("VarHandleOp", MakeKernel<VarHandleKernel>).Types("dtype", AllDataTypes());

  for (const char* op : {"VariableV2", "Variable"}) {
    Registry::OpRegistrar builder = registry.Op(op);
    if (op == absl::string_view("VariableV2")) {
      builder.Alias("Variable");
    } else {
      builder.HandWritten();  // TensorFlow's class Variable is VariableV2.
    }
    builder.Group("state_ops")
        .Output("ref: Ref(dtype)")
        .Attr("shape: shape")
        .Attr("dtype: type")
        .Attr("container: string = ''")
        .Attr("shared_name: string = ''")
        .Stateful()
        .Shape(VariableShape)
        .Doc(R"(Returns a reference to a variable.

The variable lives in the session and has no value until `Assign` gives it one. Nodes with the same
container and name share a variable. A node that takes a value reads the variable after all of its
inputs are available.

ref: The reference.
shape: The shape of the values, or its known part. For `Variable`, the shape of a scalar means
  an unknown shape.
dtype: The type of the variable.
container: The container of the variable; "" is the default one.
shared_name: The name of the variable; "" for the name of the node.)");
  }
  registry.Kernel("VariableV2", MakeKernel<VariableKernel>).Types("dtype", AllDataTypes());
  registry.Kernel("Variable", MakeKernel<VariableKernel>).Types("dtype", AllDataTypes());

  registry.Op("IsVariableInitialized")
      .Group("state_ops")
      .Input("ref: Ref(dtype)")
      .Output("is_initialized: bool")
      .Attr("dtype: type")
      .Shape(ScalarShape)
      .Doc(R"(Returns whether a variable has a value.

ref: The variable.
is_initialized: A scalar.
dtype: The type of the variable.)");
  registry.Kernel("IsVariableInitialized", MakeFunctionKernel<IsInitialized, /*Cheap=*/true>)
      .Types("dtype", AllDataTypes());
  registry.Op("VarIsInitializedOp")
      .Group("resource_variable_ops")
      .Input("resource: resource")
      .Output("is_initialized: bool")
      .Shape(ScalarShape)
      .Doc(R"(Returns whether a variable has a value.

resource: The variable.
is_initialized: A scalar.)");
  registry.Kernel("VarIsInitializedOp", MakeFunctionKernel<IsInitialized, /*Cheap=*/true>);

  registry.Op("ReadVariableOp")
      .Group("resource_variable_ops")
      .Input("resource: resource")
      .Output("value: dtype")
      .Attr("dtype: type")
      .Shape(ReadShape)
      .Doc(R"(Returns the value of a variable, without copying it.

Later updates of the variable do not change the returned tensor. A variable without a value is an
error.

resource: The variable.
value: Its value.
dtype: The type of the variable.)");
  registry.Kernel("ReadVariableOp", MakeFunctionKernel<Read, /*Cheap=*/true>)
      .Types("dtype", AllDataTypes());

  registry.Op("VariableShape")
      .Group("resource_variable_ops")
      .Input("input: resource")
      .Output("output: out_type")
      .Attr("out_type: {int32, int64} = DT_INT32")
      .Shape(VariableShapeShape)
      .Doc(R"(Returns the shape of the value of a variable.

input: The variable.
output: A vector.
out_type: The type of the result. A size that exceeds it is an error.)");
  registry.Kernel("VariableShape", MakeFunctionKernel<ShapeOfVariable, /*Cheap=*/true>);

  registry.Op("DestroyResourceOp")
      .Group("resource_variable_ops")
      .Input("resource: resource")
      .Attr("ignore_lookup_error: bool = true")
      .Shape(UnknownShape)
      .Doc(R"(Removes a resource from its session.

resource: The resource.
ignore_lookup_error: If false, it is an error if there is no such resource.)");
  registry.Kernel("DestroyResourceOp", MakeKernel<DestroyKernel>);

  registry.Op("DisableCopyOnRead")
      .Group("resource_variable_ops")
      .Input("resource: resource")
      .Shape(UnknownShape)
      .Doc(R"(Has no effect: reading a variable never copies it.

resource: The variable. It is an error if there is none.)");
  registry.Kernel("DisableCopyOnRead", MakeFunctionKernel<DisableCopyOnRead, /*Cheap=*/true>);
}

}  // namespace gradflow::variable
