// ScalarSummary, HistogramSummary, TensorSummaryV2 and MergeSummary: serialized Summary messages.
// ImageSummary is in ops/image/, because it needs the image codecs.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gradflow/core/memory_reservation.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/logging/set_summary.h"
#include "gradflow/proto/summary.pb.h"

namespace gradflow::summary {
namespace {

DataTypeVector SummaryTypes() {
  return {DT_FLOAT, DT_DOUBLE,   DT_INT32,  DT_UINT8, DT_INT16,  DT_INT8,
          DT_INT64, DT_BFLOAT16, DT_UINT16, DT_HALF,  DT_UINT32, DT_UINT64};
}

// Converts `count` elements of a tensor, starting at `begin`, to doubles. REQUIRES: begin + count
// <= number of elements
template <typename T>
void Convert(const Tensor& tensor, int64_t begin, int64_t count, double* to) {
  const T* const from = static_cast<const T*>(tensor.raw_data()) + begin;
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) {
      to[i] = static_cast<float>(from[i]);
    } else {
      to[i] = static_cast<double>(from[i]);
    }
  }
}
void ToDouble(const Tensor& tensor, int64_t begin, int64_t count, double* to) {
  switch (tensor.dtype()) {
    case DT_FLOAT:
      return Convert<float>(tensor, begin, count, to);
    case DT_DOUBLE:
      return Convert<double>(tensor, begin, count, to);
    case DT_INT32:
      return Convert<int32_t>(tensor, begin, count, to);
    case DT_UINT8:
      return Convert<uint8_t>(tensor, begin, count, to);
    case DT_INT16:
      return Convert<int16_t>(tensor, begin, count, to);
    case DT_INT8:
      return Convert<int8_t>(tensor, begin, count, to);
    case DT_INT64:
      return Convert<int64_t>(tensor, begin, count, to);
    case DT_BFLOAT16:
      return Convert<bfloat16>(tensor, begin, count, to);
    case DT_UINT16:
      return Convert<uint16_t>(tensor, begin, count, to);
    case DT_HALF:
      return Convert<half>(tensor, begin, count, to);
    case DT_UINT32:
      return Convert<uint32_t>(tensor, begin, count, to);
    default:
      return Convert<uint64_t>(tensor, begin, count, to);
  }
}

// ---- ScalarSummary ----

absl::Status ComputeScalar(KernelContext& ctx) {
  const Tensor& tags = ctx.input(0);
  const Tensor& values = ctx.input(1);
  if (tags.shape() != values.shape()) {
    return errors::InvalidArgument(
        "tags and values are not the same shape: ", tags.shape().DebugString(),
        " != ", values.shape().DebugString());
  }
  const int64_t n = values.NumElements();
  // A value is a message of about 100 bytes.
  const double bytes = 128.0 * static_cast<double>(n) + static_cast<double>(tags.StringBytes());
  return SetSummary(ctx, bytes, [&](Summary* message) {
    for (int64_t i = 0; i < n && !ctx.ShouldStop(); ++i) {
      double value = 0;
      ToDouble(values, i, 1, &value);
      Summary::Value* const added = message->add_value();
      added->set_tag(std::string(tags.flat<tstring>()(i)));
      added->set_simple_value(static_cast<float>(value));
    }
    return absl::OkStatus();
  });
}

// ---- HistogramSummary ----

// The limits of the buckets: 0; 1e-12 times powers of 1.1, below 1e20; and the largest double. The
// limits except 0 have both signs.
std::vector<double> MakeLimits() {
  std::vector<double> positive;
  for (double limit = 1e-12; limit < 1e20; limit *= 1.1) positive.push_back(limit);
  positive.push_back(std::numeric_limits<double>::max());
  std::vector<double> limits;
  for (auto limit = positive.rbegin(); limit != positive.rend(); ++limit) limits.push_back(-*limit);
  limits.push_back(0);
  limits.insert(limits.end(), positive.begin(), positive.end());
  return limits;
}

