// Ops that make tables: HashTable, MutableHashTable and MutableHashTableOfTensors with their V2 and
// anonymous forms, MutableDenseHashTableV2 and AnonymousMutableDenseHashTable.
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/resource_handle.h"
#include "gradflow/core/resource_manager.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/lookup/table.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow::hash_table {
namespace {

using Kind = LookupTable::Kind;

class TableKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("key_dtype", &spec_.key_dtype));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("value_dtype", &spec_.value_dtype));
    const std::string& op = construction.def().op();
    const bool is_dense = absl::StrContains(op, "Dense");
    spec_.kind = is_dense                           ? Kind::kDense
                 : absl::StrContains(op, "Mutable") ? Kind::kMutable
                                                    : Kind::kHash;
    if (is_dense || absl::StrContains(op, "OfTensors")) {
      PartialTensorShape shape;
      GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("value_shape", &shape));
      if (!shape.AsTensorShape(&spec_.value_shape)) {
        return errors::InvalidArgument("value_shape must be fully defined, but is ",
                                       shape.DebugString());
      }
      const int rank = spec_.value_shape.dims();
      if (is_dense ? rank > 1 : rank != 1) {
        return errors::InvalidArgument("value_shape must be the shape of a ",
                                       is_dense ? "scalar or a vector" : "vector", ", but is ",
                                       shape.DebugString());
      }
    }
    if (is_dense) {
      float load_factor = 0;
      GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("initial_num_buckets", &spec_.num_buckets));
      GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("max_load_factor", &load_factor));
      spec_.max_load_factor = load_factor;
    }
    if (absl::StartsWith(op, "Anonymous")) {
      is_anonymous_ = true;
      return absl::OkStatus();
    }
    bool uses_node_name = false;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("container", &container_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("shared_name", &name_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("use_node_name_sharing", &uses_node_name));
    if (absl::StartsWith(container_, kReservedContainers)) {
      return errors::InvalidArgument("container '", errors::Printable(container_), "' is reserved");
    }
    if (name_.empty()) {
      // This node does not share its table. The prefix, which begins with NUL, keeps the name apart
      // from shared names and names of nodes.
      name_ = uses_node_name
                  ? construction.def().name()
                  : absl::StrCat(absl::string_view("\0table ", 7), construction.def().name());
    }
    handle_ = Tensor(ResourceHandle(container_, name_));
    return absl::OkStatus();
  }

  absl::Status Compute(KernelContext& ctx) const override {
    LookupTable::Spec spec = spec_;
    if (spec.kind == Kind::kDense) {
      spec.empty_key = ctx.input(0);
      spec.deleted_key = ctx.input(1);
    }
    if (is_anonymous_) {
      GRADFLOW_ASSIGN_OR_RETURN(std::shared_ptr<LookupTable> table,
                                LookupTable::Make(std::move(spec), ctx.allocator()));
      ctx.set_output(0, Tensor(ResourceHandle(std::move(table), "anonymous")));
      return absl::OkStatus();
    }
    if (ctx.resource_manager() == nullptr) {
      return errors::FailedPrecondition("tables need a session");
    }
    GRADFLOW_ASSIGN_OR_RETURN(
        const std::shared_ptr<LookupTable> table,
        ctx.resource_manager()->LookupOrCreate<LookupTable>(container_, name_, [&] {
          return LookupTable::Make(std::move(spec), ctx.allocator());
        }));
    if (table->kind() != spec_.kind || table->key_dtype() != spec_.key_dtype ||
        table->value_dtype() != spec_.value_dtype || table->value_shape() != spec_.value_shape) {
      return errors::InvalidArgument("the resource of this name is another table: ",
                                     table->DebugString());
    }
    ctx.set_output(0, handle_);
    return absl::OkStatus();
  }
  bool IsCheap() const override { return true; }

 private:
  LookupTable::Spec spec_;
  bool is_anonymous_ = false;
  std::string container_;
  std::string name_;
  Tensor handle_;
};

absl::Status CheckDenseKeys(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (!c.input(i).unknown_rank() && c.input(i).dims() > 1) {
      return errors::InvalidArgument(c.input_name(i), " must be a scalar or a vector, but has ",
                                     "shape ", c.input(i).DebugString());
    }
  }
  return c.num_inputs() == 2 ? c.CheckSameShape(0, 1) : absl::OkStatus();
}

// The handle is a scalar. A reference stands for two strings, the container and the name.
absl::Status TableShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckDenseKeys(c));
  const bool is_reference = c.op_def().output_arg(0).is_ref();
  c.set_output(0, is_reference ? TensorShape({2}) : TensorShape());
  return absl::OkStatus();
}

struct TableOp {
  const char* name;
  const char* summary;
  const char* description;
};

