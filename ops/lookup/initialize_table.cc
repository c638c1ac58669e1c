// InitializeTable and InitializeTableFromTextFile.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/memory_reservation.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/ops/common/parse_number.h"
#include "gradflow/ops/common/text_file.h"
#include "gradflow/ops/lookup/table.h"
#include "gradflow/ops/lookup/table_op.h"

namespace gradflow::initialize_table {
namespace {

absl::Status InitializeShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckTableHandle(c));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 1));
  return c.CheckSameShape(1, 2);
}

absl::Status Initialize(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<LookupTable> table, TableOf(ctx, 0));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(1, "keys"));
  if (ctx.input(1).NumElements() == 0) {
    return errors::InvalidArgument("keys must not be empty");
  }
  return table->Initialize(ctx.input(1), ctx.input(2));
}

absl::Status FileShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckTableHandle(c));
  return c.CheckRank(1, 0);
}

// Reads entries from the lines of a text file.
class FileKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("key_index", &key_index_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("value_index", &value_index_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("vocab_size", &vocab_size_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("offset", &offset_));
    std::string delimiter;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("delimiter", &delimiter));
    if (delimiter.size() != 1) {
      return errors::InvalidArgument("delimiter must be one character, but is '",
                                     errors::Printable(delimiter), "'");
    }
    delimiter_ = delimiter[0];
    return absl::OkStatus();
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<LookupTable> table, TableOf(ctx, 0));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(1, "filename"));
    if (ctx.input(1).dtype() != DT_STRING) {
      return errors::InvalidArgument("filename must be a string, but is ",
                                     DataTypeString(ctx.input(1).dtype()));
    }
    const tstring& path = ctx.input(1).span<tstring>()[0];
    if (path.empty() || path.find('\0') != std::string::npos) {
      return errors::InvalidArgument("filename must be a path, but is '", errors::Printable(path),
                                     "'");
    }
    GRADFLOW_RETURN_IF_ERROR(CheckLineNumber("key", key_index_, table->key_dtype()));
    GRADFLOW_RETURN_IF_ERROR(CheckLineNumber("value", value_index_, table->value_dtype()));
    const absl::Status status = Read(ctx, path, table.get());
    if (status.ok()) return status;
    return errors::Prefix(absl::StrCat("'", errors::Printable(path), "': "), status);
  }

 private:
  static constexpr int64_t kWholeLine = -2;
  static constexpr int64_t kLineNumber = -1;

  static absl::Status CheckLineNumber(absl::string_view name, int64_t index, DataType dtype) {
    if (index != kLineNumber || dtype == DT_INT64) return absl::OkStatus();
    return errors::InvalidArgument(name, "_index is -1, the number of a line, so the table's ",
                                   name, "s must be int64, but are ", DataTypeString(dtype));
  }

  absl::Status Read(KernelContext& ctx, const std::string& path, LookupTable* table) const {
    MemoryReservation reservation(ctx.allocator().get());
    std::string text;
    GRADFLOW_RETURN_IF_ERROR(ReadTextFile(ctx, path, &reservation, &text));
    if (text.empty()) return absl::OutOfRangeError("the file is empty");
    const size_t size = text.size();
    int64_t lines = std::count(text.begin(), text.end(), '\n') + (text.back() != '\n' ? 1 : 0);
    if (vocab_size_ == 0) return absl::OutOfRangeError("vocab_size is 0, expected some entries");
    if (vocab_size_ > 0) {
      if (lines < vocab_size_) {
        return errors::InvalidArgument("vocab_size is ", vocab_size_, ", but the file has ", lines,
                                       lines == 1 ? " line" : " lines");
      }
      lines = vocab_size_;
    }
    Tensor keys;
    Tensor values;
    GRADFLOW_RETURN_IF_ERROR(Allocate(ctx, table->key_dtype(), key_index_, lines, size, &keys));
    GRADFLOW_RETURN_IF_ERROR(
        Allocate(ctx, table->value_dtype(), value_index_, lines, size, &values));
    absl::string_view rest = text;
    for (int64_t i = 0; i < lines; ++i) {
      constexpr int64_t kBetweenChecks = 4096;
      if (i % kBetweenChecks == 0 && ctx.ShouldStop()) return StoppedError();
      const size_t end = rest.find('\n');
      absl::string_view line = rest.substr(0, end);
      rest.remove_prefix(end == absl::string_view::npos ? rest.size() : end + 1);
      // The end of a line may be "\r\n".
      if (end != absl::string_view::npos && !line.empty() && line.back() == '\r') {
        line.remove_suffix(1);
      }
      if (line.empty()) return errors::InvalidArgument("line ", i, " is empty");
      GRADFLOW_RETURN_IF_ERROR(Parse(line, i, key_index_, &keys));
      GRADFLOW_RETURN_IF_ERROR(Parse(line, i, value_index_, &values));
    }
    return table->Initialize(keys, values);
  }

  static absl::Status Allocate(KernelContext& ctx, DataType dtype, int64_t index, int64_t lines,
                               size_t file_bytes, Tensor* tensor) {
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(dtype, {lines}, tensor));
    return dtype == DT_STRING && index != kLineNumber ? tensor->ChargeStrings(file_bytes)
                                                      : absl::OkStatus();
  }

  // Sets element `i` to the part of the line that `index` selects.
  absl::Status Parse(absl::string_view line, int64_t i, int64_t index, Tensor* to) const {
    if (index == kLineNumber) {
      to->span<int64_t>()[i] =
          static_cast<int64_t>(static_cast<uint64_t>(i) + static_cast<uint64_t>(offset_));
      return absl::OkStatus();
    }
    absl::string_view field = line;
    if (index != kWholeLine) {
      for (int64_t column = 0; column < index; ++column) {
        const size_t end = field.find(delimiter_);
        if (end == absl::string_view::npos) {
          return errors::InvalidArgument("line ", i, " must have at least ", index + 1,
                                         " columns, but has ", column + 1);
        }
        field.remove_prefix(end + 1);
      }
      field = field.substr(0, field.find(delimiter_));
    }
    if (to->dtype() == DT_STRING) {
      to->span<tstring>()[i] = tstring(field);
      return absl::OkStatus();
    }
    bool parsed = false;
    if (!DispatchType(TypeList<int32_t, int64_t, float, double>(), to->dtype(), [&](auto tag) {
          parsed = ParseNumber(field, &to->span<typename decltype(tag)::type>()[i]);
        })) {
      return errors::InvalidArgument("values of type ", DataTypeString(to->dtype()),
                                     " cannot be read from a file");
    }
    if (parsed) return absl::OkStatus();
    return errors::InvalidArgument("'", errors::Printable(field), "' in line ", i,
                                   " must be a number of type ", DataTypeString(to->dtype()));
  }

  int64_t key_index_ = 0;
  int64_t value_index_ = 0;
  int64_t vocab_size_ = -1;
  int64_t offset_ = 0;
  char delimiter_ = '\t';
};

}  // namespace

