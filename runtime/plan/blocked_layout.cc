// ChooseBlockedLayouts: images between convolutions stay in the blocked layout.
#include "gradflow/core/blocked_layout.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/fused_steps.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/status.h"
#include "gradflow/runtime/plan/fused_kernel.h"
#include "gradflow/runtime/plan/passes.h"
#include "gradflow/runtime/plan/plan_rewriter.h"

namespace gradflow {
namespace {

// An image that a node reads.
struct ImageInput {
  // The index of the input, or -1 if there is no such image.
  int input = -1;
  int64_t depth = 0;
  bool blocked = false;
};

// A node that can compute in the blocked layout: its kernel, its steps and the layouts of its
// images.
struct BlockedNode {
  const OpKernel* kernel = nullptr;
  // Keeps a kernel that another pass has made; otherwise null.
  std::shared_ptr<const OpKernel> owner;
  const BlockableConv* conv = nullptr;
  int64_t block = 0;
  BlockableConv::Depths depths;
  ImageInput image;
  ImageInput addend;
  // The input that is a bias, or -1.
  int bias = -1;
  // True if the bias is the constant addend of an addition, not of a BiasAdd. It may have leading
  // dimensions of 1.
  bool bias_is_row = false;
  StepOp relu = StepOp::kOther;
  bool output_blocked = false;
};

// A convolution with the steps that follow it. If it cannot compute in the blocked layout, it runs
// the original kernel on copies that are not blocked.
class BlockedKernel final : public OpKernel {
 public:
  explicit BlockedKernel(BlockedNode node) : node_(std::move(node)) {}

  absl::Status Compute(KernelContext& ctx) const override {
    BlockedConvArgs args;
    args.input = {&ctx.input(node_.image.input), node_.image.blocked};
    args.filter = &ctx.input(1);
    if (node_.addend.input >= 0) {
      args.addend = {&ctx.input(node_.addend.input), node_.addend.blocked};
    }
    args.relu = node_.relu;
    args.output_blocked = node_.output_blocked;
    bool done = false;
    if (SetBias(ctx, &args)) GRADFLOW_RETURN_IF_ERROR(node_.conv->ComputeBlocked(ctx, args, &done));
    return done ? absl::OkStatus() : ComputeOnCopies(ctx);
  }

 private:
  // Returns false if the bias is invalid.
  bool SetBias(const KernelContext& ctx, BlockedConvArgs* args) const {
    if (node_.bias < 0) return true;
    const Tensor& bias = ctx.input(node_.bias);
    if (!bias.IsInitialized() || bias.dtype() != DT_FLOAT ||
        bias.NumElements() != node_.depths.out || (bias.dims() != 1 && !node_.bias_is_row)) {
      return false;
    }
    args->bias = static_cast<const float*>(bias.raw_data());
    return true;
  }

  absl::Status ComputeOnCopies(KernelContext& ctx) const {
    std::vector<Tensor> inputs;
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      inputs.emplace_back(Tensor::Borrow(), ctx.input(i));
    }
    for (const ImageInput* image : {&node_.image, &node_.addend}) {
      if (!image->blocked) continue;
      const Tensor& blocks = ctx.input(image->input);
      Tensor copy;
      GRADFLOW_RETURN_IF_ERROR(
          ctx.AllocateTemp(DT_FLOAT, UnblockedShape(blocks.shape(), image->depth), &copy));
      CopyFromBlocked(ctx.run(), blocks, &copy);
      inputs[static_cast<size_t>(image->input)] = std::move(copy);
    }
    std::vector<Tensor> outputs(1, Tensor(Tensor::Unset{}));
    constexpr DataType kTypes[] = {DT_FLOAT};
    KernelContext plain_ctx(absl::MakeSpan(inputs), absl::MakeSpan(outputs), kTypes, ctx.run());
    GRADFLOW_RETURN_IF_ERROR(node_.kernel->Compute(plain_ctx));
    if (node_.output_blocked) {
      Tensor* to = nullptr;
      GRADFLOW_RETURN_IF_ERROR(
          ctx.AllocateOutput(0, BlockedShape(outputs[0].shape(), node_.block), &to));
      CopyToBlocked(ctx.run(), outputs[0], to);
    } else {
      ctx.set_output(0, std::move(outputs[0]));
    }
    return absl::OkStatus();
  }

  const BlockedNode node_;
};

class Blocker {
 public:
  Blocker(const PassContext& context, PlanGraph* graph)
      : rewriter_(context, graph), graph_(*graph) {}