constexpr char kHashSummary[] = "Makes a table that gets its entries once.";
constexpr char kHashDescription[] =
    "`InitializeTable` or `InitializeTableFromTextFile` adds the entries. A lookup before that is "
    "an error.";
constexpr char kMutableSummary[] = "Makes an empty table whose entries may change.";
constexpr char kMutableDescription[] = "A value is a scalar.";
constexpr char kTensorsDescription[] = "A value is a vector of shape `value_shape`.";
constexpr char kDenseDescription[] =
    "A key is a scalar or a vector, and so is a value. The two keys `empty_key` and `deleted_key` "
    "cannot be used: they mark free buckets in exported tables.";

constexpr TableOp kTableOps[] = {
    {"HashTable", kHashSummary, kHashDescription},
    {"HashTableV2", kHashSummary, kHashDescription},
    {"AnonymousHashTable", kHashSummary, kHashDescription},
    {"MutableHashTable", kMutableSummary, kMutableDescription},
    {"MutableHashTableV2", kMutableSummary, kMutableDescription},
    {"AnonymousMutableHashTable", kMutableSummary, kMutableDescription},
    {"MutableHashTableOfTensors", kMutableSummary, kTensorsDescription},
    {"MutableHashTableOfTensorsV2", kMutableSummary, kTensorsDescription},
    {"AnonymousMutableHashTableOfTensors", kMutableSummary, kTensorsDescription},
    {"MutableDenseHashTableV2", kMutableSummary, kDenseDescription},
    {"AnonymousMutableDenseHashTable", kMutableSummary, kDenseDescription},
};

void RegisterTable(Registry& registry, const TableOp& op) {
  const absl::string_view name = op.name;
  const bool is_anonymous = absl::StartsWith(name, "Anonymous");
  const bool is_dense = absl::StrContains(name, "Dense");
  const bool has_shape = is_dense || absl::StrContains(name, "OfTensors");
  const bool is_reference = !is_anonymous && !absl::EndsWith(name, "V2");
  std::string doc = absl::StrCat(op.summary, "\n\n", op.description);
  absl::StrAppend(&doc, is_anonymous ? " The table lives as long as a tensor holds its handle.\n\n"
                                     : " The table lives in the session.\n\n");
  Registry::OpRegistrar builder = registry.Op(name);
  builder.Group("lookup_ops").Stateful().Shape(TableShape);
  if (is_anonymous || is_reference) {
    // TensorFlow's C++ API has no class for this op, so none is generated.
    builder.HandWritten();
  } else {
    builder.Alias(absl::StripSuffix(name, "V2"));
  }
  if (is_dense) {
    builder.Input("empty_key: key_dtype").Input("deleted_key: key_dtype");
    absl::StrAppend(&doc, "empty_key: The key of free buckets.\n",
                    "deleted_key: A key of the same shape, for buckets that have become free.\n");
  }
  builder.Output(is_reference ? "table_handle: Ref(string)" : "table_handle: resource");
  absl::StrAppend(&doc, "table_handle: The handle.\n");
  if (!is_anonymous) {
    builder.Attr("container: string = ''")
        .Attr("shared_name: string = ''")
        .Attr("use_node_name_sharing: bool = false");
    absl::StrAppend(&doc,
                    "container: The container of the table; \"\" is the default one.\n"
                    "shared_name: The name of the table. Nodes with the same container and name ",
                    "share a\n  table. If it is \"\", the node has its own table.\n"
                    "use_node_name_sharing: If true and `shared_name` is \"\", the name is the ",
                    "name of the node.\n");
  }
  builder.Attr("key_dtype: type").Attr("value_dtype: type");
  absl::StrAppend(&doc, "key_dtype: The type of keys: int32, int64 or string.\n",
                  "value_dtype: The type of values.");
  if (has_shape) {
    builder.Attr("value_shape: shape = {}");
    absl::StrAppend(&doc, "\nvalue_shape: The shape of a value.");
  }
  if (is_dense) {
    builder.Attr("initial_num_buckets: int = 131072").Attr("max_load_factor: float = 0.8");
    absl::StrAppend(&doc,
                    "\ninitial_num_buckets: The initial number of buckets, which an export returns "
                    "as rows: a power of\n  2, at least 4.\nmax_load_factor: The largest fraction "
                    "of buckets in use. If the entries exceed it, the number of\n  buckets "
                    "doubles.");
  }
  builder.Doc(doc);
}

}  // namespace

void Register(Registry& registry) {
  for (const TableOp& op : kTableOps) {
    RegisterTable(registry, op);
    registry.Kernel(op.name, MakeKernel<TableKernel>)
        .Types("key_dtype", {DT_INT32, DT_INT64, DT_STRING})
        .Types("value_dtype", TableValueTypes());
  }
}

}  // namespace gradflow::hash_table
