// ParseSequenceExample, ParseSequenceExampleV2 and ParseSingleSequenceExample. A tf.SequenceExample
// has a context, which is read like a tf.Example, and lists of features. A feature of a list is
// called a row here.
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/ops/common/first_error.h"
#include "gradflow/ops/common/indices.h"
#include "gradflow/ops/parsing/example_reader.h"
#include "gradflow/ops/parsing/feature_columns.h"
#include "gradflow/proto/node_def.pb.h"

namespace gradflow::parse_sequence_example {
namespace {

// ---- Lists of features ----

struct ListColumn {
  // Its shape is the shape of a row.
  FeatureColumn feature;
  // If true, an example without the list has no rows. Otherwise it is an error for dense columns.
  bool may_be_missing = false;
};

// The first output of each kind.
struct ListOutputs {
  int sparse = 0;
  int dense = 0;
  // -1 if there is no output with the numbers of rows.
  int lengths = -1;
  int ragged = 0;
};

// Reads the lists of features of one call.
class ListParser {
 public:
  // `names` may be null.
  ListParser(KernelContext* ctx, const Tensor& serialized, const Tensor* names,
             std::vector<ListColumn> columns, const ListOutputs& outputs)
      : ctx_(*ctx),
        serialized_(serialized.span<tstring>()),
        is_batch_(serialized.dims() == 1),
        names_(names != nullptr && names->NumElements() > 0 ? names->span<tstring>()
                                                            : absl::Span<const tstring>()),
        columns_(std::move(columns)),
        outputs_(outputs) {
    for (size_t c = 0; c < columns_.size(); ++c) {
      columns_of_key_[columns_[c].feature.key].push_back(static_cast<int>(c));
      ++counts_[static_cast<int>(columns_[c].feature.kind)];
    }
  }

  absl::Status Run() {
    if (columns_.empty()) return absl::OkStatus();
    GRADFLOW_RETURN_IF_ERROR(FindLists());
    int next[3] = {};
    for (size_t c = 0; c < columns_.size(); ++c) {
      const FeatureKind kind = columns_[c].feature.kind;
      const int k = next[static_cast<int>(kind)]++;
      GRADFLOW_RETURN_IF_ERROR(Sum(c));
      GRADFLOW_RETURN_IF_ERROR(kind == FeatureKind::kSparse  ? MakeSparse(c, k)
                               : kind == FeatureKind::kDense ? MakeDense(c, k)
                                                             : MakeRagged(c, k));
      if (ctx_.ShouldStop()) return StoppedError();
    }
    return absl::OkStatus();
  }

 private:
  // The list of a column in an example, and its numbers of rows and values.
  struct List {
    int64_t begin = 0;
    int64_t size = -1;  // -1 if the example lacks the list.
    int64_t rows = 0;
    int64_t values = 0;
    int64_t longest = 0;
  };
  // The sums over all examples, or the largest number.
  struct Totals {
    int64_t rows = 0;
    int64_t values = 0;
    double bytes = 0;
    int64_t most_rows = 0;
    int64_t longest = 0;
  };

  int64_t num_examples() const { return static_cast<int64_t>(serialized_.size()); }
  List& list(int64_t example, size_t column) {
    return reinterpret_cast<List*>(
        lists_.raw_data())[example * static_cast<int64_t>(columns_.size()) +
                           static_cast<int64_t>(column)];
  }
  absl::string_view Bytes(int64_t example, const List& l) const {
    if (l.size < 0) return {};
    return absl::string_view(serialized_[example]).substr(l.begin, l.size);
  }
  std::string Place(int64_t i, const FeatureColumn& column) const {
    return absl::StrCat("list '", errors::Printable(column.key), "' of ",
                        ExamplePlace(i, is_batch_, names_));
  }

  // Calls fn(values) for each row of a list: the bytes of its values, and their type.
  template <typename Fn>
  static bool ForEachRow(absl::string_view list, Fn&& fn) {
    return ForEachMessage(list, 1, [&](uint64_t, absl::string_view feature) {
      DataType dtype = DT_INVALID;
      absl::string_view values;
      return FindList(feature, &dtype, &values) && fn(dtype, values);
    });
  }

