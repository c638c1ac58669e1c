// QuantizedAdd, QuantizedMul, QuantizedBiasAdd, QuantizedRelu, QuantizedRelu6 and QuantizedReluX.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/quant/quantized_range.h"

namespace gradflow::quantized_elementwise {
namespace {

// ---- Sums and products ----

constexpr int kAddBits = 14;
constexpr int kBiasAddBits = 17;

// The range of sums: the greatest magnitude of the bounds, times 2^`bits` for further sums.
QuantizedRange SumRange(const QuantizedRange& a, const QuantizedRange& b, int bits) {
  const float most = std::max(std::fabs(std::min(a.min, b.min)), std::fabs(std::max(a.max, b.max)));
  const float bound = most * static_cast<float>(1 << bits);
  return {-bound, bound};
}

// The integers of all numbers of an 8-bit operand in another range.
template <typename Q>
class OperandTable {
 public:
  template <typename F>
  explicit OperandTable(const F& convert) {
    for (int i = 0; i < 256; ++i) {
      values_[static_cast<size_t>(i)] = convert(static_cast<Q>(static_cast<uint8_t>(i)));
    }
  }
  int32_t operator()(Q q) const { return values_[static_cast<uint8_t>(q)]; }

 private:
  std::array<int32_t, 256> values_;
};

template <typename A, typename B>
absl::Status AddTables(KernelContext& ctx, const OperandTable<A>& a, const OperandTable<B>& b) {
  return Binary<uint8_t, int32_t>(ctx, [&a, &b](uint8_t x, uint8_t y) {
    return WrappedSum(a(static_cast<A>(x)), b(static_cast<B>(y)));
  });
}

// The table of an operand of QuantizedAdd. TensorFlow converts a single element by itself. In
// tensors, it converts the integers 0 and 1, and extrapolates from them.
template <typename Q>
OperandTable<Q> AddendTable(bool is_single, const QuantizedRange& from, const QuantizedRange& to) {
  const auto convert = [&](Q q) {
    return QuantizeUnclamped<int32_t>(DequantizeNumber(q, from), to);
  };
  if (is_single) {
    return OperandTable<Q>([&](Q q) { return QuantizedLimits<int32_t>::Clamped(convert(q)); });
  }
  const int64_t zero = convert(0);
  const auto step = static_cast<int32_t>(convert(1) - zero);
  return OperandTable<Q>(
      [&](Q q) { return QuantizedLimits<int32_t>::Clamped(zero + int64_t{q} * step); });
}

// A kernel whose inputs are two tensors and their ranges.
class TwoTensors : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    ranges_.Init(construction, 2, 2);
    return absl::OkStatus();
  }

 protected:
  RangeInputs ranges_;
};

template <typename A, typename B>
class AddKernel final : public TwoTensors {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const std::vector<QuantizedRange> ranges, ranges_.ReadNonempty(ctx));
    const QuantizedRange sum = SumRange(ranges[0], ranges[1], kAddBits);
    const bool single_x = ctx.input(0).NumElements() == 1;
    const bool single_y = !single_x && ctx.input(1).NumElements() == 1;
    GRADFLOW_RETURN_IF_ERROR(AddTables(ctx, AddendTable<A>(single_x, ranges[0], sum),
                                       AddendTable<B>(single_y, ranges[1], sum)));
    return OutputRange(ctx, 1, sum);
  }
};

template <typename A, typename B>
class MulKernel final : public TwoTensors {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const std::vector<QuantizedRange> ranges, ranges_.ReadNonempty(ctx));
    const auto zero_a = static_cast<uint32_t>(ZeroPoint<A>(ranges[0]));
    const auto zero_b = static_cast<uint32_t>(ZeroPoint<B>(ranges[1]));
    const auto multiply = [=](uint8_t x, uint8_t y) {
      return static_cast<int32_t>((static_cast<uint32_t>(static_cast<A>(x)) - zero_a) *
                                  (static_cast<uint32_t>(static_cast<B>(y)) - zero_b));
    };
    GRADFLOW_RETURN_IF_ERROR((Binary<uint8_t, int32_t>(ctx, multiply)));
    return OutputRange(ctx, 1, ProductRange<A, B>(ranges[0], ranges[1]));
  }
};