absl::Status ComputeHistogram(KernelContext& ctx) {
  if (ctx.input(0).dims() != 0) {
    return errors::InvalidArgument("tags must be scalar, but tag has shape ",
                                   ctx.input(0).shape().DebugString());
  }
  const Tensor& values = ctx.input(1);
  static const std::vector<double>& limits = *new std::vector<double>(MakeLimits());
  HistogramProto histogram;
  std::vector<double> counts(limits.size());
  double min = limits.back();
  double max = -limits.back();
  double sum = 0;
  double sum_squares = 0;
  constexpr int64_t kBlock = 1024;
  double block[kBlock];
  // Sequentially, because sums depend on the order.
  for (int64_t begin = 0; begin < values.NumElements() && !ctx.ShouldStop(); begin += kBlock) {
    const int64_t count = std::min(kBlock, values.NumElements() - begin);
    ToDouble(values, begin, count, block);
    for (int64_t i = 0; i < count; ++i) {
      const double value = block[i];
      if (!std::isfinite(value)) {
        return errors::InvalidArgument(std::isnan(value) ? "Nan" : "Infinity",
                                       " in summary histogram, at element ", begin + i);
      }
      const auto above = std::upper_bound(limits.begin(), limits.end(), value);
      // The largest double has no limit above it.
      ++counts[std::min<ptrdiff_t>(above - limits.begin(), counts.size() - 1)];
      min = std::min(min, value);
      max = std::max(max, value);
      sum += value;
      sum_squares += value * value;
    }
  }
  histogram.set_min(min);
  histogram.set_max(max);
  histogram.set_num(static_cast<double>(values.NumElements()));
  histogram.set_sum(sum);
  histogram.set_sum_squares(sum_squares);
  // Keeps only the last of adjacent empty buckets.
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0 && i + 1 < counts.size() && counts[i + 1] == 0) continue;
    histogram.add_bucket_limit(limits[i]);
    histogram.add_bucket(counts[i]);
  }
  const tstring& tag = ctx.input(0).scalar<tstring>()();
  const double bytes = 32.0 * histogram.bucket_size() + static_cast<double>(tag.size()) + 256;
  return SetSummary(ctx, bytes, [&](Summary* message) {
    Summary::Value* const added = message->add_value();
    added->set_tag(std::string(tag));
    *added->mutable_histo() = std::move(histogram);
    return absl::OkStatus();
  });
}

// ---- TensorSummaryV2 ----

absl::Status ComputeTensor(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(0, "tag"));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(2, "serialized_summary_metadata"));
  const tstring& tag = ctx.input(0).scalar<tstring>()();
  const Tensor& tensor = ctx.input(1);
  const tstring& metadata = ctx.input(2).scalar<tstring>()();
  if (!DataTypeIsPlainBytes(tensor.dtype()) && tensor.dtype() != DT_STRING) {
    return errors::Unimplemented("a summary cannot hold elements of type ",
                                 DataTypeString(tensor.dtype()));
  }
  // Each string is a separate message with an object that holds it.
  const double bytes =
      static_cast<double>(tensor.TotalBytes()) +
      (tensor.dtype() == DT_STRING ? 64.0 : 0.0) * static_cast<double>(tensor.NumElements()) +
      16.0 * static_cast<double>(metadata.size() + tag.size()) + 1024;
  return SetSummary(ctx, bytes, [&](Summary* message) {
    Summary::Value* const added = message->add_value();
    added->set_tag(std::string(tag));
    if (tensor.dtype() == DT_STRING) {
      tensor.AsProtoField(added->mutable_tensor());
    } else {
      tensor.AsProtoTensorContent(added->mutable_tensor());
    }
    // A parse error keeps the fields that were parsed before it, as in TensorFlow.
    (void)added->mutable_metadata()->ParseFromArray(metadata.data(),
                                                    static_cast<int>(metadata.size()));
    return absl::OkStatus();
  });
}

// ---- MergeSummary ----