  absl::Status FindLists() {
    constexpr int64_t kListSize = sizeof(List) / sizeof(int64_t);
    GRADFLOW_ASSIGN_OR_RETURN(
        const TensorShape shape,
        TensorShape::Make({num_examples(), static_cast<int64_t>(columns_.size()), kListSize}));
    GRADFLOW_RETURN_IF_ERROR(ctx_.AllocateTemp(DT_INT64, shape, &lists_));
    GRADFLOW_RETURN_IF_ERROR(ctx_.AllocateTemp(DT_INT64, {num_examples()}, &first_row_));
    GRADFLOW_RETURN_IF_ERROR(ctx_.AllocateTemp(DT_INT64, {num_examples()}, &first_value_));
    double bytes = 0;
    for (const tstring& example : serialized_) bytes += static_cast<double>(example.size());
    block_ = BlockSizeForCost(100 + 2 * bytes / static_cast<double>(num_examples() + 1));
    FirstError error;
    ParallelFor(ctx_, num_examples(), block_, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (absl::Status status = FindListsOf(i); !status.ok()) {
          return error.Found(i, std::move(status));
        }
      }
    });
    return error.status();
  }

  absl::Status FindListsOf(int64_t i) {
    for (size_t c = 0; c < columns_.size(); ++c) list(i, c) = {};
    const absl::string_view example = serialized_[i];
    const bool valid = ForEachMessage(example, 2, [&](uint64_t number, absl::string_view lists) {
      if (number != 2) return true;
      return ForEachEntry(lists, [&](absl::string_view key, absl::string_view bytes) {
        const auto found = columns_of_key_.find(key);
        if (found == columns_of_key_.end()) return true;
        // An empty view need not point into the example.
        const int64_t begin = bytes.empty() ? 0 : bytes.data() - example.data();
        for (const int c : found->second) {
          list(i, c) = {begin, static_cast<int64_t>(bytes.size()), 0, 0, 0};
        }
        return true;
      });
    });
    if (!valid) {
      return errors::InvalidArgument(ExamplePlace(i, is_batch_, names_),
                                     " is not a serialized tf.SequenceExample");
    }
    for (size_t c = 0; c < columns_.size(); ++c) GRADFLOW_RETURN_IF_ERROR(CountRows(i, c));
    return absl::OkStatus();
  }

  absl::Status CountRows(int64_t i, size_t c) {
    const FeatureColumn& column = columns_[c].feature;
    List& l = list(i, c);
    const bool is_dense = column.kind == FeatureKind::kDense;
    if (l.size < 0 && is_dense && !columns_[c].may_be_missing) {
      return errors::InvalidArgument(Place(i, column), " is required, but missing");
    }
    absl::Status status;
    const bool valid = ForEachRow(Bytes(i, l), [&](DataType dtype, absl::string_view values) {
      const int64_t count = dtype == DT_INVALID ? 0 : CountValues(values, dtype);
      if (count < 0) return false;
      if (dtype != DT_INVALID && dtype != column.dtype) {
        status = errors::InvalidArgument("row ", l.rows, " of ", Place(i, column),
                                         " must have type ", DataTypeString(column.dtype),
                                         ", but has ", DataTypeString(dtype));
        return false;
      }
      if (is_dense && count != column.elements) {
        status = errors::InvalidArgument("row ", l.rows, " of ", Place(i, column), " has ", count,
                                         " values, expected ", column.elements, " for shape ",
                                         column.shape.DebugString());
        return false;
      }
      ++l.rows;
      l.values += count;
      l.longest = std::max(l.longest, count);
      return true;
    });
    GRADFLOW_RETURN_IF_ERROR(status);
    if (valid) return absl::OkStatus();
    return errors::InvalidArgument(Place(i, column), " is not a serialized list of features");
  }

  // Sets totals_, and the numbers of rows and values before each example.
  absl::Status Sum(size_t c) {
    totals_ = {};
    for (int64_t i = 0; i < num_examples(); ++i) {
      const List& l = list(i, c);
      first_row_.span<int64_t>()[i] = totals_.rows;
      first_value_.span<int64_t>()[i] = totals_.values;
      totals_.rows += l.rows;
      totals_.values += l.values;
      totals_.bytes += static_cast<double>(std::max<int64_t>(l.size, 0));
      totals_.most_rows = std::max(totals_.most_rows, l.rows);
      totals_.longest = std::max(totals_.longest, l.longest);
    }
    return absl::OkStatus();
  }