absl::Status CheckBias(const PartialTensorShape& input, const PartialTensorShape& bias) {
  GRADFLOW_RETURN_IF_ERROR(CheckRankAtLeast("input", input, 2));
  const int64_t channels = input.unknown_rank() ? -1 : input.dim_size(input.dims() - 1);
  const PartialTensorShape expected = {channels};
  if (bias.IsCompatibleWith(expected)) return absl::OkStatus();
  return errors::InvalidArgument("bias must have shape ", expected.DebugString(),
                                 ", by the last dimension of input, but has shape ",
                                 bias.DebugString());
}

template <typename Q>
class BiasAddKernel final : public TwoTensors {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const std::vector<QuantizedRange> ranges, ranges_.Read(ctx));
    GRADFLOW_RETURN_IF_ERROR(CheckBias(ctx.input(0).shape(), ctx.input(1).shape()));
    const QuantizedRange sum = SumRange(ranges[0], ranges[1], kBiasAddBits);
    const auto zero = QuantizeNumber<int32_t>(0, sum);
    const FloatRequantizer<Q, int32_t> input(ranges[0], sum);
    const FloatRequantizer<Q, int32_t> bias(ranges[1], sum);
    GRADFLOW_RETURN_IF_ERROR(AddTables(ctx, OperandTable<Q>(input), OperandTable<Q>([&](Q q) {
                                         return WrappedSum(bias(q), zero);
                                       })));
    return OutputRange(ctx, 1, sum);
  }
};

absl::Status BroadcastShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckRangeShapes(c, 2, 4));
  return BroadcastBinaryShape(c);
}

absl::Status BiasShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckRangeShapes(c, 2, 4));
  GRADFLOW_RETURN_IF_ERROR(CheckBias(c.input(0), c.input(1)));
  return UnchangedShape(c);
}

// ---- Clamps ----

enum class Clamp { kRelu, kRelu6, kReluX };

template <typename Q, Clamp kClamp>
class ReluKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    ranges_.Init(construction, kClamp == Clamp::kReluX ? 2 : 1);
    return absl::OkStatus();
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const std::vector<QuantizedRange> ranges, ranges_.Read(ctx));
    float most = 6;
    if constexpr (kClamp == Clamp::kReluX) {
      GRADFLOW_ASSIGN_OR_RETURN(most, FiniteScalar(ctx, 1, "max_value"));
    }
    const Q lowest = QuantizeNumber<Q>(0, ranges[0]);
    const Q highest =
        kClamp == Clamp::kRelu ? std::numeric_limits<Q>::max() : QuantizeNumber<Q>(most, ranges[0]);
    GRADFLOW_RETURN_IF_ERROR(
        Unary<Q>(ctx, [=](Q q) { return std::min(std::max(q, lowest), highest); }));
    return OutputRange(ctx, 1, ranges[0]);
  }

 private:
  RangeInputs ranges_;
};

absl::Status ReluShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckRangeShapes(c, 1, c.num_inputs() - 1));
  return UnchangedShape(c);
}

// ---- Registration ----

// Calls fn(tag of A, tag of B) for the types of two 8-bit operands.
template <typename F>
void ForOperands(const F& fn) {
  using Types = TypeList<quint8, qint8>;
  ForEachType(Types(), [&](auto a) { ForEachType(Types(), [&](auto b) { fn(a, b); }); });
}

template <template <typename, typename> class Kernel>
void RegisterBinary(Registry& registry, const char* op, const char* summary, const char* range) {
  registry.Op(op)
      .Group("math_ops")
      .Input("x: T1")
      .Input("y: T2")
      .Input("min_x: float")
      .Input("max_x: float")
      .Input("min_y: float")
      .Input("max_y: float")
      .Output("z: Toutput")
      .Output("min_z: float")
      .Output("max_z: float")
      .Attr(absl::StrCat("T1: ", kQuantizedTypes))
      .Attr(absl::StrCat("T2: ", kQuantizedTypes))
      .Attr(absl::StrCat("Toutput: ", kQuantizedTypes, " = DT_QINT32"))
      .Shape(BroadcastShape)
      .Doc(absl::StrCat(summary, R"(

The shapes broadcast as in NumPy. TensorFlow only broadcasts the leading dimensions of one input.

x: Integers.
y: Integers, of a shape that broadcasts with that of `x`.
min_x: A scalar: the number of the lowest integer of `x`.
max_x: A scalar, greater than `min_x`: the number of the highest integer of `x`.
min_y: A scalar: the number of the lowest integer of `y`.
max_y: A scalar, greater than `min_y`: the number of the highest integer of `y`.
z: The integers of the result. They wrap around modulo 2^32.
min_z: The number of the lowest integer of `z`: )",
                        range, R"(.
max_z: The number of the highest integer of `z`.
T1: The type of `x`.
T2: The type of `y`.
Toutput: The type of `z`.)"));
  ForOperands([&](auto a, auto b) {
    using A = typename decltype(a)::type;
    using B = typename decltype(b)::type;
    registry.Kernel(op, MakeKernel<Kernel<decltype(A::value), decltype(B::value)>>)
        .template Type<A>("T1")
        .template Type<B>("T2")
        .template Type<qint32>("Toutput");
  });
}