absl::Status ComputeMerge(KernelContext& ctx) {
  // Parsed messages are larger than their encoding: a value with an encoding of two bytes takes
  // about 100 bytes.
  double bytes = 1024;
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    bytes += 64.0 * static_cast<double>(ctx.input(i).StringBytes());
  }
  if (bytes / 64 > kMaxMessageBytes) {
    return errors::InvalidArgument("a summary has less than 2 GiB, but the inputs have ",
                                   bytes / 64, " bytes");
  }
  MemoryReservation reservation(ctx.allocator().get());
  GRADFLOW_RETURN_IF_ERROR(reservation.Set(bytes, "summaries"));
  return SetSummary(ctx, 1024, [&](Summary* message) -> absl::Status {
    std::set<std::string> tags;
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      const auto texts = ctx.input(i).flat<tstring>();
      for (int64_t k = 0; k < ctx.input(i).NumElements() && !ctx.ShouldStop(); ++k) {
        Summary part;
        if (!part.ParseFromArray(texts(k).data(), static_cast<int>(texts(k).size()))) {
          return errors::InvalidArgument("could not parse one of the summary inputs: element ", k,
                                         " of input ", i);
        }
        for (Summary::Value& value : *part.mutable_value()) {
          if (!value.tag().empty() && !tags.insert(value.tag()).second) {
            return errors::InvalidArgument("Duplicate tag '", errors::Printable(value.tag()),
                                           "' found in summary inputs");
          }
          *message->add_value() = std::move(value);
        }
      }
    }
    return absl::OkStatus();
  });
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("ScalarSummary")
      .Group("logging_ops")
      .Input("tags: string")
      .Input("values: T")
      .Output("summary: string")
      .Attr(
          "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, "
          "uint64}")
      .Shape(ScalarShape)
      .Doc(R"(Returns a serialized Summary of numbers with tags.

tags: The tags of the summary.
values: The numbers, one for each tag.
summary: A scalar.
T: The type of the numbers.)");
  registry.Kernel("ScalarSummary", MakeFunctionKernel<ComputeScalar>).Types("T", SummaryTypes());

  registry.Op("HistogramSummary")
      .Group("logging_ops")
      .Input("tag: string")
      .Input("values: T")
      .Output("summary: string")
      .Attr(
          "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, "
          "uint64} = DT_FLOAT")
      .Shape(ScalarShape)
      .Doc(R"(Returns a serialized Summary of a histogram.

Counts the values in ranges whose ends grow by a factor of 1.1, from 1e-12 to 1e20, and in the same
ranges of negative values. A value that is not finite is an error.

tag: A scalar: the tag of the histogram.
values: Any tensor.
summary: A scalar.
T: The type of the values.)");
  registry.Kernel("HistogramSummary", MakeFunctionKernel<ComputeHistogram>)
      .Types("T", SummaryTypes());

  registry.Op("TensorSummaryV2")
      .Group("logging_ops")
      .Input("tag: string")
      .Input("tensor: T")
      .Input("serialized_summary_metadata: string")
      .Output("summary: string")
      .Attr("T: type")
      .Shape(ScalarShape)
      .Doc(R"(Returns a serialized Summary of a tensor.

tag: A scalar: the tag of the tensor.
tensor: Any tensor.
serialized_summary_metadata: A scalar: a serialized SummaryMetadata, which says which plugins of
  TensorBoard show the tensor.
summary: A scalar.
T: The type of the tensor.)");
  registry.Kernel("TensorSummaryV2", MakeFunctionKernel<ComputeTensor>);

  registry.Op("MergeSummary")
      .Group("logging_ops")
      .Input("inputs: N * string")
      .Output("summary: string")
      .Attr("N: int >= 1")
      .Shape(ScalarShape)
      .Doc(R"(Merges serialized Summary messages into one.

Two values with the same tag are an error.

inputs: Serialized summaries, of any shape.
summary: A scalar.
N: The number of inputs.)");
  registry.Kernel("MergeSummary", MakeFunctionKernel<ComputeMerge>);
}

}  // namespace gradflow::summary