  // Calls fn(i, row, at, values, count) for each row of all examples: the number of the row in its
  // example, and the place of its first value among all values.
  template <typename Fn>
  void ForEachRowOf(size_t c, const Fn& fn) {
    ParallelFor(ctx_, num_examples(), block_, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t row = 0;
        int64_t at = first_value_.span<int64_t>()[i];
        ForEachRow(Bytes(i, list(i, c)), [&](DataType dtype, absl::string_view values) {
          const int64_t count = dtype == DT_INVALID ? 0 : CountValues(values, dtype);
          fn(i, row++, at, values, count);
          at += count;
          return true;
        });
      }
    });
  }

  absl::Status MakeSparse(size_t c, int k) {
    const int sparse = counts_[static_cast<int>(FeatureKind::kSparse)];
    const int64_t rank = is_batch_ ? 3 : 2;
    Tensor* indices = nullptr;
    Tensor* values = nullptr;
    Tensor* shape = nullptr;
    const int first = outputs_.sparse + k;
    GRADFLOW_RETURN_IF_ERROR(ctx_.AllocateOutput(first, {totals_.values, rank}, &indices));
    ctx_.ExpectStringBytes(totals_.bytes);
    GRADFLOW_RETURN_IF_ERROR(ctx_.AllocateOutput(first + sparse, {totals_.values}, &values));
    GRADFLOW_RETURN_IF_ERROR(ctx_.AllocateOutput(first + 2 * sparse, {rank}, &shape));
    if (is_batch_) shape->span<int64_t>()[0] = num_examples();
    shape->span<int64_t>()[rank - 2] = totals_.most_rows;
    shape->span<int64_t>()[rank - 1] = totals_.longest;
    const auto index = indices->span<int64_t>();
    ForEachRowOf(c, [&](int64_t i, int64_t row, int64_t at, absl::string_view list, int64_t count) {
      if (count > 0) WriteValues(list, values, at);
      for (int64_t v = 0; v < count; ++v) {
        if (is_batch_) index[(at + v) * rank] = i;
        index[(at + v + 1) * rank - 2] = row;
        index[(at + v + 1) * rank - 1] = v;
      }
    });
    return absl::OkStatus();
  }

  absl::Status MakeDense(size_t c, int k) {
    const FeatureColumn& column = columns_[c].feature;
    TensorShape shape;
    TensorShape row_shape;
    if (is_batch_) shape.AddDim(num_examples());
    shape.AddDim(totals_.most_rows);
    if (!column.shape.AsTensorShape(&row_shape)) {
      return errors::InvalidArgument("the shape of dense lists must be known, but is ",
                                     column.shape.DebugString());
    }
    GRADFLOW_RETURN_IF_ERROR(shape.AppendShapeWithStatus(row_shape));
    Tensor* output = nullptr;
    ctx_.ExpectStringBytes(totals_.bytes);
    GRADFLOW_RETURN_IF_ERROR(ctx_.AllocateOutput(outputs_.dense + k, shape, &output));
    const int64_t size = totals_.most_rows * column.elements;
    ForEachRowOf(c, [&](int64_t i, int64_t row, int64_t, absl::string_view list, int64_t count) {
      if (count > 0) WriteValues(list, output, i * size + row * column.elements);
    });
    DispatchType(FeatureTypes(), output->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const auto out = output->span<T>();
      for (int64_t i = 0; i < num_examples(); ++i) {
        std::fill(out.begin() + i * size + list(i, c).rows * column.elements,
                  out.begin() + (i + 1) * size, T());
      }
    });
    if (outputs_.lengths < 0) return absl::OkStatus();
    Tensor* lengths = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx_.AllocateOutput(
        outputs_.lengths + k, is_batch_ ? TensorShape({num_examples()}) : TensorShape(), &lengths));
    for (int64_t i = 0; i < num_examples(); ++i) lengths->span<int64_t>()[i] = list(i, c).rows;
    return absl::OkStatus();
  }

  absl::Status MakeRagged(size_t c, int k) {
    const int ragged = counts_[static_cast<int>(FeatureKind::kRagged)];
    const int first = outputs_.ragged + k;
    Tensor* values = nullptr;
    Tensor* outer = nullptr;
    Tensor* inner = nullptr;
    ctx_.ExpectStringBytes(totals_.bytes);
    GRADFLOW_RETURN_IF_ERROR(ctx_.AllocateOutput(first, {totals_.values}, &values));
    GRADFLOW_RETURN_IF_ERROR(
        ctx_.AllocateOutput(first + ragged, {is_batch_ ? num_examples() + 1 : 0}, &outer));
    GRADFLOW_RETURN_IF_ERROR(ctx_.AllocateOutput(first + 2 * ragged, {totals_.rows + 1}, &inner));
    if (outer->dtype() == DT_INT32 &&
        std::max(totals_.values, totals_.rows) > std::numeric_limits<int32_t>::max()) {
      return errors::InvalidArgument("the splits of list '",
                                     errors::Printable(columns_[c].feature.key), "' exceed int32");
    }
    for (int64_t i = 0; is_batch_ && i < num_examples(); ++i) {
      WriteIndex(outer, i, first_row_.span<int64_t>()[i]);
    }
    if (is_batch_) WriteIndex(outer, num_examples(), totals_.rows);
    WriteIndex(inner, totals_.rows, totals_.values);
    ForEachRowOf(c, [&](int64_t i, int64_t row, int64_t at, absl::string_view list, int64_t count) {
      WriteIndex(inner, first_row_.span<int64_t>()[i] + row, at);
      if (count > 0) WriteValues(list, values, at);
    });
    return absl::OkStatus();
  }

  KernelContext& ctx_;
  const absl::Span<const tstring> serialized_;
  const bool is_batch_;
  const absl::Span<const tstring> names_;
  const std::vector<ListColumn> columns_;
  const ListOutputs outputs_;
  absl::flat_hash_map<absl::string_view, absl::InlinedVector<int, 2>> columns_of_key_;
  // The number of columns of each kind.
  int counts_[3] = {};
  int64_t block_ = 1;
  // [examples, columns, sizeof(List)]
  Tensor lists_;
  // The numbers of rows and values before each example, for the current column.
  Tensor first_row_;
  Tensor first_value_;
  Totals totals_;
};

