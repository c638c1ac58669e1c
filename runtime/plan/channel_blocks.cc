// BlockChannels: images between convolutions stay in blocks of channels.
#include "gradflow/core/channel_blocks.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/fused_steps.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/status.h"
#include "gradflow/runtime/plan/fused_kernel.h"
#include "gradflow/runtime/plan/op_traits.h"
#include "gradflow/runtime/plan/passes.h"

namespace gradflow {
namespace {

// An input of the node that is an image, or may be.
struct ImageInput {
  int input = 0;
  // kOther for the input of the convolution.
  StepOp step = StepOp::kOther;
  // The depth if it is in blocks.
  int64_t depth = 0;
  bool in_blocks = false;
};

// What the kernel of a node computes, and in which layouts.
struct BlockedNode {
  const OpKernel* kernel = nullptr;
  // Keeps a kernel that another pass has made; otherwise null.
  std::shared_ptr<const OpKernel> owner;
  const BlockableConv* conv = nullptr;
  int64_t block = 0;
  BlockableConv::Depths depths;
  // The input of the convolution first.
  absl::InlinedVector<ImageInput, 2> images;
  // The input of a bias, or -1.
  int bias = -1;
  StepOp rectifier = StepOp::kOther;
  bool output_in_blocks = false;
};

// A convolution with the steps behind it. Where it cannot compute on blocks, it runs the node's own
// kernel on copies.
class BlockedKernel final : public OpKernel {
 public:
  explicit BlockedKernel(BlockedNode node) : node_(std::move(node)) {}

  absl::Status Compute(KernelContext& ctx) const override {
    BlockedConvArgs args;
    args.filter = &ctx.input(1);
    args.rectifier = node_.rectifier;
    args.output_in_blocks = node_.output_in_blocks;
    bool suits = node_.bias < 0 || SetBias(ctx.input(node_.bias), &args);
    for (const ImageInput& image : node_.images) {
      const Tensor& tensor = ctx.input(image.input);
      if (image.step == StepOp::kOther) {
        args.input = {&tensor, image.in_blocks};
      } else if (image.in_blocks || !IsRow(tensor)) {
        args.addend = {&tensor, image.in_blocks};
      } else {
        suits = suits && SetBias(tensor, &args);
      }
    }
    bool done = false;
    if (suits) GRADFLOW_RETURN_IF_ERROR(node_.conv->ComputeBlocked(ctx, args, &done));
    return done ? absl::OkStatus() : ComputeOnCopies(ctx);
  }

 private:
  // True if the tensor has an element for each channel and is added to each pixel.
  bool IsRow(const Tensor& tensor) const {
    constexpr int kImageDims = 4;
    return tensor.IsInitialized() && tensor.dims() >= 1 && tensor.dims() <= kImageDims &&
           tensor.NumElements() == node_.depths.out &&
           tensor.dim_size(tensor.dims() - 1) == node_.depths.out;
  }

  // Returns false if there is a bias already, or the tensor is none.
  bool SetBias(const Tensor& tensor, BlockedConvArgs* args) const {
    if (args->bias != nullptr || !IsRow(tensor) || tensor.dtype() != DT_FLOAT) return false;
    args->bias = static_cast<const float*>(tensor.raw_data());
    return true;
  }