void Register(Registry& registry) {
  for (const bool v2 : {false, true}) {
    TableOp(registry, "InitializeTable", v2)
        .Shape(InitializeShape)
        .Input("keys: Tkey")
        .Input("values: Tval")
        .Attr("Tkey: type")
        .Attr("Tval: type")
        .Doc(R"(Sets the entries of a hash table.

Has no effect if the table has this number of entries already.

table_handle: The table, which must not have another number of entries.
keys: A vector of keys. A key that occurs several times must have one value.
values: A value for each key.
Tkey: The type of the table's keys.
Tval: The type of the table's values.)");
    registry.Kernel(absl::StrCat("InitializeTable", v2 ? "V2" : ""),
                    MakeFunctionKernel<Initialize>);
    TableOp(registry, "InitializeTableFromTextFile", v2)
        .Shape(FileShape)
        .Input("filename: string")
        .Attr("key_index: int >= -2")
        .Attr("value_index: int >= -2")
        .Attr("vocab_size: int >= -1 = -1")
        .Attr("delimiter: string = '\\t'")
        .Attr("offset: int = 0")
        .Doc(R"(Sets the entries of a hash table to the lines of a text file.

table_handle: The table, which must not have another number of entries.
filename: The path of the file, a scalar. No line may be empty.
key_index: The key of a line: the column with this index, the whole line (-2) or the number of the
  line (-1).
value_index: The value of a line, in the same way.
vocab_size: The number of lines to read; -1 for all.
delimiter: The character between columns.
offset: The number of the first line.)");
    registry.Kernel(absl::StrCat("InitializeTableFromTextFile", v2 ? "V2" : ""),
                    MakeKernel<FileKernel>);
  }
}

}  // namespace gradflow::initialize_table
