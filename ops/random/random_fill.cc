// Tensors of independent random numbers: uniform, normal, truncated normal and integers. Each
// distribution has up to four ops, which differ in the source of their stream.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/elementary_simd.h"
#include "gradflow/ops/random/distributions.h"
#include "gradflow/ops/random/generator_state.h"
#include "gradflow/ops/random/philox.h"
#include "gradflow/ops/random/streams.h"

namespace gradflow::random_fill {
namespace {

// Fills the elements with groups of `distribution`. Group k depends only on its position in the
// stream.
template <typename D>
void FillGroups(const RunContext& run, const Philox& stream, const D& distribution,
                typename D::Element* elements, int64_t size) {
  constexpr int kGroup = D::kGroup;
  const int64_t groups = NumBlocks(size, kGroup);
  ParallelFor(
      run, groups, BlockSizeForCost(kGroup * D::kNanoseconds), [&](int64_t begin, int64_t end) {
        if constexpr (std::is_invocable_v<const D&, PhiloxReader*>) {
          for (int64_t g = begin; g < end; ++g) {
            // A group begins at a fixed position, regardless of how many numbers other groups need.
            PhiloxReader reader(stream.Ahead(uint64_t{kGroup * kCountersPerOutput / 4} * g));
            const auto group = distribution(&reader);
            std::copy_n(group.begin(), std::min<int64_t>(kGroup, size - g * kGroup),
                        elements + g * kGroup);
          }
        } else {
          constexpr int kGroups = 64;
          Philox::Numbers numbers[kGroups];
          Philox generator = stream.Ahead(begin);
          for (int64_t g = begin; g < end; g += kGroups) {
            const int groups = static_cast<int>(std::min<int64_t>(kGroups, end - g));
            generator.Next(groups, numbers);
            for (int i = 0; i < groups; ++i) {
              const auto group = distribution(numbers[i]);
              const int64_t at = (g + i) * kGroup;
              std::copy_n(group.begin(), std::min<int64_t>(kGroup, size - at), elements + at);
            }
          }
        }
      });
}

template <template <typename> class D, typename T>
void FillWith(const RunContext& run, const Philox& stream, Tensor* output) {
  FillGroups(run, stream, D<T>(), static_cast<T*>(output->raw_data()), output->NumElements());
}

// Makes many numbers of StandardNormal<T> at a time, with the functions of elementary_simd.h.
template <typename T>
void FillNormals(const RunContext& run, const Philox& stream, Tensor* output) {
  using F = std::conditional_t<std::is_same_v<T, double>, double, float>;
  constexpr int kGroup = UnitNumbers<T>::kPerCounter;
  constexpr int kPairsOfGroup = kGroup / 2;
  constexpr int kGroups = 256 / kGroup;
  T* const elements = static_cast<T*>(output->raw_data());
  const int64_t size = output->NumElements();
  const auto fill = [&](int64_t begin, int64_t end) {
    Philox generator = stream.Ahead(begin);
    Philox::Numbers numbers[kGroups];
    F radii[kGroups * kPairsOfGroup];
    F sines[kGroups * kPairsOfGroup];
    F cosines[kGroups * kPairsOfGroup];
    for (int64_t g = begin; g < end; g += kGroups) {
      const int groups = static_cast<int>(std::min<int64_t>(kGroups, end - g));
      const int pairs = groups * kPairsOfGroup;
      generator.Next(groups, numbers);
      for (int p = 0; p < pairs; p += kPairsOfGroup) {
        const auto uniform = Uniform<F>()(numbers[p / kPairsOfGroup]);
        for (int k = 0; k < kPairsOfGroup; ++k) {
          radii[p + k] = LeastRadius(uniform[2 * k]);
          sines[p + k] = Angle(uniform[2 * k + 1]);
        }
      }
      ApplyElementary(Elementary::kLog, radii, radii, pairs);
      ApplyElementary(Elementary::kCos, sines, cosines, pairs);
      ApplyElementary(Elementary::kSin, sines, sines, pairs);
      for (int p = 0; p < pairs; ++p) {
        radii[p] = std::sqrt(F{-2} * radii[p]);
        sines[p] *= radii[p];
        cosines[p] *= radii[p];
      }
      T* const to = elements + g * kGroup;
      const int64_t left = std::min<int64_t>(2 * pairs, size - g * kGroup);
      for (int64_t i = 0; i + 1 < left; i += 2) {
        to[i] = T(sines[i / 2]);
        to[i + 1] = T(cosines[i / 2]);
      }
      if (left % 2 != 0) to[left - 1] = T(sines[left / 2]);
    }
  };
  ParallelFor(run, NumBlocks(size, kGroup), BlockSizeForCost(5.0 * kGroup), fill);
}

using FillFn = void (*)(const RunContext& run, const Philox& stream, Tensor* output);

template <template <typename> class D>
FillFn FloatingFill(DataType dtype) {
  FillFn fill = nullptr;
  DispatchType(FloatingTypes(), dtype,
               [&](auto tag) { fill = FillWith<D, typename decltype(tag)::type>; });
  return fill;
}

FillFn NormalFill(DataType dtype) {
  FillFn fill = nullptr;
  DispatchType(FloatingTypes(), dtype,
               [&](auto tag) { fill = FillNormals<typename decltype(tag)::type>; });
  return fill;
}

// Signed and unsigned integers have the same bits.
FillFn IntegerFill(DataType dtype) {
  return DataTypeSize(dtype) == 4 ? FillWith<FullInteger, uint32_t>
                                  : FillWith<FullInteger, uint64_t>;
}

// Returns the stream of a run that makes `size` elements.
absl::StatusOr<Philox> StreamOf(Source source, const KernelContext& ctx,
                                const StatefulStream& state, int64_t size) {
  if (source == Source::kSeed) return SeedStream(ctx, 1);
  if (source == Source::kKey) return KeyStream(ctx, 1);
  return state.Reserve(static_cast<uint64_t>(size) * kCountersPerOutput);
}

template <Source S, FillFn (*FillOf)(DataType)>
class FillKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    fill_ = FillOf(construction.output_type(0));
    if (fill_ == nullptr) {
      return errors::Unimplemented("no random numbers of type ",
                                   DataTypeString(construction.output_type(0)));
    }
    return S == Source::kState ? state_.Init(construction) : absl::OkStatus();
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, ReadShape(ctx));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    GRADFLOW_ASSIGN_OR_RETURN(const Philox stream, StreamOf(S, ctx, state_, output->NumElements()));
    fill_(ctx.run(), stream, output);
    return absl::OkStatus();
  }

 private:
  FillFn fill_ = nullptr;
  StatefulStream state_;
};

