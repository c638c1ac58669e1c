// StringToHashBucket, StringToHashBucketFast and StringToHashBucketStrong.
#include <farmhash.h>
#include <highwayhash/sip_hash.h>

#include <cstdint>
#include <vector>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/hash64.h"
#include "gradflow/ops/string/string_loop.h"
#include "gradflow/proto/node_def.pb.h"

namespace gradflow::string_hash {
namespace {

class HashKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("num_buckets", &num_buckets_));
    const std::string& op = construction.def().op();
    kind_ = op == "StringToHashBucket"       ? Kind::kLegacy
            : op == "StringToHashBucketFast" ? Kind::kFast
                                             : Kind::kStrong;
    if (kind_ != Kind::kStrong) return absl::OkStatus();
    std::vector<int64_t> key;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("key", &key));
    if (key.size() != 2) {
      return errors::InvalidArgument("key must have 2 elements, but has ", key.size());
    }
    for (int i = 0; i < 2; ++i) key_[i] = static_cast<highwayhash::HH_U64>(key[i]);
    return absl::OkStatus();
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckStrings(ctx, 0, "input"));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, ctx.input(0).shape(), &output));
    const auto strings = ctx.input(0).span<tstring>();
    const auto buckets = output->span<int64_t>();
    const auto num_buckets = static_cast<uint64_t>(num_buckets_);
    ParallelFor(ctx, static_cast<int64_t>(strings.size()),
                BlockSizeForCost(StringNanoseconds(ctx.input(0), 1)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    buckets[i] = static_cast<int64_t>(Hash(strings[i]) % num_buckets);
                  }
                });
    return absl::OkStatus();
  }

 private:
  enum class Kind { kLegacy, kFast, kStrong };

  uint64_t Hash(const tstring& string) const {
    switch (kind_) {
      case Kind::kLegacy:
        return Hash64(string);
      case Kind::kFast:
        return ::util::Fingerprint64(string.data(), string.size());
      case Kind::kStrong:
        return highwayhash::SipHash(key_, string.data(), string.size());
    }
    return 0;
  }

  Kind kind_ = Kind::kLegacy;
  int64_t num_buckets_ = 1;
  highwayhash::HH_U64 key_[2] = {};
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("StringToHashBucket")
      .Group("string_ops")
      .Input("string_tensor: string")
      .Output("output: int64")
      .Attr("num_buckets: int >= 1")
      .Shape(UnchangedShape)
      .Doc(R"(Maps strings to numbers by an old hash function.

Use `StringToHashBucketFast` or `StringToHashBucketStrong` in new graphs.

string_tensor: Strings.
output: A number in [0, num_buckets) for each string.
num_buckets: The number of different results.)");
  registry.Op("StringToHashBucketFast")
      .Group("string_ops")
      .Input("input: string")
      .Output("output: int64")
      .Attr("num_buckets: int >= 1")
      .Shape(UnchangedShape)
      .Doc(R"(Maps strings to numbers by FarmHash.

It is easy to find strings with the same result. The results are the same on all processors.

input: Strings.
output: A number in [0, num_buckets) for each string.
num_buckets: The number of different results.)");
  registry.Op("StringToHashBucketStrong")
      .Group("string_ops")
      .Input("input: string")
      .Output("output: int64")
      .Attr("num_buckets: int >= 1")
      .Attr("key: list(int)")
      .Shape(UnchangedShape)
      .Doc(R"(Maps strings to numbers by SipHash.

If the key is secret, nobody can choose strings with the same result.

input: Strings.
output: A number in [0, num_buckets) for each string.
num_buckets: The number of different results.
key: Two numbers, the key of the hash function.)");
  for (const char* op :
       {"StringToHashBucket", "StringToHashBucketFast", "StringToHashBucketStrong"}) {
    registry.Kernel(op, MakeKernel<HashKernel>);
  }
}

}  // namespace gradflow::string_hash