// ---- The kernel ----

constexpr FeatureKind kKinds[] = {FeatureKind::kSparse, FeatureKind::kDense, FeatureKind::kRagged};

// The attributes of the context, or of the lists.
struct Group {
  absl::Status Init(const NodeDef& node, const std::string& prefix, bool is_v2,
                    bool has_key_attrs) {
    const bool is_context = prefix == "context";
    GRADFLOW_RETURN_IF_ERROR(GetNodeAttr(node, absl::StrCat(prefix, "_sparse_types"), &types[0]));
    GRADFLOW_RETURN_IF_ERROR(
        GetNodeAttr(node, is_context ? "Tcontext_dense" : "feature_list_dense_types", &types[1]));
    GRADFLOW_RETURN_IF_ERROR(GetNodeAttr(node, absl::StrCat(prefix, "_dense_shapes"), &shapes));
    GRADFLOW_RETURN_IF_ERROR(Check(node, absl::StrCat("N", prefix, "_sparse"),
                                   absl::StrCat(prefix, "_sparse_types"),
                                   count(FeatureKind::kSparse)));
    if (!is_v2 || !is_context) {
      GRADFLOW_RETURN_IF_ERROR(Check(node, absl::StrCat("N", prefix, "_dense"),
                                     absl::StrCat(prefix, "_dense types"),
                                     count(FeatureKind::kDense)));
    }
    GRADFLOW_RETURN_IF_ERROR(CheckLength(absl::StrCat(prefix, "_dense_shapes"),
                                         static_cast<int>(shapes.size()),
                                         count(FeatureKind::kDense)));
    for (const PartialTensorShape& shape : shapes) {
      if (!shape.IsFullyDefined()) {
        return errors::InvalidArgument(prefix, "_dense_shapes must be known, but have ",
                                       shape.DebugString());
      }
    }
    if (is_v2) {
      DataTypeVector split_types;
      GRADFLOW_RETURN_IF_ERROR(
          GetNodeAttr(node, absl::StrCat(prefix, "_ragged_value_types"), &types[2]));
      GRADFLOW_RETURN_IF_ERROR(
          GetNodeAttr(node, absl::StrCat(prefix, "_ragged_split_types"), &split_types));
      GRADFLOW_RETURN_IF_ERROR(CheckLength(absl::StrCat(prefix, "_ragged_split_types"),
                                           static_cast<int>(split_types.size()),
                                           count(FeatureKind::kRagged)));
    }
    if (!has_key_attrs) return absl::OkStatus();
    for (const FeatureKind kind : {FeatureKind::kSparse, FeatureKind::kDense}) {
      const std::string name =
          absl::StrCat(prefix, kind == FeatureKind::kSparse ? "_sparse_keys" : "_dense_keys");
      std::vector<std::string>& list = keys[static_cast<int>(kind)];
      GRADFLOW_RETURN_IF_ERROR(GetNodeAttr(node, name, &list));
      GRADFLOW_RETURN_IF_ERROR(CheckLength(name, static_cast<int>(list.size()), count(kind)));
    }
    return absl::OkStatus();
  }

  int count(FeatureKind kind) const {
    return static_cast<int>(types[static_cast<int>(kind)].size());
  }

  // Indexed by the kind.
  DataTypeVector types[3];
  std::vector<std::string> keys[3];
  std::vector<PartialTensorShape> shapes;

 private:
  static absl::Status CheckLength(absl::string_view name, int size, int expected) {
    if (size == expected) return absl::OkStatus();
    return errors::InvalidArgument(name, " must have ", expected, " elements, but has ", size);
  }
  static absl::Status Check(const NodeDef& node, const std::string& attr, const std::string& name,
                            int size) {
    int64_t expected = 0;
    GRADFLOW_RETURN_IF_ERROR(GetNodeAttr(node, attr, &expected));
    if (size == expected) return absl::OkStatus();
    return errors::InvalidArgument(name, " must have ", expected, " elements, but has ", size);
  }
};