// Inputs `i` and i + 1 are the bounds of a range.
absl::Status CheckRangeTypes(const KernelContext& ctx, int i) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(i, "minval"));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(i + 1, "maxval"));
  const DataType dtype = ctx.expected_output_dtype(0);
  if (ctx.input_dtype(i) == dtype && ctx.input_dtype(i + 1) == dtype) return absl::OkStatus();
  return errors::InvalidArgument("minval and maxval must be ", DataTypeString(dtype));
}

absl::Status CheckRange(const KernelContext& ctx, int i) {
  GRADFLOW_RETURN_IF_ERROR(CheckRangeTypes(ctx, i));
  absl::Status status;
  DispatchType(TypeList<int32_t, int64_t, uint32_t, uint64_t>(), ctx.input_dtype(i), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T low = ctx.input(i).scalar<T>()();
    const T high = ctx.input(i + 1).scalar<T>()();
    if (low < high) return;
    status = errors::InvalidArgument("minval must be less than maxval, but they are ", low, " and ",
                                     high);
  });
  return status;
}

template <Source S>
class RangeKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return S == Source::kState ? state_.Init(construction) : absl::OkStatus();
  }

  absl::Status Compute(KernelContext& ctx) const override {
    constexpr int kMin = NumSourceInputs(S);
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, ReadShape(ctx));
    GRADFLOW_RETURN_IF_ERROR(CheckRangeTypes(ctx, kMin));
    const DataType dtype = ctx.expected_output_dtype(0);
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    GRADFLOW_ASSIGN_OR_RETURN(const Philox stream, StreamOf(S, ctx, state_, output->NumElements()));
    // If the output is empty, [minval, maxval) may be empty, as in TensorFlow.
    if (output->NumElements() == 0) return absl::OkStatus();
    GRADFLOW_RETURN_IF_ERROR(CheckRange(ctx, kMin));
    DispatchType(TypeList<int32_t, int64_t, uint32_t, uint64_t>(), dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T low = ctx.input(kMin).scalar<T>()();
      const T high = ctx.input(kMin + 1).scalar<T>()();
      using U = std::make_unsigned_t<T>;
      const IntegerRange<U> range = {static_cast<U>(low),
                                     static_cast<U>(static_cast<U>(high) - static_cast<U>(low))};
      FillGroups(ctx.run(), stream, range, static_cast<U*>(output->raw_data()),
                 output->NumElements());
    });
    return absl::OkStatus();
  }

 private:
  StatefulStream state_;
};