  absl::Status Block() {
    index_.resize(static_cast<size_t>(graph_.num_nodes()), -1);
    for (const int32_t node : rewriter_.order()) {
      GRADFLOW_RETURN_IF_ERROR(rewriter_.CheckStop(node));
      GRADFLOW_RETURN_IF_ERROR(FindConv(node));
    }
    if (nodes_.empty()) return absl::OkStatus();
    FindBlockedOutputs();
    DropSmallGroups();
    for (size_t i = 0; i < nodes_.size(); ++i) Replace(i);
    return graph_.Prune();
  }

 private:
  // Adds a node to nodes_ if it is a convolution that can compute in the blocked layout.
  absl::Status FindConv(int32_t node) {
    if (graph_.output_types(node).size() != 1) return absl::OkStatus();
    BlockedNode found;
    found.owner = graph_.kernel(node);
    GRADFLOW_ASSIGN_OR_RETURN(found.kernel, rewriter_.KernelOf(node));
    const auto* const fused = dynamic_cast<const FusedKernel*>(found.kernel);
    const OpKernel* const head = fused == nullptr ? found.kernel : fused->links()[0].kernel;
    found.conv = dynamic_cast<const BlockableConv*>(head);
    if (found.conv == nullptr) return absl::OkStatus();
    const PlanGraph::Value image = graph_.edge(node, 0);
    Tensor filter;
    if (!ConstantOf(graph_.edge(node, 1), &filter)) return absl::OkStatus();
    found.block = found.conv->BlockSize(filter, &found.depths);
    if (found.block == 0) return absl::OkStatus();
    // The convolution is grouped if the filter has fewer input channels than the image.
    if (const int maker = IndexOf(image);
        maker >= 0 && nodes_[static_cast<size_t>(maker)].depths.out != found.depths.in) {
      return absl::OkStatus();
    }
    found.image = {0, found.depths.in, false};
    if (fused != nullptr && !AddSteps(node, *fused, &found)) return absl::OkStatus();
    index_[static_cast<size_t>(node)] = static_cast<int>(nodes_.size());
    nodes_.push_back(std::move(found));
    numbers_.push_back(node);
    return absl::OkStatus();
  }

  // Sets *constant to a float value that is the same in all runs. Returns false for any other
  // value.
  bool ConstantOf(PlanGraph::Value value, Tensor* constant) {
    return rewriter_.ConstantOf(value, constant) && constant->dtype() == DT_FLOAT;
  }

  // Stores the steps in *found. Returns false unless they are at most one bias, at most one
  // addition of another convolution's image with the same number of channels, and at the end a ReLU
  // or nothing.
  bool AddSteps(int32_t node, const FusedKernel& fused, BlockedNode* found) {
    for (const FusedKernel::Link& link : fused.links().subspan(1)) {
      if (found->relu != StepOp::kOther) return false;
      const StepOp op = link.step->step_op();
      switch (op) {
        case StepOp::kBias:
          if (found->bias >= 0) return false;
          found->bias = link.first_input;
          break;
        case StepOp::kAdd:
          if (!AddAddend(graph_.edge(node, link.first_input), link.first_input, found))
            return false;
          break;
        case StepOp::kRelu:
        case StepOp::kRelu6:
          found->relu = op;
          break;
        case StepOp::kOther:
          return false;
      }
    }
    return true;
  }

  bool AddAddend(PlanGraph::Value value, int input, BlockedNode* found) {
    const int64_t depth = found->depths.out;
    if (Tensor row; ConstantOf(value, &row)) {
      constexpr int kImageDims = 4;
      if (found->bias >= 0 || row.dims() == 0 || row.dims() > kImageDims ||
          row.NumElements() != depth || row.dim_size(row.dims() - 1) != depth) {
        return false;
      }
      found->bias = input;
      found->bias_is_row = true;
      return true;
    }
    // The addend must be a convolution's output: its rank is known. Broadcasting in a sum could
    // raise the rank.
    const int maker = IndexOf(value);
    if (maker < 0 || found->addend.input >= 0 ||
        nodes_[static_cast<size_t>(maker)].depths.out != depth) {
      return false;
    }
    found->addend = {input, depth, false};
    return true;
  }

  // Returns the index in nodes_ of the node that makes a value, or -1.
  int IndexOf(PlanGraph::Value value) const {
    return value.is_feed() || value.output != 0 ? -1 : index_[static_cast<size_t>(value.node)];
  }