  absl::Status ComputeOnCopies(KernelContext& ctx) const {
    std::vector<Tensor> inputs;
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      inputs.emplace_back(Tensor::Borrow(), ctx.input(i));
    }
    for (const ImageInput& image : node_.images) {
      if (!image.in_blocks) continue;
      const Tensor& blocks = ctx.input(image.input);
      Tensor copy;
      GRADFLOW_RETURN_IF_ERROR(
          ctx.AllocateTemp(DT_FLOAT, ShapeOfBlocks(blocks.shape(), image.depth), &copy));
      CopyFromBlocks(ctx.run(), blocks, &copy);
      inputs[static_cast<size_t>(image.input)] = std::move(copy);
    }
    std::vector<Tensor> outputs(1, Tensor(Tensor::Unset{}));
    constexpr DataType kTypes[] = {DT_FLOAT};
    KernelContext plain_ctx(absl::MakeSpan(inputs), absl::MakeSpan(outputs), kTypes, ctx.run());
    GRADFLOW_RETURN_IF_ERROR(node_.kernel->Compute(plain_ctx));
    if (node_.output_in_blocks) {
      Tensor* to = nullptr;
      GRADFLOW_RETURN_IF_ERROR(
          ctx.AllocateOutput(0, ShapeInBlocks(outputs[0].shape(), node_.block), &to));
      CopyToBlocks(ctx.run(), outputs[0], to);
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
      : kernels_(*context.kernels), graph_(*graph) {}

  absl::Status Block() {
    index_.resize(static_cast<size_t>(graph_.num_nodes()), -1);
    for (const int32_t node : graph_.order()) FindConv(node);
    if (nodes_.empty()) return absl::OkStatus();
    FindBlockedOutputs();
    DropSmallGroups();
    for (size_t i = 0; i < nodes_.size(); ++i) Replace(i);
    return graph_.Prune();
  }

 private:
  // Adds a node to nodes_ if it is a convolution that can compute on blocks.
  void FindConv(int32_t node) {
    if (graph_.has_known_value(node) || graph_.stateful(node) ||
        graph_.output_types(node).size() != 1) {
      return;
    }
    BlockedNode found;
    found.owner = graph_.kernel(node);
    found.kernel = found.owner.get();
    if (found.kernel == nullptr) {
      found.kernel = kernels_.Find(graph_.origin(node));
      if (found.kernel == nullptr || !IsPure(graph_.origin(node))) return;
    }
    const auto* const fused = dynamic_cast<const FusedKernel*>(found.kernel);
    const OpKernel* const head = fused == nullptr ? found.kernel : fused->links()[0].kernel;
    found.conv = dynamic_cast<const BlockableConv*>(head);
    if (found.conv == nullptr) return;
    found.block = found.conv->ChannelBlock(&found.depths);
    // The kernel's constant is its filter if the image is none.
    if (found.block == 0 || !IsConstant(graph_.edge(node, 1)) || IsConstant(graph_.edge(node, 0))) {
      return;
    }
    found.images.push_back({0, StepOp::kOther, found.depths.in, false});
    if (fused != nullptr && !AddSteps(*fused, &found)) return;
    index_[static_cast<size_t>(node)] = static_cast<int>(nodes_.size());
    nodes_.push_back(std::move(found));
    numbers_.push_back(node);
  }

  bool IsConstant(PlanGraph::Value value) const {
    return !value.is_feed() && graph_.num_edges(value.node) == 0 &&
           (graph_.kernel(value.node) != nullptr || graph_.origin(value.node).IsConstant());
  }

  // Returns false if the node has other steps than a bias, an image and a rectifier.
  static bool AddSteps(const FusedKernel& fused, BlockedNode* found) {
    for (const FusedKernel::Link& link : fused.links().subspan(1)) {
      const StepOp op = link.step->step_op();
      if (found->rectifier != StepOp::kOther) return false;
      switch (op) {
        case StepOp::kBias:
          if (found->bias >= 0) return false;
          found->bias = link.first_input;
          break;
        case StepOp::kAdd:
          if (found->images.size() > 1) return false;
          found->images.push_back({link.first_input, op, found->depths.out, false});
          break;
        case StepOp::kRelu:
        case StepOp::kRelu6:
          found->rectifier = op;
          break;
        case StepOp::kOther:
          return false;
      }
    }
    return true;
  }

  // Returns the index in nodes_ of the node that makes a value, or -1.
  int IndexOf(PlanGraph::Value value) const {
    return value.is_feed() || value.output != 0 ? -1 : index_[static_cast<size_t>(value.node)];
  }

  // An output can be in blocks if all its readers take it as an image of its depth.
  void FindBlockedOutputs() {
    std::vector<bool> has_reader(nodes_.size());
    // Few channels would take the memory of a whole block.
    for (BlockedNode& node : nodes_) node.output_in_blocks = 2 * node.depths.out >= node.block;
    for (const int32_t node : graph_.order()) {
      const int reader = index_[static_cast<size_t>(node)];
      for (int e = 0; e < graph_.num_inputs(node); ++e) {
        const int i = IndexOf(graph_.edge(node, e));
        if (i < 0) continue;
        has_reader[static_cast<size_t>(i)] = true;
        BlockedNode& maker = nodes_[static_cast<size_t>(i)];
        if (reader < 0 || !Takes(nodes_[static_cast<size_t>(reader)], e, maker)) {
          maker.output_in_blocks = false;
        }
      }
    }
    for (const PlanGraph::Value root : graph_.roots()) {
      if (const int i = IndexOf(root); i >= 0)
        nodes_[static_cast<size_t>(i)].output_in_blocks = false;
    }
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!has_reader[i]) nodes_[i].output_in_blocks = false;
    }
  }