// The number of inputs before the inputs of the range: (resource, algorithm, shape).
constexpr int kGeneratorInputs = 3;

// A kernel whose stream is the state of a generator in a variable. It takes a key and a counter
// from the variable, and passes them to the kernel K, whose source is Source::kKey.
template <typename K, bool HasRange>
class GeneratorKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) { return kernel_.Init(construction); }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const int64_t algorithm, ctx.ScalarInt(1, "algorithm"));
    GRADFLOW_RETURN_IF_ERROR(CheckGeneratorAlgorithm(algorithm));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(2, "shape"));
    GRADFLOW_ASSIGN_OR_RETURN(const DimVector dims, ctx.Ints(2, "shape"));
    const absl::StatusOr<TensorShape> shape = TensorShape::Make(dims);
    if (!shape.ok()) return errors::Prefix("shape: ", shape.status());
    // The state is as before if the call is not valid.
    if (HasRange) GRADFLOW_RETURN_IF_ERROR(CheckRange(ctx, kGeneratorInputs));
    Tensor key(DT_UINT64, {1});
    Tensor counter(DT_UINT64, {2});
    if (!key.IsInitialized() || !counter.IsInitialized()) {
      return errors::ResourceExhausted("out of memory for the key of a random generator");
    }
    GRADFLOW_ASSIGN_OR_RETURN(
        const KeyAndCounter state,
        AdvanceGenerator(ctx, 0, static_cast<uint64_t>(shape->num_elements())));
    key.flat<uint64_t>()(0) = state.key;
    counter.flat<uint64_t>()(0) = state.counter[0];
    counter.flat<uint64_t>()(1) = state.counter[1];
    absl::InlinedVector<Tensor, 6> inputs;
    inputs.emplace_back(Tensor::Borrow(), ctx.input(2));
    inputs.push_back(std::move(key));
    inputs.push_back(std::move(counter));
    inputs.push_back(Tensor(static_cast<int32_t>(algorithm)));
    for (int i = kGeneratorInputs; i < ctx.num_inputs(); ++i) {
      inputs.emplace_back(Tensor::Borrow(), ctx.input(i));
    }
    KernelContext inner = ctx.WithInputs(absl::MakeSpan(inputs));
    return kernel_.Compute(inner);
  }

 private:
  K kernel_;
};

template <bool HasRange>
absl::Status GeneratorShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 0));
  for (int i = kGeneratorInputs; HasRange && i < c.num_inputs(); ++i) {
    GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i, 0));
  }
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, c.ShapeFromInput(2));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

template <typename K, bool HasRange>
void RegisterGenerator(Registry& registry, const char* name, absl::string_view summary,
                       absl::string_view default_type, DataTypeVector types) {
  std::string doc = absl::StrCat(
      "Returns ", summary, ", from a random generator.\n\n",
      "resource: A variable with the state of the generator: the low and the high half of its "
      "counter, and\n  its key. The op advances it.\n"
      "algorithm: The algorithm, a scalar: 1 is Philox, 3 lets the device choose, and the CPU "
      "chooses\n  Philox.\n"
      "shape: A vector: the shape of the result.\n");
  {
    // Registers the op before its kernels.
    Registry::OpRegistrar op = registry.Op(name);
    op.Group("random_ops")
        .HandWritten()
        .Input("resource: resource")
        .Input("algorithm: int64")
        .Input("shape: shape_dtype");
    if (HasRange) {
      op.Input("minval: dtype").Input("maxval: dtype");
      absl::StrAppend(&doc,
                      "minval: A scalar: the least value.\n"
                      "maxval: A scalar: one more than the largest value.\n");
    }
    op.Output("output: dtype")
        .Attr(absl::StrCat("dtype: type = ", default_type))
        .Attr("shape_dtype: type = DT_INT64")
        .Stateful()
        .Shape(GeneratorShape<HasRange>)
        .Doc(absl::StrCat(doc,
                          "output: The random numbers.\n"
                          "dtype: The type of the result.\n"
                          "shape_dtype: The type of `shape`."));
  }
  registry.Kernel(name, MakeKernel<GeneratorKernel<K, HasRange>>).Types("dtype", std::move(types));
}

