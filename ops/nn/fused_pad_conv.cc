// Convolutions of images that are first padded, or resized and padded: FusedPadConv2D and
// FusedResizeAndPadConv2D. The fused kernel runs the kernels of the separate ops, so its result
// equals theirs.
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/status.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow::fused_pad_conv {
namespace {

// Marks the input that is the result of the previous step.
constexpr int kPrevious = -1;

// An op with all of its attributes, and the inputs of the fused op that it reads.
struct Step {
  NodeDef node;
  std::vector<int> inputs;
  const OpRegistration* op = nullptr;
  DataTypeVector input_types;
  DataTypeVector output_types;
};

// The steps of a node, in order. The first step reads input 0.
class Steps {
 public:
  absl::Status Read(const NodeDef& node) {
    const bool resizes = node.op() == "FusedResizeAndPadConv2D";
    DataType dtype;
    std::string mode, padding;
    std::vector<int64_t> strides;
    GRADFLOW_RETURN_IF_ERROR(GetNodeAttr(node, "T", &dtype));
    GRADFLOW_RETURN_IF_ERROR(GetNodeAttr(node, "mode", &mode));
    GRADFLOW_RETURN_IF_ERROR(GetNodeAttr(node, "strides", &strides));
    GRADFLOW_RETURN_IF_ERROR(GetNodeAttr(node, "padding", &padding));
    int next = 1;
    if (resizes) {
      bool align_corners;
      GRADFLOW_RETURN_IF_ERROR(GetNodeAttr(node, "resize_align_corners", &align_corners));
      NodeDef* const resize = Add("ResizeBilinear", {0, next++});
      AddNodeAttr("T", dtype, resize);
      AddNodeAttr("align_corners", align_corners, resize);
      if (dtype != DT_FLOAT) {
        NodeDef* const cast = Add("Cast", {kPrevious});
        AddNodeAttr("SrcT", DT_FLOAT, cast);
        AddNodeAttr("DstT", dtype, cast);
      }
    }
    NodeDef* const pad = Add("MirrorPad", {resizes ? kPrevious : 0, next++});
    AddNodeAttr("T", dtype, pad);
    AddNodeAttr("mode", mode, pad);
    NodeDef* const conv = Add("Conv2D", {kPrevious, next});
    AddNodeAttr("T", dtype, conv);
    AddNodeAttr("strides", strides, conv);
    AddNodeAttr("padding", padding, conv);
    for (Step& step : steps_) {
      GRADFLOW_ASSIGN_OR_RETURN(step.op, GlobalRegistry().LookUpOp(step.node.op()));
      AddDefaultsToNodeDef(step.op->def(), &step.node);
      GRADFLOW_RETURN_IF_ERROR(
          InOutTypesForNode(step.node, step.op->def(), &step.input_types, &step.output_types));
    }
    return absl::OkStatus();
  }
  const std::vector<Step>& steps() const { return steps_; }

 private:
  NodeDef* Add(absl::string_view op, std::initializer_list<int> inputs) {
    Step& step = steps_.emplace_back();
    step.node.set_op(std::string(op));
    step.inputs = inputs;
    for (size_t i = 0; i < inputs.size(); ++i) step.node.add_input("input");
    return &step.node;
  }

  std::vector<Step> steps_;
};

absl::Status Shape(ShapeContext& c) {
  Steps steps;
  GRADFLOW_RETURN_IF_ERROR(steps.Read(c.def()));
  PartialTensorShape previous;
  for (const Step& step : steps.steps()) {
    std::vector<const PartialTensorShape*> inputs;
    for (const int i : step.inputs) inputs.push_back(i == kPrevious ? &previous : &c.input(i));
    const auto constant = [&](int i) {
      return step.inputs[i] == kPrevious ? nullptr : c.input_tensor(step.inputs[i]);
    };
    ShapeContext inner(step.node, step.op->def(), inputs, step.input_types, 1, constant);
    GRADFLOW_RETURN_IF_ERROR(step.op->shape_fn()(inner));
    previous = inner.output(0);
  }
  c.set_output(0, std::move(previous));
  return absl::OkStatus();
}

class FusedPadConv final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(steps_.Read(construction.def()));
    for (const Step& step : steps_.steps()) {
      GRADFLOW_ASSIGN_OR_RETURN(const KernelRegistration* kernel,
                                GlobalRegistry().FindKernel(step.node));
      // Gives the constant to the convolution alone: the largest constant is the filter, which it
      // packs once.
      const bool is_last = &step == &steps_.steps().back();
      const KernelConstruction inner(step.node, step.op->def(), step.input_types, step.output_types,
                                     is_last ? construction.constant() : nullptr);
      GRADFLOW_ASSIGN_OR_RETURN(kernels_.emplace_back(), kernel->factory(inner));
    }
    return absl::OkStatus();
  }

  absl::Status Compute(KernelContext& ctx) const override {
    Tensor previous;
    for (size_t k = 0; k < kernels_.size(); ++k) {
      absl::InlinedVector<Tensor, 2> inputs;
      for (const int i : steps_.steps()[k].inputs) {
        if (i == kPrevious) {
          inputs.push_back(std::move(previous));
        } else {
          inputs.emplace_back(Tensor::Borrow(), ctx.input(i));
        }
      }
      absl::Status status;
      if (k + 1 == kernels_.size()) {
        KernelContext last = ctx.WithInputs(absl::MakeSpan(inputs));
        status = kernels_[k]->Compute(last);
      } else {
        Tensor output(Tensor::Unset{});
        KernelContext inner(absl::MakeSpan(inputs), absl::MakeSpan(&output, 1),
                            steps_.steps()[k].output_types, ctx.run());
        status = kernels_[k]->Compute(inner);
        previous = std::move(output);
      }
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  Steps steps_;
  std::vector<std::unique_ptr<OpKernel>> kernels_;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("FusedResizeAndPadConv2D")
      .Group("nn_ops")
      .Input("input: T")
      .Input("size: int32")
      .Input("paddings: int32")
      .Input("filter: T")
      .Output("output: T")
      .Attr("T: {half, float, double}")
      .Attr("resize_align_corners: bool = false")
      .Attr("mode: {'REFLECT', 'SYMMETRIC'}")
      .Attr("strides: list(int)")
      .Attr("padding: {'SAME', 'VALID'}")
      .Shape(Shape)
      .Doc(R"(Computes ResizeBilinear, MirrorPad and Conv2D, in that order.

The resized images are cast to type `T`. The result has the same bits as the result of the separate
ops.

input: Images [batch, height, width, depth].
size: A vector [height, width]: the size to resize to.
paddings: A matrix [4, 2]: the elements to add before and behind each dimension.
filter: A tensor [rows, columns, depth, output depth].
output: The result of the convolution.
T: The type of the inputs and outputs.
resize_align_corners: If true, aligns the centers of the corner pixels.
mode: `REFLECT` does not repeat the elements at the border, `SYMMETRIC` does.
strides: The distance between windows in the four dimensions; 1 for the first and the last.
padding: `SAME` pads with zeros so that strides of 1 keep the size. `VALID` does not pad.)");
  registry.Op("FusedPadConv2D")
      .Group("nn_ops")
      .Input("input: T")
      .Input("paddings: int32")
      .Input("filter: T")
      .Output("output: T")
      .Attr("T: {half, bfloat16, float, double}")
      .Attr("mode: {'REFLECT', 'SYMMETRIC'}")
      .Attr("strides: list(int)")
      .Attr("padding: {'SAME', 'VALID'}")
      .Shape(Shape)
      .Doc(R"(Computes MirrorPad and Conv2D, in that order.

The result has the same bits as the result of the separate ops.

input: Images [batch, height, width, depth].
paddings: A matrix [4, 2]: the elements to add before and behind each dimension.
filter: A tensor [rows, columns, depth, output depth].
output: The result of the convolution.
T: The type of the inputs and outputs.
mode: `REFLECT` does not repeat the elements at the border, `SYMMETRIC` does.
strides: The distance between windows in the four dimensions; 1 for the first and the last.
padding: `SAME` pads with zeros so that strides of 1 keep the size. `VALID` does not pad.)");
  registry.Kernel("FusedResizeAndPadConv2D", MakeKernel<FusedPadConv>)
      .Types("T", {DT_HALF, DT_FLOAT, DT_DOUBLE});
  registry.Kernel("FusedPadConv2D", MakeKernel<FusedPadConv>)
      .Types("T", {DT_HALF, DT_BFLOAT16, DT_FLOAT, DT_DOUBLE});
}

}  // namespace gradflow::fused_pad_conv
