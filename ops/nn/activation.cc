#include "gradflow/ops/nn/activation.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow {
namespace {

constexpr char kAlphaDoc[] = "\nalpha: The slope for negative elements.";

class ActivationGradKernel final : public OpKernel {
 public:
  ActivationGradKernel(std::string known, std::unique_ptr<OpKernel> elementwise)
      : known_(std::move(known)), elementwise_(std::move(elementwise)) {}

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckSameShape(0, "gradients", 1, known_));
    return elementwise_->Compute(ctx);
  }

 private:
  // The name of input 1.
  const std::string known_;
  const std::unique_ptr<OpKernel> elementwise_;
};

}  // namespace

void RegisterActivation(Registry& registry, absl::string_view op, absl::string_view alpha,
                        absl::string_view types, absl::string_view doc) {
  auto builder = registry.Op(op);
  builder.Group("nn_ops").Input("features: T").Output("activations: T");
  if (!alpha.empty()) builder.Attr(alpha);
  builder.Attr(types)
      .Shape(UnchangedShape)
      .Doc(absl::StrCat(doc, R"(

features: A tensor.
activations: The results, of the shape of `features`.)",
                        alpha.empty() ? "" : kAlphaDoc, R"(
T: The type of both.)"));
}

void RegisterActivationGrad(Registry& registry, absl::string_view op, absl::string_view known,
                            absl::string_view alpha, absl::string_view types,
                            absl::string_view doc) {
  auto builder = registry.Op(op);
  builder.Group("nn_ops")
      .Input("gradients: T")
      .Input(absl::StrCat(known, ": T"))
      .Output("backprops: T");
  if (!alpha.empty()) builder.Attr(alpha);
  builder.Attr(types).Shape(SameShape).Doc(
      absl::StrCat(doc, R"(

gradients: The gradients with respect to the results of the activation.
)",
                   known, ": The ", known == "outputs" ? "results" : "arguments",
                   R"( of the activation, of the same shape.
backprops: The gradients with respect to the arguments of the activation, of the same shape.)",
                   alpha.empty() ? "" : kAlphaDoc, R"(
T: The type of the inputs and outputs.)"));
}

std::unique_ptr<OpKernel> NewActivationGradKernel(const KernelConstruction& construction,
                                                  ElementwiseLoop loop, int size,
                                                  double nanoseconds) {
  return std::make_unique<ActivationGradKernel>(
      construction.op_def().input_arg(1).name(),
      NewElementwiseKernel(construction, loop, {size, size}, nanoseconds, Pairing::kInOrder));
}

}  // namespace gradflow