struct Attributes {
  absl::Status Init(const NodeDef& node) {
    is_v2 = node.op() == "ParseSequenceExampleV2";
    is_single = node.op() == "ParseSingleSequenceExample";
    const bool has_key_attrs = !is_v2 && !is_single;
    GRADFLOW_RETURN_IF_ERROR(context.Init(node, "context", is_v2, has_key_attrs));
    GRADFLOW_RETURN_IF_ERROR(lists.Init(node, "feature_list", is_v2, has_key_attrs));
    return has_key_attrs ? GetNodeAttr(node, "feature_list_dense_missing_assumed_empty", &missing)
                         : absl::OkStatus();
  }

  // The first input with a default value of a dense column of the context.
  int first_default() const {
    constexpr int kKeysOfV2 = 9;
    if (is_v2) return kKeysOfV2;
    if (!is_single) return 2;
    int first = 2;
    for (const FeatureKind kind : {FeatureKind::kSparse, FeatureKind::kDense}) {
      first += context.count(kind) + lists.count(kind);
    }
    return first;
  }
  // The first output of the lists.
  int first_list_output() const {
    return 3 * context.count(FeatureKind::kSparse) + context.count(FeatureKind::kDense) +
           2 * context.count(FeatureKind::kRagged);
  }
  ListOutputs list_outputs() const {
    ListOutputs outputs;
    outputs.sparse = first_list_output();
    outputs.dense = outputs.sparse + 3 * lists.count(FeatureKind::kSparse);
    const int after_dense = outputs.dense + lists.count(FeatureKind::kDense);
    if (!is_single) outputs.lengths = after_dense;
    outputs.ragged = after_dense + lists.count(FeatureKind::kDense);
    return outputs;
  }

  bool is_v2 = false;
  bool is_single = false;
  Group context;
  Group lists;
  // The keys of dense lists that may be missing.
  std::vector<std::string> missing;
};

class ParseKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return attributes_.Init(construction.def());
  }

  absl::Status Compute(KernelContext& ctx) const override {
    const Attributes& a = attributes_;
    const Tensor& serialized = ctx.input(0);
    if (a.is_single) {
      GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(0, "serialized"));
    } else if (serialized.dims() > 1) {
      GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(0, "serialized"));
    }
    for (int i = 0; i < a.first_default(); ++i) {
      const DataType expected = a.is_v2 && i == kMissingOfV2 ? DT_BOOL : DT_STRING;
      if (ctx.input_dtype(i) != expected) {
        return errors::InvalidArgument("input ", i, " must be of type ", DataTypeString(expected),
                                       ", but is ", DataTypeString(ctx.input_dtype(i)));
      }
    }
    const Tensor& names = ctx.input(a.is_single ? ctx.num_inputs() - 1 : 1);
    if (names.dtype() != DT_STRING ||
        (names.NumElements() > 0 && names.shape() != serialized.shape())) {
      return errors::InvalidArgument(
          "debug_name must be empty or strings of the shape of serialized, ",
          serialized.shape().DebugString(), ", but has type ", DataTypeString(names.dtype()),
          " and shape ", names.shape().DebugString());
    }
    std::vector<FeatureColumn> context;
    std::vector<ListColumn> lists;
    for (const FeatureKind kind : kKinds) {
      for (int k = 0; k < a.context.count(kind); ++k) {
        FeatureColumn column;
        GRADFLOW_RETURN_IF_ERROR(MakeColumn(ctx, a.context, kind, k, &column));
        if (kind == FeatureKind::kDense) {
          column.default_value = &ctx.input(a.first_default() + k);
          GRADFLOW_RETURN_IF_ERROR(CheckDefault("context_dense_defaults", column, k));
        }
        context.push_back(std::move(column));
      }
      for (int k = 0; k < a.lists.count(kind); ++k) {
        ListColumn column;
        GRADFLOW_RETURN_IF_ERROR(MakeColumn(ctx, a.lists, kind, k, &column.feature));
        if (kind == FeatureKind::kDense) {
          GRADFLOW_ASSIGN_OR_RETURN(column.may_be_missing,
                                    MayBeMissing(ctx, column.feature.key, k));
        }
        lists.push_back(std::move(column));
      }
    }
    GRADFLOW_RETURN_IF_ERROR(ParseFeatures(ctx, serialized, &names, std::move(context)));
    return ListParser(&ctx, serialized, &names, std::move(lists), a.list_outputs()).Run();
  }

 private:
  static constexpr int kMissingOfV2 = 8;

  absl::Status MakeColumn(const KernelContext& ctx, const Group& group, FeatureKind kind, int k,
                          FeatureColumn* column) const {
    column->kind = kind;
    column->dtype = group.types[static_cast<int>(kind)][k];
    GRADFLOW_ASSIGN_OR_RETURN(column->key, Key(ctx, group, kind, k));
    return kind == FeatureKind::kDense ? SetShape(group.shapes[k], column) : absl::OkStatus();
  }

  absl::StatusOr<tstring> Key(const KernelContext& ctx, const Group& group, FeatureKind kind,
                              int k) const {
    const Attributes& a = attributes_;
    const bool is_context = &group == &a.context;
    if (a.is_v2) {
      const int i = (is_context ? 2 : 5) + static_cast<int>(kind);
      GRADFLOW_RETURN_IF_ERROR(ctx.CheckShape(i, "keys", TensorShape({group.count(kind)})));
      return ctx.input(i).span<tstring>()[k];
    }
    if (!a.is_single) return tstring(group.keys[static_cast<int>(kind)][k]);
    int i = 2 + k;
    if (kind == FeatureKind::kDense) i += group.count(FeatureKind::kSparse);
    if (!is_context) {
      i += a.context.count(FeatureKind::kSparse) + a.context.count(FeatureKind::kDense);
    }
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(i, "keys"));
    return ctx.input(i).span<tstring>()[0];
  }

  // Returns true if dense list `k` may be missing.
  absl::StatusOr<bool> MayBeMissing(const KernelContext& ctx, const tstring& key, int k) const {
    const Attributes& a = attributes_;
    if (a.is_v2) {
      GRADFLOW_RETURN_IF_ERROR(ctx.CheckShape(kMissingOfV2,
                                              "feature_list_dense_missing_assumed_empty",
                                              TensorShape({a.lists.count(FeatureKind::kDense)})));
      return ctx.input(kMissingOfV2).span<bool>()[k];
    }
    if (a.is_single) {
      GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(1, "feature_list_dense_missing_assumed_empty"));
      const auto keys = ctx.input(1).span<tstring>();
      return std::find(keys.begin(), keys.end(), key) != keys.end();
    }
    return std::find(a.missing.begin(), a.missing.end(), key) != a.missing.end();
  }

  Attributes attributes_;
};