template <Clamp kClamp>
void DefineRelu(Registry& registry, const char* op, const char* bound) {
  Registry::OpRegistrar registrar = registry.Op(op);
  registrar.Group("nn_ops").Input("features: Tinput");
  if (kClamp == Clamp::kReluX) registrar.Input("max_value: float");
  registrar.Input("min_features: float")
      .Input("max_features: float")
      .Output("activations: out_type")
      .Output("min_activations: float")
      .Output("max_activations: float")
      .Attr(absl::StrCat("Tinput: ", kQuantizedTypes))
      .Attr(absl::StrCat("out_type: ", kQuantizedTypes, " = DT_QUINT8"))
      .Shape(ReluShape)
      .Doc(
          absl::StrCat("Clamps integers to the numbers from 0 on", bound, R"(.

features: The integers.
)",
                       kClamp == Clamp::kReluX ? "max_value: A scalar: the greatest number.\n" : "",
                       R"(min_features: A scalar: the number of the lowest integer of `features`.
max_features: A scalar: the number of the highest integer of `features`.
activations: The clamped integers.
min_activations: `min_features`.
max_activations: `max_features`.
Tinput: The type of `features`.
out_type: The type of `activations`, equal to `Tinput`.)"));
}

template <Clamp kClamp>
void RegisterRelu(Registry& registry, const char* op, const char* bound) {
  DefineRelu<kClamp>(registry, op, bound);
  ForEachType(TypeList<quint8, qint8, qint32>(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    registry.Kernel(op, MakeKernel<ReluKernel<decltype(T::value), kClamp>>)
        .template Type<T>("Tinput")
        .template Type<T>("out_type");
  });
}

}  // namespace

void Register(Registry& registry) {
  RegisterBinary<AddKernel>(registry, "QuantizedAdd", "Adds quantized tensors.",
                            "-2^14 times the greatest magnitude of the ranges' bounds");
  RegisterBinary<MulKernel>(registry, "QuantizedMul", "Multiplies quantized tensors.",
                            "-2^31 products of a step of `x` and a step of `y`");

  registry.Op("QuantizedBiasAdd")
      .Group("nn_ops")
      .Input("input: T1")
      .Input("bias: T2")
      .Input("min_input: float")
      .Input("max_input: float")
      .Input("min_bias: float")
      .Input("max_bias: float")
      .Output("output: out_type")
      .Output("min_out: float")
      .Output("max_out: float")
      .Attr(absl::StrCat("T1: ", kQuantizedTypes))
      .Attr(absl::StrCat("T2: ", kQuantizedTypes))
      .Attr(absl::StrCat("out_type: ", kQuantizedTypes))
      .Shape(BiasShape)
      .Doc(R"(Adds a quantized bias to each channel of a quantized tensor.

input: Integers of rank 2 at least. The channels are the last dimension.
bias: A vector with an integer for each channel.
min_input: A scalar: the number of the lowest integer of `input`.
max_input: A scalar: the number of the highest integer of `input`.
min_bias: A scalar: the number of the lowest integer of `bias`.
max_bias: A scalar: the number of the highest integer of `bias`.
output: The integers of the sums.
min_out: The number of the lowest integer of `output`: -2^17 times the greatest magnitude of the
  ranges' bounds.
max_out: The number of the highest integer of `output`.
T1: The type of `input`.
T2: The type of `bias`.
out_type: The type of `output`.)");
  ForEachType(TypeList<quint8, qint8>(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    registry.Kernel("QuantizedBiasAdd", MakeKernel<BiasAddKernel<decltype(T::value)>>)
        .template Type<T>("T1")
        .template Type<T>("T2")
        .template Type<qint32>("out_type");
  });

  RegisterRelu<Clamp::kRelu>(registry, "QuantizedRelu", "");
  RegisterRelu<Clamp::kRelu6>(registry, "QuantizedRelu6", " and up to 6");
  RegisterRelu<Clamp::kReluX>(registry, "QuantizedReluX", " and up to `max_value`");
}

}  // namespace gradflow::quantized_elementwise
