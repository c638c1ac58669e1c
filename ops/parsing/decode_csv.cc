// DecodeCSV.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/memory_reservation.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/ops/common/first_error.h"
#include "gradflow/ops/common/parse_number.h"

namespace gradflow::decode_csv {
namespace {

absl::Status CheckDefaultShape(const PartialTensorShape& shape, int i) {
  GRADFLOW_RETURN_IF_ERROR(CheckRankAtMost(absl::StrCat("record_defaults[", i, "]"), shape, 1));
  if (shape.dims() != 1 || shape.dim_size(0) <= 1) return absl::OkStatus();
  return errors::InvalidArgument(
      "Shape of a default must be a length-0 or length-1 vector, or a "
      "scalar, but record_defaults[",
      i, "] has shape ", shape.DebugString());
}

absl::Status CsvShape(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) {
    GRADFLOW_RETURN_IF_ERROR(CheckDefaultShape(c.input(i + 1), i));
    c.set_output(i, c.input(0));
  }
  return absl::OkStatus();
}

class CsvKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    std::string delimiter;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("field_delim", &delimiter));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("use_quote_delim", &quotes_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("na_value", &missing_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("select_cols", &selected_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("OUT_TYPE", &types_));
    if (delimiter.size() != 1) {
      return errors::InvalidArgument("field_delim must be one character, but is '",
                                     errors::Printable(delimiter), "'");
    }
    delimiter_ = delimiter[0];
    if (!selected_.empty() && selected_.size() != types_.size()) {
      return errors::InvalidArgument("select_cols must have ", types_.size(),
                                     " elements, one for each output, but has ", selected_.size());
    }
    for (size_t k = 0; k < selected_.size(); ++k) {
      if (selected_[k] < 0 || (k > 0 && selected_[k] <= selected_[k - 1])) {
        return errors::InvalidArgument("select_cols must increase and not be negative, but has ",
                                       selected_[k]);
      }
    }
    return absl::OkStatus();
  }

  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& records = ctx.input(0);
    if (records.dtype() != DT_STRING) {
      return errors::InvalidArgument("records must be of type string, but are ",
                                     DataTypeString(records.dtype()));
    }
    const auto lines = records.span<tstring>();
    const int columns = ctx.num_outputs();
    double bytes = 0;
    for (const tstring& line : lines) bytes += static_cast<double>(line.size());
    std::vector<const Tensor*> defaults;
    std::vector<Tensor*> outputs(columns);
    double default_bytes = 0;
    for (int k = 0; k < columns; ++k) {
      defaults.push_back(&ctx.input(k + 1));
      GRADFLOW_RETURN_IF_ERROR(CheckDefaultShape(defaults[k]->shape(), k));
      if (defaults[k]->dtype() != types_[k]) {
        return errors::InvalidArgument("record_defaults[", k, "] must be of type ",
                                       DataTypeString(types_[k]), ", but is ",
                                       DataTypeString(defaults[k]->dtype()));
      }
      if (types_[k] == DT_STRING) default_bytes += static_cast<double>(defaults[k]->StringBytes());
    }
    // The fields of all outputs together are not longer than the records.
    MemoryReservation memory(ctx.allocator().get());
    GRADFLOW_RETURN_IF_ERROR(
        memory.Set(bytes + default_bytes * static_cast<double>(lines.size()), "the fields"));
    for (int k = 0; k < columns; ++k) {
      ctx.ExpectStringBytes(0);
      GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(k, records.shape(), &outputs[k]));
    }
    FirstError error;
    const double average = lines.empty() ? 0 : bytes / static_cast<double>(lines.size());
    ParallelFor(ctx, static_cast<int64_t>(lines.size()),
                BlockSizeForCost(50.0 * columns + 2 * average), [&](int64_t begin, int64_t end) {
                  std::string field;
                  for (int64_t i = begin; i < end; ++i) {
                    absl::Status status = Decode(lines[i], i, defaults, outputs, &field);
                    if (!status.ok()) return error.Found(i, std::move(status));
                  }
                });
    GRADFLOW_RETURN_IF_ERROR(error.status());
    if (ctx.ShouldStop()) return StoppedError();
    for (int k = 0; k < columns; ++k) {
      if (types_[k] == DT_STRING) GRADFLOW_RETURN_IF_ERROR(outputs[k]->ChargeStrings());
    }
    return absl::OkStatus();
  }

 private:
  // Decodes record i.
  absl::Status Decode(absl::string_view record, int64_t i,
                      const std::vector<const Tensor*>& defaults,
                      const std::vector<Tensor*>& outputs, std::string* field) const {
    const auto fault = [i](const auto&... text) {
      return errors::InvalidArgument("record ", i, ": ", text...);
    };
    size_t at = 0;
    int64_t column = 0;
    // The number of fields that outputs get.
    size_t found = 0;
    const auto add = [&]() -> absl::Status {
      const int64_t number = column++;
      if (!selected_.empty() && (found >= selected_.size() || selected_[found] != number)) {
        return absl::OkStatus();
      }
      const size_t k = found++;
      if (k >= types_.size()) return absl::OkStatus();
      return SetField(*field, number, i, *defaults[k], outputs[k]);
    };
    while (at < record.size()) {
      // Line breaks before a field are skipped.
      if (record[at] == '\n' || record[at] == '\r') {
        ++at;
        continue;
      }
      field->clear();
      if (quotes_ && record[at] == '"') {
        ++at;
        while (true) {
          const size_t quote = record.find('"', at);
          if (quote == absl::string_view::npos) {
            return fault("field ", column, " has no closing quote");
          }
          field->append(record.data() + at, quote - at);
          at = quote + 1;
          if (at == record.size() || record[at] == delimiter_) break;
          if (record[at] != '"') {
            return fault("field ", column,
                         " has a quote that is neither doubled nor at the end of the field");
          }
          // A quote before a quote at the end of the record closes nothing.
          field->push_back('"');
          ++at;
        }
      } else {
        size_t end = at;
        for (; end < record.size() && record[end] != delimiter_; ++end) {
          const char c = record[end];
          if (c == '\n' || c == '\r' || (quotes_ && c == '"')) {
            return fault("field ", column, " has a ", c == '"' ? "quote" : "line break",
                         ", but is not in quotes");
          }
        }
        field->assign(record.data() + at, end - at);
        at = end;
      }
      GRADFLOW_RETURN_IF_ERROR(add());
      // The delimiter.
      ++at;
    }
    if (!record.empty() && record.back() == delimiter_) {
      field->clear();
      GRADFLOW_RETURN_IF_ERROR(add());
    }
    if (found != types_.size()) {
      return fault("expected ", types_.size(), " fields, but found ", found);
    }
    return absl::OkStatus();
  }

  absl::Status SetField(const std::string& field, int64_t number, int64_t i,
                        const Tensor& default_value, Tensor* output) const {
    const bool is_missing = field.empty() || field == missing_;
    if (is_missing && default_value.NumElements() == 0) {
      return errors::InvalidArgument("record ", i, ": field ", number,
                                     " has no value, which is required");
    }
    bool parsed = false;
    DispatchType(TypeList<float, double, int32_t, int64_t, tstring>(), output->dtype(),
                 [&](auto tag) {
                   using T = typename decltype(tag)::type;
                   T& to = output->span<T>()[i];
                   parsed = true;
                   if (is_missing) {
                     to = default_value.span<T>()[0];
                   } else if constexpr (std::is_same_v<T, tstring>) {
                     to = field;
                   } else {
                     parsed = ParseNumber(field, &to);
                   }
                 });
    if (parsed) return absl::OkStatus();
    return errors::InvalidArgument("record ", i, ": field ", number, " must be of type ",
                                   DataTypeString(output->dtype()), ", but is '",
                                   errors::Printable(field), "'");
  }

  char delimiter_ = ',';
  bool quotes_ = true;
  std::string missing_;
  std::vector<int64_t> selected_;
  DataTypeVector types_;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("DecodeCSV")
      .Group("parsing_ops")
      .Input("records: string")
      .Input("record_defaults: OUT_TYPE")
      .Output("output: OUT_TYPE")
      .Attr("OUT_TYPE: list({float, double, int32, int64, string}) >= 1")
      .Attr("field_delim: string = ','")
      .Attr("use_quote_delim: bool = true")
      .Attr("na_value: string = ''")
      .Attr("select_cols: list(int) = []")
      .Shape(CsvShape)
      .Doc(R"(Reads lines of comma-separated values.

A field in quotes may have delimiters and line breaks, and quotes that are doubled.

records: The lines.
record_defaults: For each output, the value of a field that is empty, or an empty vector if it is an
  error.
output: A tensor of the shape of `records` for each column.
OUT_TYPE: The types of the columns.
field_delim: The character between fields.
use_quote_delim: If false, a quote is like other characters.
na_value: A text that stands for an empty field.
select_cols: The columns to read, in their order; all if empty.)");
  registry.Kernel("DecodeCSV", MakeKernel<CsvKernel>);
}

}  // namespace gradflow::decode_csv