absl::Status ParseShape(ShapeContext& c) {
  Attributes a;
  GRADFLOW_RETURN_IF_ERROR(a.Init(c.def()));
  PartialTensorShape batch;
  GRADFLOW_RETURN_IF_ERROR(BatchShape(c, a.is_single, a.is_v2, &batch));
  GRADFLOW_RETURN_IF_ERROR(a.is_v2 ? CheckRankAtMost(c, 1, 1) : c.CheckRank(1, 1));
  int at = 0;
  const auto set_all = [&](int count, const PartialTensorShape& shape) {
    for (int k = 0; k < count; ++k) c.set_output(at++, shape);
  };
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t splits, NumSplits(batch));
  for (const Group* group : {&a.context, &a.lists}) {
    const bool is_context = group == &a.context;
    const int64_t rank = batch.unknown_rank() ? -1 : batch.dims() + (is_context ? 1 : 2);
    const int sparse = group->count(FeatureKind::kSparse);
    const int dense = group->count(FeatureKind::kDense);
    const int ragged = group->count(FeatureKind::kRagged);
    set_all(sparse, PartialTensorShape({-1, rank}));
    set_all(sparse, PartialTensorShape({-1}));
    set_all(sparse, PartialTensorShape({rank}));
    for (int k = 0; k < dense; ++k) {
      PartialTensorShape shape = batch;
      if (!batch.unknown_rank() && !is_context) shape.AddDim(-1);
      set_all(1, batch.unknown_rank() ? shape : shape.Concatenate(group->shapes[k]));
    }
    if (!is_context && !a.is_single) set_all(dense, batch);
    set_all(ragged, PartialTensorShape({-1}));
    set_all(ragged, PartialTensorShape({splits}));
    if (!is_context) set_all(ragged, PartialTensorShape({-1}));
  }
  return absl::OkStatus();
}

// ---- Definitions ----

constexpr char kTypes[] = ": list({float, int64, string}) >= 0 = []";
constexpr char kSplitTypes[] = ": list({int32, int64}) >= 0 = []";