template <Source S, bool HasRange>
absl::Status FillShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckSourceShapes(c, S));
  if (HasRange) {
    GRADFLOW_RETURN_IF_ERROR(c.CheckRank(NumSourceInputs(S), 0));
    GRADFLOW_RETURN_IF_ERROR(c.CheckRank(NumSourceInputs(S) + 1, 0));
  }
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, c.ShapeFromInput(0));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// The texts of an op's definition.
struct Definition {
  const char* name;
  const char* summary;
  // The attributes for the output type and the shape type, and their allowed values.
  const char* dtype;
  const char* dtypes;
  const char* shape_type;
  const char* shape_types = "{int32, int64}";
  const char* seed_types = "{int32, int64} = DT_INT64";
  // Another name of the wrapper class.
  const char* alias = nullptr;
};

template <Source S, bool HasRange>
void RegisterOp(Registry& registry, const Definition& d) {
  std::string doc = absl::StrCat("Returns ", d.summary, ".\n\n");
  Registry::OpRegistrar op = registry.Op(d.name);
  op.Group(S == Source::kState  ? "random_ops"
           : S == Source::kSeed ? "stateless_random_ops"
                                : "stateless_random_ops_v2")
      .Shape(FillShape<S, HasRange>)
      .Input(absl::StrCat("shape: ", d.shape_type));
  if (d.alias != nullptr) op.Alias(d.alias);
  absl::StrAppend(&doc, "shape: A vector: the shape of the result.\n");
  if (S == Source::kState) {
    op.Stateful();
  } else if (S == Source::kSeed) {
    op.Input("seed: Tseed");
    absl::StrAppend(&doc, "seed: Two numbers. Equal seeds make equal numbers.\n");
  } else {
    op.Input("key: uint64").Input("counter: uint64").Input("alg: int32");
    absl::StrAppend(
        &doc,
        "key: A vector of one number: the key of Philox.\n"
        "counter: A vector: its first two numbers are the counter of Philox, low half "
        "first.\n"
        "alg: The algorithm: 1 is Philox, 3 lets the device choose, and the CPU chooses Philox.\n");
  }
  if (HasRange) {
    op.Input(absl::StrCat("minval: ", d.dtype)).Input(absl::StrCat("maxval: ", d.dtype));
    absl::StrAppend(&doc,
                    "minval: A scalar: the least value.\n"
                    "maxval: A scalar: one more than the largest value. Values are equally likely "
                    "if 2^32 (2^64) is a multiple of their number, and nearly so otherwise.\n");
  }
  op.Output(absl::StrCat("output: ", d.dtype));
  absl::StrAppend(&doc, "output: The random numbers.\n");
  if (S == Source::kState) {
    op.Attr("seed: int = 0").Attr("seed2: int = 0");
    absl::StrAppend(&doc,
                    "seed: With `seed2`, selects the stream of numbers, which each run continues. "
                    "If both are zero, the system selects one.\n"
                    "seed2: The second half of the seed.\n");
  }
  const std::string dtype = absl::StrCat(d.dtype, ": ", d.dtypes);
  op.Attr(dtype);
  op.Attr(absl::StrCat(d.shape_type, ": ", d.shape_types));
  if (S == Source::kSeed) op.Attr(absl::StrCat("Tseed: ", d.seed_types));
  absl::StrAppend(&doc, d.dtype, ": The type of the result.\n", d.shape_type,
                  ": The type of `shape`.");
  if (S == Source::kSeed) absl::StrAppend(&doc, "\nTseed: The type of `seed`.");
  op.Doc(doc);
}

template <Source S>
void RegisterFloating(Registry& registry, const char* uniform, const char* normal,
                      const char* truncated, Definition d) {
  d.dtype = "dtype";
  d.name = uniform;
  d.summary = "numbers that are uniform in [0, 1)";
  RegisterOp<S, false>(registry, d);
  registry.Kernel(uniform, MakeKernel<FillKernel<S, FloatingFill<Uniform>>>);
  d.name = normal;
  d.summary = "normal numbers of mean 0 and standard deviation 1";
  if (S == Source::kState) d.alias = "RandomNormal";
  RegisterOp<S, false>(registry, d);
  d.alias = nullptr;
  registry.Kernel(normal, MakeKernel<FillKernel<S, NormalFill>>);
  d.name = truncated;
  d.summary = "normal numbers of mean 0 and standard deviation 1 whose magnitude is less than 2";
  RegisterOp<S, false>(registry, d);
  registry.Kernel(truncated, MakeKernel<FillKernel<S, FloatingFill<TruncatedNormal>>>);
}

