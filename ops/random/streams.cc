#include "gradflow/ops/random/streams.h"

#include <random>

#include "gradflow/core/status.h"

namespace gradflow {
namespace {

// The values of TensorFlow's `alg` inputs. The CPU supports only Philox.
constexpr int32_t kPhilox = 1;
constexpr int32_t kAutomatic = 3;
// The number of elements of a counter that Philox uses.
constexpr int kCounterSize = 2;

uint64_t Word(uint32_t low, uint32_t high) { return uint64_t{high} << 32 | low; }

// Returns element k of a seed, sign-extended.
uint64_t SeedElement(const Tensor& seed, int k) {
  return seed.dtype() == DT_INT32 ? static_cast<uint64_t>(int64_t{seed.flat<int32_t>()(k)})
                                  : static_cast<uint64_t>(seed.flat<int64_t>()(k));
}

}  // namespace

uint64_t SystemRandom() {
  std::random_device device;
  const uint32_t low = device();
  return Word(low, device());
}

absl::Status StatefulStream::Init(const KernelConstruction& construction) {
  int64_t seed = 0;
  int64_t seed2 = 0;
  GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("seed", &seed));
  GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("seed2", &seed2));
  const bool seeded = seed != 0 || seed2 != 0;
  const Philox stream(seeded ? seed : SystemRandom(), 0, seeded ? seed2 : SystemRandom());
  const MutexLock lock(&mutex_);
  stream_ = stream;
  return absl::OkStatus();
}

Philox StatefulStream::Reserve(uint64_t counters) const {
  const MutexLock lock(&mutex_);
  const Philox start = stream_;
  stream_ = stream_.Ahead(counters);
  return start;
}

absl::StatusOr<KeyAndCounter> ReadSeed(const KernelContext& ctx, int i) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckShape(i, "seed", TensorShape({2})));
  const Tensor& seed = ctx.input(i);
  if (seed.dtype() != DT_INT32 && seed.dtype() != DT_INT64) {
    return errors::InvalidArgument("seed must be int32 or int64, but is ",
                                   DataTypeString(seed.dtype()));
  }
  // Scrambles the seed, so that similar seeds have unrelated streams.
  Philox scrambler(Word(0x3ec8f720, 0x02461e29), SeedElement(seed, 0), SeedElement(seed, 1));
  const Philox::Numbers mixed = scrambler.Next();
  return KeyAndCounter{Word(mixed[0], mixed[1]), {0, Word(mixed[2], mixed[3])}};
}

absl::StatusOr<Philox> SeedStream(const KernelContext& ctx, int i) {
  GRADFLOW_ASSIGN_OR_RETURN(const KeyAndCounter seed, ReadSeed(ctx, i));
  return Philox(seed.key, seed.counter[0], seed.counter[1]);
}

absl::StatusOr<Philox> KeyStream(const KernelContext& ctx, int i) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckShape(i, "key", TensorShape({1})));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(i + 1, "counter"));
  const int64_t size = ctx.input(i + 1).NumElements();
  if (size < kCounterSize) {
    return errors::InvalidArgument("counter must have at least ", kCounterSize,
                                   " elements, but has ", size);
  }
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t algorithm, ctx.ScalarInt(i + 2, "alg"));
  if (algorithm != kPhilox && algorithm != kAutomatic) {
    return errors::InvalidArgument("alg must be 1 (Philox) or 3 (automatic), but is ", algorithm);
  }
  if (ctx.input_dtype(i) != DT_UINT64 || ctx.input_dtype(i + 1) != DT_UINT64) {
    return errors::InvalidArgument("key and counter must be uint64, but are ",
                                   DataTypeString(ctx.input_dtype(i)), " and ",
                                   DataTypeString(ctx.input_dtype(i + 1)));
  }
  const auto counter = ctx.input(i + 1).flat<uint64_t>();
  return Philox(ctx.input(i).flat<uint64_t>()(0), counter(0), counter(1));
}

absl::Status CheckSeedShape(ShapeContext& c, int i) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i, 1));
  const int64_t size = c.Dim(i, 0);
  if (size >= 0 && size != 2) {
    return errors::InvalidArgument("seed must have shape [2], but has shape [", size, "]");
  }
  return absl::OkStatus();
}

absl::Status CheckKeyShapes(ShapeContext& c, int i) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i + 1, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i + 2, 0));
  const int64_t keys = c.Dim(i, 0);
  if (keys >= 0 && keys != 1) {
    return errors::InvalidArgument("key must have shape [1], but has shape [", keys, "]");
  }
  const int64_t size = c.Dim(i + 1, 0);
  if (size >= 0 && size < kCounterSize) {
    return errors::InvalidArgument("counter must have at least ", kCounterSize,
                                   " elements, but has ", size);
  }
  return absl::OkStatus();
}

absl::Status CheckSourceShapes(ShapeContext& c, Source source) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 1));
  if (source == Source::kSeed) return CheckSeedShape(c, 1);
  if (source == Source::kKey) return CheckKeyShapes(c, 1);
  return absl::OkStatus();
}

absl::StatusOr<TensorShape> ReadShape(const KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(0, "shape"));
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector dims, ctx.Ints(0, "shape"));
  absl::StatusOr<TensorShape> shape = TensorShape::Make(dims);
  if (!shape.ok()) return errors::Prefix("shape: ", shape.status());
  return shape;
}

}  // namespace gradflow