// The documentation of keys and attributes that two ops have.
constexpr char kKeysDoc[] = R"(context_sparse_keys: The keys of sparse columns.
context_dense_keys: The keys of dense columns.
feature_list_sparse_keys: The keys of sparse lists.
feature_list_dense_keys: The keys of dense lists.
)";
constexpr char kCountsDoc[] = R"(Ncontext_sparse: The number of sparse columns.
Ncontext_dense: The number of dense columns.
Nfeature_list_sparse: The number of sparse lists.
Nfeature_list_dense: The number of dense lists.
)";
// The documentation of outputs and attributes that all ops have.
constexpr char kOutputsDoc[] =
    R"(context_sparse_indices: The message and the index of each value of sparse columns.
context_sparse_values: The values.
context_sparse_shapes: The number of messages and the largest number of values.
context_dense_values: The values of dense columns, a row for each message.
)";
constexpr char kContextRaggedDoc[] = R"(context_ragged_values: The values of ragged columns.
context_ragged_row_splits: The first value of each message, and the number of values.
)";
constexpr char kListsDoc[] =
    R"(feature_list_sparse_indices: The message, the row and the index of each value of sparse lists.
feature_list_sparse_values: The values.
feature_list_sparse_shapes: The number of messages, and the largest numbers of rows and values.
feature_list_dense_values: The rows of dense lists, filled up with zeros or empty strings.
)";
constexpr char kLengthsDoc[] =
    "feature_list_dense_lengths: The number of rows of each message in dense lists.\n";
constexpr char kListRaggedDoc[] = R"(feature_list_ragged_values: The values of ragged lists.
feature_list_ragged_outer_splits: The first row of each message, and the number of rows.
feature_list_ragged_inner_splits: The first value of each row, and the number of values.
)";
constexpr char kTypesDoc[] = R"(context_sparse_types: The types of sparse columns.
Tcontext_dense: The types of dense columns.
context_dense_shapes: The shapes of dense columns in a message.
feature_list_sparse_types: The types of sparse lists.
feature_list_dense_types: The types of dense lists.
feature_list_dense_shapes: The shapes of rows of dense lists.
)";

}  // namespace

