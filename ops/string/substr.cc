// Substr.
#include <cstdint>
#include <string>
#include <utility>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/indices.h"
#include "gradflow/ops/string/string_loop.h"

namespace gradflow::substr {
namespace {

absl::Status SubstrShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckSameShape(1, 2));
  return BroadcastBinaryShape(c);
}

// Returns the byte after `count` characters from byte `at`, or npos if there are fewer.
size_t Forward(absl::string_view text, size_t at, int64_t count) {
  for (; count > 0; --count) {
    if (at == text.size()) return absl::string_view::npos;
    do {
      ++at;
    } while (at < text.size() && IsTrailByte(text[at]));
  }
  return at;
}

// Returns the first byte of the last `count` characters, or npos if there are fewer.
size_t Backward(absl::string_view text, int64_t count) {
  size_t at = text.size();
  for (; count > 0; --count) {
    if (at == 0) return absl::string_view::npos;
    do {
      --at;
    } while (at > 0 && IsTrailByte(text[at]));
  }
  return at;
}

// Returns the first byte of the result, or npos.
size_t Begin(absl::string_view text, int64_t pos, bool characters) {
  const auto size = static_cast<int64_t>(text.size());
  if (pos < -size || pos > size) return absl::string_view::npos;
  if (!characters) return static_cast<size_t>(pos < 0 ? size + pos : pos);
  return pos < 0 ? Backward(text, -pos) : Forward(text, 0, pos);
}

class SubstrKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    std::string unit;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("unit", &unit));
    counts_characters_ = unit == "UTF8_CHAR";
    return absl::OkStatus();
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckStrings(ctx, 0, "input"));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckSameShape(1, "pos", 2, "len"));
    const Tensor& input = ctx.input(0);
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape,
                              BroadcastShapes(input.shape(), ctx.input(1).shape()));
    const DimVector text_strides = Strides(input.shape(), shape);
    const DimVector number_strides = Strides(ctx.input(1).shape(), shape);
    const IndexReader pos(ctx.input(1));
    const IndexReader len(ctx.input(2));
    const auto strings = input.span<tstring>();
    return MakeStrings(
        ctx, shape, StringNanoseconds(input, counts_characters_ ? 1 : 0.1),
        [&](int64_t i) {
          return static_cast<double>(strings[Place(i, shape, text_strides)].size());
        },
        [&](int64_t i, tstring* string) {
          const tstring& text = strings[Place(i, shape, text_strides)];
          const int64_t at = Place(i, shape, number_strides);
          const size_t begin = Begin(text, pos[at], counts_characters_);
          if (begin == absl::string_view::npos) {
            return errors::InvalidArgument(ElementName("pos", ctx.input(1).shape(), at), " is ",
                                           pos[at], ", which is outside of the string '",
                                           errors::Printable(text), "'");
          }
          size_t count = absl::string_view::npos;
          if (counts_characters_) {
            const size_t end = Forward(text, begin, len[at]);
            if (end != absl::string_view::npos) count = end - begin;
          } else if (len[at] >= 0) {
            // All of the rest if `len` is negative, as in TensorFlow.
            count = static_cast<size_t>(len[at]);
          }
          *string = text.substr(begin, count);
          return absl::OkStatus();
        });
  }

 private:
  // Returns the strides of a tensor of `shape` that is broadcast to `to`; broadcast dimensions have
  // stride 0.
  static DimVector Strides(const TensorShape& shape, const TensorShape& to) {
    DimVector strides(to.dims(), 0);
    int64_t stride = 1;
    for (int d = shape.dims() - 1; d >= 0; --d) {
      const int out = d + to.dims() - shape.dims();
      strides[out] = shape.dim_size(d) == 1 ? 0 : stride;
      stride *= shape.dim_size(d);
    }
    return strides;
  }
  static int64_t Place(int64_t i, const TensorShape& shape, const DimVector& strides) {
    int64_t place = 0;
    for (int d = shape.dims() - 1; d >= 0; --d) {
      place += i % shape.dim_size(d) * strides[d];
      i /= shape.dim_size(d);
    }
    return place;
  }

  bool counts_characters_ = false;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("Substr")
      .Group("string_ops")
      .Input("input: string")
      .Input("pos: T")
      .Input("len: T")
      .Output("output: string")
      .Attr("T: {int32, int64}")
      .Attr("unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'")
      .Shape(SubstrShape)
      .Doc(R"(Returns parts of strings.

`input` and `pos` are broadcast to one shape.

input: Strings.
pos: The first character of each part. A negative number counts from the end. A position outside of
  the string is an error.
len: The numbers of characters, of the shape of `pos`. A part ends with its string.
output: The parts.
T: The type of `pos` and `len`.
unit: What is counted: bytes, or characters of UTF-8.)");
  registry.Kernel("Substr", MakeKernel<SubstrKernel>);
}

}  // namespace gradflow::substr
