// Ops that read and change tables: LookupTableFind, LookupTableInsert and others.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/lookup/table.h"
#include "gradflow/ops/lookup/table_op.h"

namespace gradflow::lookup_table {
namespace {

// ---- Shapes ----

// Returns the shape of the values of `keys`; of unknown rank unless the table is known.
absl::StatusOr<PartialTensorShape> ValuesShape(ShapeContext& c, const PartialTensorShape& keys) {
  if (c.variable_type(0) == DT_INVALID) return PartialTensorShape();
  return keys.Concatenate(c.variable_shape(0));
}

absl::Status FindShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckTableHandle(c));
  // The values of the first form are scalars or vectors.
  if (c.op_def().input_arg(0).is_ref()) GRADFLOW_RETURN_IF_ERROR(CheckRankAtMost(c, 2, 1));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape values, ValuesShape(c, c.input(1)));
  c.set_output(0, std::move(values));
  return absl::OkStatus();
}

absl::Status NoOutputShape(ShapeContext& c) { return CheckTableHandle(c); }

absl::Status SizeShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckTableHandle(c));
  return ScalarShape(c);
}

absl::Status ExportShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckTableHandle(c));
  if (c.variable_type(0) == DT_INVALID) return absl::OkStatus();
  const PartialTensorShape keys({-1});
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape values, ValuesShape(c, keys));
  c.set_output(0, keys);
  c.set_output(1, std::move(values));
  return absl::OkStatus();
}

// ---- Kernels ----

absl::Status Find(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<LookupTable> table, TableOf(ctx, 0));
  return table->Find(ctx, ctx.input(1), ctx.input(2));
}

// Returns an error unless entries of the table may change.
absl::Status CheckMutable(const LookupTable& table) {
  if (table.kind() != LookupTable::Kind::kHash) return absl::OkStatus();
  return errors::Unimplemented("the entries of a hash table cannot change; use a mutable table");
}

absl::Status Insert(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<LookupTable> table, TableOf(ctx, 0));
  GRADFLOW_RETURN_IF_ERROR(CheckMutable(*table));
  return table->Insert(ctx.input(1), ctx.input(2));
}

absl::Status Remove(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<LookupTable> table, TableOf(ctx, 0));
  GRADFLOW_RETURN_IF_ERROR(CheckMutable(*table));
  return table->Remove(ctx.input(1));
}

absl::Status Import(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<LookupTable> table, TableOf(ctx, 0));
  return table->kind() == LookupTable::Kind::kHash ? table->Initialize(ctx.input(1), ctx.input(2))
                                                   : table->Import(ctx.input(1), ctx.input(2));
}

absl::Status Size(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<LookupTable> table, TableOf(ctx, 0));
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {}, &output));
  output->span<int64_t>()[0] = table->size();
  return absl::OkStatus();
}

absl::Status Export(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<LookupTable> table, TableOf(ctx, 0));
  return table->Export(ctx);
}

}  // namespace

void Register(Registry& registry) {
  // The first form of an op takes a reference, and the second a resource.
  for (const bool v2 : {false, true}) {
    const auto kernel = [&](absl::string_view name, KernelFactory factory) {
      return registry.Kernel(absl::StrCat(name, v2 ? "V2" : ""), factory);
    };
    TableOp(registry, "LookupTableFind", v2)
        .Shape(FindShape)
        .Input("keys: Tin")
        .Input("default_value: Tout")
        .Output("values: Tout")
        .Attr("Tin: type")
        .Attr("Tout: type")
        .Doc(R"(Returns the values of keys in a table.

table_handle: The table.
keys: The keys, of any shape.
default_value: The value of keys that are not in the table. A mutable table also takes a value for
  each key.
values: The values, of the shape of `keys` followed by the shape of a value.
Tin: The type of the table's keys.
Tout: The type of the table's values.)");
    kernel("LookupTableFind", MakeFunctionKernel<Find>).Types("Tout", TableValueTypes());
    TableOp(registry, "LookupTableInsert", v2)
        .Shape(NoOutputShape)
        .Input("keys: Tin")
        .Input("values: Tout")
        .Attr("Tin: type")
        .Attr("Tout: type")
        .Doc(R"(Adds entries to a mutable table, and replaces the values of keys that it has.

If a key occurs several times, the last value counts.

table_handle: The table.
keys: The keys, of any shape.
values: A value for each key.
Tin: The type of the table's keys.
Tout: The type of the table's values.)");
    kernel("LookupTableInsert", MakeFunctionKernel<Insert>).Types("Tout", TableValueTypes());
    TableOp(registry, "LookupTableImport", v2)
        .Shape(NoOutputShape)
        .Input("keys: Tin")
        .Input("values: Tout")
        .Attr("Tin: type")
        .Attr("Tout: type")
        .Doc(R"(Replaces all entries of a mutable table, or initializes a hash table.

table_handle: The table.
keys: The keys.
values: A value for each key.
Tin: The type of the table's keys.
Tout: The type of the table's values.)");
    kernel("LookupTableImport", MakeFunctionKernel<Import>).Types("Tout", TableValueTypes());
    TableOp(registry, "LookupTableSize", v2)
        .Shape(SizeShape)
        .Output("size: int64")
        .Doc(R"(Returns the number of entries of a table.

table_handle: The table.
size: A scalar.)");
    kernel("LookupTableSize", MakeFunctionKernel<Size, /*Cheap=*/true>);
    TableOp(registry, "LookupTableExport", v2)
        .Shape(ExportShape)
        .Output("keys: Tkeys")
        .Output("values: Tvalues")
        .Attr("Tkeys: type")
        .Attr("Tvalues: type")
        .Doc(R"(Returns all entries of a table, in the order of insertion.

The keys of a dense table are a matrix with a row for each place of the table, which is `empty_key`
if the place is free. `LookupTableImport` accepts all results.

table_handle: The table.
keys: A vector of the keys.
values: The value of each key.
Tkeys: The type of the table's keys.
Tvalues: The type of the table's values.)");
    kernel("LookupTableExport", MakeFunctionKernel<Export>).Types("Tvalues", TableValueTypes());
  }
  registry.Op("LookupTableRemoveV2")
      .Group("lookup_ops")
      .Input("table_handle: resource")
      .Input("keys: Tin")
      .Attr("Tin: type")
      .Alias("LookupTableRemove")
      .Stateful()
      .Shape(NoOutputShape)
      .Doc(R"(Removes entries of a mutable table. Keys that are not in the table have no effect.

table_handle: The table.
keys: The keys, of any shape.
Tin: The type of the table's keys.)");
  registry.Kernel("LookupTableRemoveV2", MakeFunctionKernel<Remove>);
}

}  // namespace gradflow::lookup_table