template <Source S>
void RegisterRange(Registry& registry, Definition d) {
  d.summary = "integers of a range";
  RegisterOp<S, true>(registry, d);
  registry.Kernel(d.name, MakeKernel<RangeKernel<S>>);
}

template <Source S>
void RegisterFullInteger(Registry& registry, Definition d) {
  d.summary = "integers whose bits are all random";
  RegisterOp<S, false>(registry, d);
  registry.Kernel(d.name, MakeKernel<FillKernel<S, IntegerFill>>);
}

}  // namespace

void Register(Registry& registry) {
  Definition state = {};
  state.dtypes = "{half, bfloat16, float, double}";
  state.shape_type = "T";
  RegisterFloating<Source::kState>(registry, "RandomUniform", "RandomStandardNormal",
                                   "TruncatedNormal", state);
  state.name = "RandomUniformInt";
  state.dtype = "Tout";
  state.dtypes = "{int32, int64}";
  RegisterRange<Source::kState>(registry, state);

  Definition seed = {};
  seed.dtypes = "{half, bfloat16, float, double} = DT_FLOAT";
  seed.shape_type = "T";
  seed.shape_types = "{int32, int64} = DT_INT32";
  RegisterFloating<Source::kSeed>(registry, "StatelessRandomUniform", "StatelessRandomNormal",
                                  "StatelessTruncatedNormal", seed);
  seed.name = "StatelessRandomUniformFullInt";
  seed.dtype = "dtype";
  seed.dtypes = "{int32, int64, uint32, uint64} = DT_UINT64";
  seed.seed_types = "{int32, int64, uint32, uint64} = DT_INT64";
  RegisterFullInteger<Source::kSeed>(registry, seed);
  seed.name = "StatelessRandomUniformInt";
  seed.dtypes = "{int32, int64}";
  seed.shape_types = "{int32, int64}";
  seed.seed_types = "{int32, int64} = DT_INT64";
  RegisterRange<Source::kSeed>(registry, seed);

  Definition key = {};
  key.dtypes = "{half, bfloat16, float, double} = DT_FLOAT";
  key.shape_type = "Tshape";
  key.shape_types = "{int32, int64} = DT_INT32";
  RegisterFloating<Source::kKey>(registry, "StatelessRandomUniformV2", "StatelessRandomNormalV2",
                                 "StatelessTruncatedNormalV2", key);
  key.name = "StatelessRandomUniformFullIntV2";
  key.dtype = "dtype";
  key.dtypes = "{int32, int64, uint32, uint64} = DT_UINT64";
  RegisterFullInteger<Source::kKey>(registry, key);
  key.name = "StatelessRandomUniformIntV2";
  key.dtypes = "{int32, int64, uint32, uint64}";
  RegisterRange<Source::kKey>(registry, key);

  const DataTypeVector floats = {DT_HALF, DT_BFLOAT16, DT_FLOAT, DT_DOUBLE};
  RegisterGenerator<FillKernel<Source::kKey, FloatingFill<Uniform>>, false>(
      registry, "StatefulUniform", "numbers that are uniform in [0, 1)", "DT_FLOAT", floats);
  RegisterGenerator<FillKernel<Source::kKey, NormalFill>, false>(
      registry, "StatefulStandardNormalV2", "normal numbers of mean 0 and standard deviation 1",
      "DT_FLOAT", floats);
  RegisterGenerator<FillKernel<Source::kKey, FloatingFill<TruncatedNormal>>, false>(
      registry, "StatefulTruncatedNormal",
      "normal numbers of mean 0 and standard deviation 1 whose magnitude is less than 2",
      "DT_FLOAT", floats);
  RegisterGenerator<FillKernel<Source::kKey, IntegerFill>, false>(
      registry, "StatefulUniformFullInt", "integers whose bits are all random", "DT_UINT64",
      {DT_INT32, DT_INT64, DT_UINT32, DT_UINT64});
  RegisterGenerator<RangeKernel<Source::kKey>, true>(
      registry, "StatefulUniformInt", "integers of a range", "DT_INT64", {DT_INT32, DT_INT64});
}

}  // namespace gradflow::random_fill