  static bool Takes(const BlockedNode& reader, int input, const BlockedNode& maker) {
    for (const ImageInput& image : reader.images) {
      if (image.input == input) {
        return image.depth == maker.depths.out && reader.block == maker.block;
      }
    }
    return false;
  }

  // Nodes that images in blocks connect are a group. Images at its border are converted, so small
  // groups are not worth it.
  void DropSmallGroups() {
    group_.resize(nodes_.size());
    for (size_t i = 0; i < nodes_.size(); ++i) group_[i] = i;
    const auto for_each_image = [&](const auto& fn) {
      for (size_t i = 0; i < nodes_.size(); ++i) {
        for (ImageInput& image : nodes_[i].images) fn(i, &image, MakerOf(i, image));
      }
    };
    for_each_image([&](size_t i, ImageInput* image, int maker) {
      image->in_blocks = maker >= 0 && nodes_[static_cast<size_t>(maker)].output_in_blocks;
      if (image->in_blocks) group_[Group(i)] = Group(static_cast<size_t>(maker));
    });
    std::vector<int> inside(nodes_.size());
    std::vector<int> border(nodes_.size());
    for_each_image([&](size_t i, ImageInput* image, int) {
      // Images of few channels are small, and constants are mostly rows.
      if (!image->in_blocks && image->depth >= nodes_[i].block &&
          !IsConstant(graph_.edge(numbers_[i], image->input))) {
        ++border[Group(i)];
      }
    });
    for (size_t i = 0; i < nodes_.size(); ++i) {
      ++(nodes_[i].output_in_blocks ? inside : border)[Group(i)];
    }
    const auto is_small = [&](size_t i) { return inside[Group(i)] < 2 * border[Group(i)]; };
    for_each_image([&](size_t i, ImageInput* image, int) {
      if (is_small(i)) image->in_blocks = false;
    });
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (is_small(i)) nodes_[i].output_in_blocks = false;
    }
  }

  int MakerOf(size_t i, const ImageInput& image) const {
    return IndexOf(graph_.edge(numbers_[i], image.input));
  }

  // Returns the representative of the group of nodes_[i].
  size_t Group(size_t i) {
    while (group_[i] != i) i = group_[i] = group_[group_[i]];
    return i;
  }

  void Replace(size_t i) {
    BlockedNode& blocked = nodes_[i];
    bool uses_blocks = blocked.output_in_blocks;
    for (const ImageInput& image : blocked.images) uses_blocks = uses_blocks || image.in_blocks;
    if (!uses_blocks) return;
    const int32_t node = numbers_[i];
    PlanGraph::NewNode added;
    if (const PlanNodeLabel* const label = graph_.label(node)) {
      added.label = *label;
    } else {
      const Node& origin = graph_.origin(node);
      added.label = {origin.name(), origin.type_string(), {&origin}};
    }
    added.label.op = absl::StrCat("Blocked", added.label.op);
    added.output_types = {DT_FLOAT};
    added.device = graph_.device(node);
    for (int e = 0; e < graph_.num_edges(node); ++e) {
      const PlanGraph::Value value = graph_.edge(node, e);
      if (e < graph_.num_inputs(node)) {
        added.inputs.push_back(value);
      } else if (!value.is_feed()) {
        added.control_inputs.push_back(value.node);
      }
    }
    added.kernel = std::make_shared<BlockedKernel>(std::move(blocked));
    graph_.Replace(node, graph_.AddNode(std::move(added)));
  }

  KernelCache& kernels_;
  PlanGraph& graph_;
  // By node: the index in nodes_, or -1.
  std::vector<int> index_;
  std::vector<BlockedNode> nodes_;
  // The numbers of nodes_ in the graph.
  std::vector<int32_t> numbers_;
  // By index in nodes_: a node of the same group. Representatives are their own.
  std::vector<size_t> group_;
};

}  // namespace

absl::Status BlockChannels(const PassContext& context, PlanGraph* graph) {
  if (!context.options.fold_batch_norms || !context.options.fuse) return absl::OkStatus();
  return Blocker(context, graph).Block();
}

}  // namespace gradflow
