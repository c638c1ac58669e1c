#include "gradflow/ops/common/elementwise_step.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"

namespace gradflow {
namespace {

class ElementwiseStep final : public FusedStep {
 public:
  explicit ElementwiseStep(ElementwiseLoop loop) : loop_(loop) {}

  // Returns false if an input has an unsupported type or shape.
  bool Init(absl::Span<const Tensor> inputs, int input, const TensorShape& shape, Pairing pairing) {
    if (inputs.size() > static_cast<size_t>(kMaxElementwiseInputs) || shape.dims() == 0)
      return false;
    num_inputs_ = inputs.size();
    width_ = shape.dim_size(shape.dims() - 1);
    for (size_t k = 0; k < num_inputs_; ++k) {
      Operand& operand = operands_[k];
      if (static_cast<int>(k) == input) continue;
      const Tensor& x = inputs[k];
      if (x.dtype() != DT_FLOAT || !x.IsInitialized()) return false;
      operand.data = static_cast<const float*>(x.raw_data());
      if (x.shape() == shape) {
        operand.form = Form::kWhole;
      } else if (pairing != Pairing::kBroadcast || x.dims() > shape.dims()) {
        return false;
      } else if (x.NumElements() == 1) {
        operand.form = Form::kScalar;
      } else if (x.dims() > 0 && x.dim_size(x.dims() - 1) == width_ && x.NumElements() == width_) {
        operand.form = Form::kRow;
        has_rows_ = true;
      } else {
        return false;
      }
    }
    if (has_rows_) RepeatRows(shape.num_elements() / std::max<int64_t>(width_, 1));
    return true;
  }

  void Apply(const ResultPart& part) const override {
    // Contiguous rows are processed together; if an operand is a row, up to `repeats_` rows at a
    // time.
    const bool is_one = part.stride == part.columns && part.columns == width_;
    const int64_t step = !is_one ? 1 : has_rows_ ? repeats_ : std::max<int64_t>(part.rows, 1);
    const void* x[kMaxElementwiseInputs] = {};
    int64_t strides[kMaxElementwiseInputs];
    for (size_t k = 0; k < num_inputs_; ++k) {
      strides[k] = operands_[k].form == Form::kScalar ? 0 : 1;
    }
    for (int64_t row = 0; row < part.rows; row += step) {
      float* const data = part.data + row * part.stride;
      for (size_t k = 0; k < num_inputs_; ++k) {
        const Operand& operand = operands_[k];
        switch (operand.form) {
          case Form::kResult:
            x[k] = data;
            break;
          case Form::kWhole:
            x[k] = operand.data + (part.row + row) * width_ + part.column;
            break;
          case Form::kRow:
            x[k] = operand.data + part.column;
            break;
          case Form::kScalar:
            x[k] = operand.data;
            break;
        }
      }
      loop_(x, strides, data, std::min(step, part.rows - row) * part.columns);
    }
  }

 private:
  // Repeats operands that are a row, so that one call of the loop processes several narrow rows.
  // `rows` is the number of rows of the result.
  void RepeatRows(int64_t rows) {
    constexpr int64_t kElements = 1024;
    repeats_ = std::clamp<int64_t>(kElements / std::max<int64_t>(width_, 1), 1,
                                   std::max<int64_t>(rows, 1));
    if (repeats_ == 1) return;
    for (size_t k = 0; k < num_inputs_; ++k) {
      Operand& operand = operands_[k];
      if (operand.form != Form::kRow) continue;
      std::vector<float>& elements = repeated_.emplace_back();
      elements.reserve(static_cast<size_t>(repeats_ * width_));
      for (int64_t i = 0; i < repeats_; ++i) {
        elements.insert(elements.end(), operand.data, operand.data + width_);
      }
      operand.data = elements.data();
    }
  }

  enum class Form { kResult, kWhole, kRow, kScalar };
  struct Operand {
    const float* data = nullptr;
    Form form = Form::kResult;
  };

  const ElementwiseLoop loop_;
  std::array<Operand, kMaxElementwiseInputs> operands_;
  size_t num_inputs_ = 0;
  // The number of columns of the result.
  int64_t width_ = 0;
  bool has_rows_ = false;
  // The number of copies of each row operand, which follow each other in memory.
  int64_t repeats_ = 1;
  absl::InlinedVector<std::vector<float>, 1> repeated_;
};

}  // namespace

std::unique_ptr<FusedStep> MakeElementwiseStep(ElementwiseLoop loop,
                                               absl::Span<const Tensor> inputs, int input,
                                               const TensorShape& shape, Pairing pairing) {
  auto step = std::make_unique<ElementwiseStep>(loop);
  if (!step->Init(inputs, input, shape, pairing)) return nullptr;
  return step;
}

}  // namespace gradflow