  // An output is blocked if it has readers and all of them take it as an image with blocks of the
  // same size.
  void FindBlockedOutputs() {
    std::vector<bool> has_reader(nodes_.size());
    // An image with few channels would take much more memory in whole blocks.
    for (BlockedNode& node : nodes_) node.output_blocked = 2 * node.depths.out >= node.block;
    for (const int32_t node : graph_.order()) {
      const int reader = index_[static_cast<size_t>(node)];
      for (int e = 0; e < graph_.num_inputs(node); ++e) {
        const int i = IndexOf(graph_.edge(node, e));
        if (i < 0) continue;
        has_reader[static_cast<size_t>(i)] = true;
        BlockedNode& maker = nodes_[static_cast<size_t>(i)];
        if (reader < 0 || !Takes(nodes_[static_cast<size_t>(reader)], e, maker)) {
          maker.output_blocked = false;
        }
      }
    }
    for (const PlanGraph::Value root : graph_.roots()) {
      if (const int i = IndexOf(graph_.Resolve(root)); i >= 0)
        nodes_[static_cast<size_t>(i)].output_blocked = false;
    }
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!has_reader[i]) nodes_[i].output_blocked = false;
    }
  }

  static bool Takes(const BlockedNode& reader, int input, const BlockedNode& maker) {
    return (input == reader.image.input || input == reader.addend.input) &&
           reader.block == maker.block;
  }

  // Nodes that blocked images connect form a group. Images at the border of a group are converted,
  // which costs more than a small group gains.
  void DropSmallGroups() {
    group_.resize(nodes_.size());
    for (size_t i = 0; i < nodes_.size(); ++i) group_[i] = i;
    const auto for_each_image = [&](const auto& fn) {
      for (size_t i = 0; i < nodes_.size(); ++i) {
        for (ImageInput* image : {&nodes_[i].image, &nodes_[i].addend}) {
          if (image->input >= 0) fn(i, image);
        }
      }
    };
    for_each_image([&](size_t i, ImageInput* image) {
      const int maker = IndexOf(graph_.edge(numbers_[i], image->input));
      image->blocked = maker >= 0 && nodes_[static_cast<size_t>(maker)].output_blocked;
      if (image->blocked) group_[Group(i)] = Group(static_cast<size_t>(maker));
    });
    std::vector<int> inside(nodes_.size());
    std::vector<int> border(nodes_.size());
    for_each_image([&](size_t i, ImageInput* image) {
      // Images with few channels are cheap to convert.
      if (!image->blocked && image->depth >= nodes_[i].block) ++border[Group(i)];
    });
    for (size_t i = 0; i < nodes_.size(); ++i) {
      ++(nodes_[i].output_blocked ? inside : border)[Group(i)];
    }
    // The minimum number of blocked images per converted image. oneDNN's blocked kernels gain less
    // with large filters than with pointwise and depthwise filters.
    constexpr int kInsideForBorder = 3;
    const auto is_small = [&](size_t i) {
      return inside[Group(i)] < kInsideForBorder * border[Group(i)];
    };
    for_each_image([&](size_t i, ImageInput* image) {
      if (is_small(i)) image->blocked = false;
    });
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (is_small(i)) nodes_[i].output_blocked = false;
    }
  }

  // Returns the representative of the group of nodes_[i].
  size_t Group(size_t i) {
    while (group_[i] != i) i = group_[i] = group_[group_[i]];
    return i;
  }

  void Replace(size_t i) {
    BlockedNode& blocked = nodes_[i];
    if (!blocked.output_blocked && !blocked.image.blocked && !blocked.addend.blocked) return;
    const int32_t node = numbers_[i];
    PlanGraph::NewNode added =
        rewriter_.NewNodeFor({node}, absl::StrCat("Blocked", rewriter_.OpOf(node)));
    for (int e = 0; e < graph_.num_inputs(node); ++e) added.inputs.push_back(graph_.edge(node, e));
    added.kernel = std::make_shared<BlockedKernel>(std::move(blocked));
    rewriter_.Replace(node, std::move(added));
  }

  PlanRewriter rewriter_;
  PlanGraph& graph_;
  // For each node of the graph, its index in nodes_, or -1.
  std::vector<int> index_;
  std::vector<BlockedNode> nodes_;
  // For each element of nodes_, its node in the graph.
  std::vector<int32_t> numbers_;
  // For each element of nodes_, the index of another member of its group. The representative of a
  // group has its own index.
  std::vector<size_t> group_;
};

}  // namespace

absl::Status ChooseBlockedLayouts(const PassContext& context, PlanGraph* graph) {
  if (!context.options.fold_batch_norms || !context.options.fuse) return absl::OkStatus();
  return Blocker(context, graph).Block();
}

}  // namespace gradflow
