// Assert, Print, PrintV2 and Timestamp.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"

namespace gradflow::print {
namespace {

// Longer texts would evade the memory limit of the run.
constexpr int64_t kMaxPrintedElements = 1'000'000;
constexpr int64_t kMaxPrintedBytes = 16'000'000;
constexpr int64_t kMaxErrorBytes = 4'000;

// Returns the first `summarize` elements of `tensor` in brackets; all elements if `summarize` is
// negative.
std::string Summary(const Tensor& tensor, int64_t summarize, int64_t max_bytes) {
  int64_t elements = summarize < 0 ? kMaxPrintedElements : summarize;
  if (tensor.dtype() == DT_STRING && static_cast<int64_t>(tensor.StringBytes()) > max_bytes) {
    elements = 0;
  }
  std::string text = tensor.SummarizeValue(std::min({elements, kMaxPrintedElements, max_bytes}));
  if (static_cast<int64_t>(text.size()) > max_bytes) {
    text.resize(max_bytes);
    text += "...";
  }
  return absl::StrCat("[", text, "]");
}

// Writes the text in a single call, so that texts of several threads do not mix. Escapes control
// characters if the stream is a terminal, because they could change the contents of the terminal.
void Write(const KernelContext& ctx, std::string text, std::FILE* stream) {
  if (!ctx.run().raw_prints && isatty(fileno(stream)) == 1) text = errors::PrintableLines(text);
  std::fwrite(text.data(), 1, text.size(), stream);
  std::fflush(stream);
}

// ---- Assert ----

absl::Status AssertShape(ShapeContext& c) { return c.CheckRank(0, 0); }

class AssertKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("summarize", &summarize_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(0, "condition"));
    if (ctx.input(0).scalar<bool>()()) return absl::OkStatus();
    std::string text = "assertion failed:";
    for (int i = 1; i < ctx.num_inputs(); ++i) {
      const int64_t left = kMaxErrorBytes - static_cast<int64_t>(text.size());
      if (left <= 0) break;
      absl::StrAppend(&text, " ", Summary(ctx.input(i), summarize_, left));
    }
    return absl::InvalidArgumentError(text);
  }

 private:
  int64_t summarize_ = 3;
};

// ---- Print ----

class PrintKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("message", &message_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("first_n", &first_n_));
    return construction.GetAttr("summarize", &summarize_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    ctx.set_output(0, ctx.input(0));
    if (first_n_ >= 0 && printed_.fetch_add(1, std::memory_order_relaxed) >= first_n_) {
      return absl::OkStatus();
    }
    std::string tensors;
    for (int i = 1; i < ctx.num_inputs(); ++i) {
      const int64_t left = kMaxPrintedBytes - static_cast<int64_t>(tensors.size());
      if (left <= 0 || ctx.ShouldStop()) break;
      absl::StrAppend(&tensors, Summary(ctx.input(i), summarize_, left));
    }
    std::string text = absl::StrCat(message_, tensors);
    text.push_back('\n');
    Write(ctx, std::move(text), stderr);
    return absl::OkStatus();
  }

 private:
  std::string message_;
  int64_t first_n_ = -1;
  int64_t summarize_ = 3;
  mutable std::atomic<int64_t> printed_{0};
};

// ---- PrintV2 ----

absl::Status PrintV2Shape(ShapeContext& c) { return c.CheckRank(0, 0); }

class PrintV2Kernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    std::string stream;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("output_stream", &stream));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("end", &end_));
    if (stream == "stdout") {
      stream_ = stdout;
    } else if (stream == "log(info)") {
      prefix_ = "INFO: ";
    } else if (stream == "log(warning)") {
      prefix_ = "WARNING: ";
    } else if (stream == "log(error)") {
      prefix_ = "ERROR: ";
    } else if (absl::StartsWith(stream, "file://")) {
      return errors::Unimplemented("output_stream is '", stream,
                                   "', but graphs do not write files by PrintV2");
    } else if (stream != "stderr") {
      return errors::InvalidArgument("output_stream must be stdout, stderr, log(info), ",
                                     "log(warning) or log(error), but is '", stream, "'");
    }
    return absl::OkStatus();
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(0, "input"));
    Write(ctx, absl::StrCat(prefix_, ctx.input(0).scalar<tstring>()(), end_), stream_);
    return absl::OkStatus();
  }

 private:
  std::FILE* stream_ = stderr;
  std::string prefix_;
  std::string end_;
};

// ---- Timestamp ----

absl::Status Timestamp(KernelContext& ctx) {
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {}, &output));
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  output->scalar<double>()() = std::chrono::duration<double>(now).count();
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("Assert")
      .Group("logging_ops")
      .Input("condition: bool")
      .Input("data: T")
      .Attr("T: list(type) >= 1")
      .Attr("summarize: int = 3")
      .Stateful()
      .Shape(AssertShape)
      .Doc(R"(Fails the run with an error that shows tensors, unless a condition is true.

condition: A scalar.
data: The tensors to show.
T: The types of the tensors.
summarize: The number of elements to show of each tensor; negative for all. The error has at most a
  few thousand characters.)");
  registry.Kernel("Assert", MakeKernel<AssertKernel>);

  registry.Op("Print")
      .Group("logging_ops")
      .Input("input: T")
      .Input("data: U")
      .Output("output: T")
      .Attr("T: type")
      .Attr("U: list(type) >= 0")
      .Attr("message: string = ''")
      .Attr("first_n: int = -1")
      .Attr("summarize: int = 3")
      .Stateful()
      .Shape(UnchangedShape)
      .Doc(R"(Prints tensors to the standard error stream, and returns its first argument.

On a terminal, control characters are escaped, except line breaks and tabs.

input: Any tensor.
data: The tensors to print.
output: The tensor `input`.
T: The type of `input`.
U: The types of the tensors to print.
message: A text before the tensors.
first_n: The number of runs of the node that print; negative for all.
summarize: The number of elements to print of each tensor; negative for all, up to a million. At
  most 16 million characters are printed.)");
  registry.Kernel("Print", MakeKernel<PrintKernel>);

  registry.Op("PrintV2")
      .Group("logging_ops")
      .Input("input: string")
      .Attr("output_stream: string = 'stderr'")
      .Attr("end: string = '\\n'")
      .Stateful()
      .Shape(PrintV2Shape)
      .Doc(R"doc(Prints a text.

On a terminal, control characters are escaped, except line breaks and tabs.

input: A scalar: the text.
output_stream: The stream: "stdout", "stderr", or "log(info)", "log(warning)" and "log(error)",
  which are the standard error stream with a prefix.
end: A text that is printed after `input`.)doc");
  registry.Kernel("PrintV2", MakeKernel<PrintV2Kernel>);

  registry.Op("Timestamp")
      .Group("logging_ops")
      .Output("ts: double")
      .Stateful()
      .Shape(ScalarShape)
      .Doc(R"(Returns the current time.

ts: A scalar: the seconds since 1970-01-01 00:00 UTC.)");
  registry.Kernel("Timestamp", MakeFunctionKernel<Timestamp>);
}

}  // namespace gradflow::print