void Register(Registry& registry) {
  const auto sparse_outputs = [](Registry::OpRegistrar& op, const std::string& prefix) {
    op.Output(absl::StrCat(prefix, "_sparse_indices: N", prefix, "_sparse * int64"))
        .Output(absl::StrCat(prefix, "_sparse_values: ", prefix, "_sparse_types"))
        .Output(absl::StrCat(prefix, "_sparse_shapes: N", prefix, "_sparse * int64"));
  };
  // The attributes of an op. Each kind has one form.
  const auto attributes = [](Registry::OpRegistrar& op, std::initializer_list<const char*> names) {
    for (const char* const name : names) {
      const char* const form = name[0] == 'N'                            ? ": int >= 0 = 0"
                               : absl::EndsWith(name, "shapes")          ? ": list(shape) >= 0 = []"
                               : absl::StrContains(name, "_split_types") ? kSplitTypes
                                                                         : kTypes;
      op.Attr(absl::StrCat(name, form));
    }
    op.HandWritten().Shape(ParseShape);
  };
  const auto first_attributes = [&](Registry::OpRegistrar& op) {
    attributes(op,
               {"Ncontext_sparse", "Ncontext_dense", "Nfeature_list_sparse", "Nfeature_list_dense",
                "context_sparse_types", "Tcontext_dense", "feature_list_dense_types",
                "context_dense_shapes", "feature_list_sparse_types", "feature_list_dense_shapes"});
  };
  {
    Registry::OpRegistrar op = registry.Op("ParseSequenceExample");
    op.Group("parsing_ops")
        .Input("serialized: string")
        .Input("debug_name: string")
        .Input("context_dense_defaults: Tcontext_dense");
    sparse_outputs(op, "context");
    op.Output("context_dense_values: Tcontext_dense");
    sparse_outputs(op, "feature_list");
    op.Output("feature_list_dense_values: feature_list_dense_types")
        .Output("feature_list_dense_lengths: Nfeature_list_dense * int64")
        .Attr("feature_list_dense_missing_assumed_empty: list(string) >= 0")
        .Attr("context_sparse_keys: list(string) >= 0")
        .Attr("context_dense_keys: list(string) >= 0")
        .Attr("feature_list_sparse_keys: list(string) >= 0")
        .Attr("feature_list_dense_keys: list(string) >= 0");
    first_attributes(op);
    op.Doc(absl::StrCat(
        R"(Reads the context and the lists of features of tf.SequenceExample messages.

serialized: A vector of messages.
debug_name: Names of the messages for errors, or an empty vector.
context_dense_defaults: The values of dense columns that a message lacks; empty for columns that
  each message must have.
)",
        kOutputsDoc, kListsDoc, kLengthsDoc,
        "feature_list_dense_missing_assumed_empty: The keys of dense lists that a message may "
        "lack.\n",
        kKeysDoc, kCountsDoc, kTypesDoc));
  }
  {
    Registry::OpRegistrar op = registry.Op("ParseSequenceExampleV2");
    op.Group("parsing_ops").Input("serialized: string").Input("debug_name: string");
    for (const char* const keys :
         {"context_sparse_keys", "context_dense_keys", "context_ragged_keys",
          "feature_list_sparse_keys", "feature_list_dense_keys", "feature_list_ragged_keys"}) {
      op.Input(absl::StrCat(keys, ": string"));
    }
    op.Input("feature_list_dense_missing_assumed_empty: bool")
        .Input("context_dense_defaults: Tcontext_dense");
    sparse_outputs(op, "context");
    op.Output("context_dense_values: Tcontext_dense")
        .Output("context_ragged_values: context_ragged_value_types")
        .Output("context_ragged_row_splits: context_ragged_split_types");
    sparse_outputs(op, "feature_list");
    op.Output("feature_list_dense_values: feature_list_dense_types")
        .Output("feature_list_dense_lengths: Nfeature_list_dense * int64")
        .Output("feature_list_ragged_values: feature_list_ragged_value_types")
        .Output("feature_list_ragged_outer_splits: feature_list_ragged_split_types")
        .Output("feature_list_ragged_inner_splits: feature_list_ragged_split_types");
    attributes(op,
               {"Ncontext_sparse", "Tcontext_dense", "context_sparse_types",
                "context_ragged_value_types", "context_ragged_split_types", "context_dense_shapes",
                "Nfeature_list_sparse", "Nfeature_list_dense", "feature_list_dense_types",
                "feature_list_sparse_types", "feature_list_ragged_value_types",
                "feature_list_ragged_split_types", "feature_list_dense_shapes"});
    op.Doc(absl::StrCat(
        R"(Reads the context and the lists of features of tf.SequenceExample messages.

serialized: A message or a vector of messages.
debug_name: Names of the messages for errors, or an empty vector.
context_sparse_keys: The keys of sparse columns.
context_dense_keys: The keys of dense columns.
context_ragged_keys: The keys of ragged columns.
feature_list_sparse_keys: The keys of sparse lists.
feature_list_dense_keys: The keys of dense lists.
feature_list_ragged_keys: The keys of ragged lists.
feature_list_dense_missing_assumed_empty: For each dense list, true if a message may lack it.
context_dense_defaults: The values of dense columns that a message lacks; empty for columns that
  each message must have.
)",
        kOutputsDoc, kContextRaggedDoc, kListsDoc, kLengthsDoc, kListRaggedDoc,
        R"(Ncontext_sparse: The number of sparse columns.
Nfeature_list_sparse: The number of sparse lists.
Nfeature_list_dense: The number of dense lists.
)",
        kTypesDoc,
        R"(context_ragged_value_types: The types of ragged columns.
context_ragged_split_types: The types of their splits.
feature_list_ragged_value_types: The types of ragged lists.
feature_list_ragged_split_types: The types of their splits.)"));
  }
  {
    Registry::OpRegistrar op = registry.Op("ParseSingleSequenceExample");
    op.Group("parsing_ops")
        .Input("serialized: string")
        .Input("feature_list_dense_missing_assumed_empty: string")
        .Input("context_sparse_keys: Ncontext_sparse * string")
        .Input("context_dense_keys: Ncontext_dense * string")
        .Input("feature_list_sparse_keys: Nfeature_list_sparse * string")
        .Input("feature_list_dense_keys: Nfeature_list_dense * string")
        .Input("context_dense_defaults: Tcontext_dense")
        .Input("debug_name: string");
    sparse_outputs(op, "context");
    op.Output("context_dense_values: Tcontext_dense");
    sparse_outputs(op, "feature_list");
    op.Output("feature_list_dense_values: feature_list_dense_types");
    first_attributes(op);
    op.Doc(absl::StrCat(
        R"(Reads the context and the lists of features of a tf.SequenceExample message.

serialized: The message, a scalar.
feature_list_dense_missing_assumed_empty: The keys of dense lists that the message may lack, a
  vector.
)",
        kKeysDoc,
        R"(context_dense_defaults: The values of dense columns that the message lacks; empty for columns that
  the message must have.
debug_name: The name of the message for errors, a scalar.
)",
        kOutputsDoc, kListsDoc, kCountsDoc, kTypesDoc));
  }
  for (const char* op :
       {"ParseSequenceExample", "ParseSequenceExampleV2", "ParseSingleSequenceExample"}) {
    registry.Kernel(op, MakeKernel<ParseKernel>);
  }
}

}  // namespace gradflow::parse_sequence_example
