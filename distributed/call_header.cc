#include "gradflow/distributed/call_header.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"

namespace gradflow::distributed {
namespace {

// FNV-1a over the dimensions.
uint64_t HashOf(const TensorShape& shape) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (int d = 0; d < shape.dims(); ++d) {
    auto dim = static_cast<uint64_t>(shape.dim_size(d));
    for (int byte = 0; byte < 8; ++byte, dim >>= 8) {
      hash = (hash ^ (dim & 0xff)) * 0x100000001b3u;
    }
  }
  return hash;
}

constexpr const char* kTypeNames[] = {"reduce",    "reduce-scatter", "gather",
                                      "broadcast", "all-to-all",     "barrier"};
constexpr const char* kMergeNames[] = {"Add", "Mul", "Min", "Max"};
constexpr const char* kFinalNames[] = {"Id", "Div"};

template <size_t N>
std::string NameOf(const char* const (&names)[N], uint8_t value) {
  return value < N ? names[value] : absl::StrCat("unknown (", value, ")");
}

std::string ShapeOf(const CallHeader& header) {
  std::string text = "[";
  const int listed = std::min<int>(header.rank_of_shape, CallHeader::kListedDims);
  for (int d = 0; d < listed; ++d) absl::StrAppend(&text, d == 0 ? "" : ",", header.dims[d]);
  absl::StrAppend(&text, header.rank_of_shape > listed ? ",..." : "", "]");
  return text;
}

std::string DTypeOf(const CallHeader& header) {
  return DataTypeString(static_cast<DataType>(header.dtype));
}

bool HasMerge(const CallHeader& header) {
  const auto type = static_cast<CollectiveType>(header.type);
  return type == CollectiveType::kReduce || type == CollectiveType::kReduceScatter;
}

}  // namespace

CallHeader HeaderOf(const CollectiveCall& call) {
  CallHeader header;
  // Every byte is defined, because headers are sent.
  std::memset(static_cast<void*>(&header), 0, sizeof(header));
  header.group_key = call.group_key;
  header.instance_key = call.instance_key;
  header.timeout_ms = call.timeout.count();
  header.subgroup = call.subgroup;
  header.group_size = call.group_size;
  header.group_rank = call.group_rank;
  header.type = static_cast<uint8_t>(call.type);
  header.merge = static_cast<uint8_t>(call.merge);
  header.final = static_cast<uint8_t>(call.final);
  header.is_sender = call.is_sender ? 1 : 0;
  call.op.copy(header.op, sizeof(header.op) - 1);
  if (call.type != CollectiveType::kBarrier) {
    const TensorShape& shape = call.shape();
    header.dtype = call.dtype();
    header.num_elements = shape.num_elements();
    header.shape_hash = HashOf(shape);
    header.rank_of_shape = shape.dims();
    for (int d = 0; d < std::min(shape.dims(), CallHeader::kListedDims); ++d) {
      header.dims[d] = shape.dim_size(d);
    }
  }
  return header;
}

absl::Status CheckHeader(const CallHeader& header) {
  if (header.type > static_cast<uint8_t>(CollectiveType::kBarrier) ||
      header.merge > static_cast<uint8_t>(CollectiveMerge::kMax) ||
      header.final > static_cast<uint8_t>(CollectiveFinal::kDiv) || header.is_sender > 1) {
    return errors::InvalidArgument("the kind of exchange is unknown: ", header.type, ", ",
                                   header.merge, ", ", header.final, ", ", header.is_sender);
  }
  if (header.group_size < 2 || header.group_rank < -1 || header.group_rank >= header.group_size) {
    return errors::InvalidArgument("the group has ", header.group_size, " ranks and the rank is ",
                                   header.group_rank);
  }
  // Larger numbers could overflow when they are multiplied by the size of an element.
  constexpr int64_t kMaxElements = int64_t{1} << 56;
  if (header.timeout_ms < 0 || header.timeout_ms > kMaxTimeout.count() || header.num_elements < 0 ||
      header.num_elements > kMaxElements || header.rank_of_shape < 0 ||
      header.op[sizeof(header.op) - 1] != 0) {
    return errors::InvalidArgument("the timeout, the shape or the name is not valid");
  }
  if (header.type != static_cast<uint8_t>(CollectiveType::kBarrier) &&
      !DataTypeIsPlainBytes(static_cast<DataType>(header.dtype))) {
    return errors::InvalidArgument("tensors of type ", header.dtype, " cannot be exchanged");
  }
  return absl::OkStatus();
}

absl::Status CompareHeaders(const CallHeader& first, int first_rank, const CallHeader& second,
                            int second_rank) {
  const auto differ = [&](absl::string_view what, const std::string& a, const std::string& b) {
    return errors::InvalidArgument("rank ", second_rank, " has ", what, " ", b, ", but rank ",
                                   first_rank, " has ", what, " ", a);
  };
  if (first.type != second.type) {
    return differ("operation", NameOf(kTypeNames, first.type), NameOf(kTypeNames, second.type));
  }
  if (HasMerge(first) && first.merge != second.merge) {
    return differ("merge_op", NameOf(kMergeNames, first.merge), NameOf(kMergeNames, second.merge));
  }
  if (HasMerge(first) && first.final != second.final) {
    return differ("final_op", NameOf(kFinalNames, first.final), NameOf(kFinalNames, second.final));
  }
  if (first.group_size != second.group_size) {
    return differ("group_size", absl::StrCat(first.group_size), absl::StrCat(second.group_size));
  }
  if (first.dtype != second.dtype) return differ("type", DTypeOf(first), DTypeOf(second));
  if (first.rank_of_shape != second.rank_of_shape || first.shape_hash != second.shape_hash ||
      first.num_elements != second.num_elements ||
      !std::equal(std::begin(first.dims), std::end(first.dims), std::begin(second.dims))) {
    return differ("shape", ShapeOf(first), ShapeOf(second));
  }
  return absl::OkStatus();
}

std::string DebugString(const CallHeader& header) {
  const std::string op(header.op, strnlen(header.op, sizeof(header.op)));
  std::string text = absl::StrCat(errors::Printable(op), ", group ", header.group_key);
  if (header.subgroup != 0) absl::StrAppend(&text, ", subgroup ", header.subgroup);
  absl::StrAppend(&text, ", instance ", header.instance_key);
  return text;
}

}  // namespace gradflow::distributed
