// Convolutions of images in blocked layout with oneDNN.
//
// The sizes alone determine how a convolution is divided into tasks: into images, and into ranges
// of the output's channel blocks. The bits of results do not depend on the number of threads, but
// they depend on the instruction set of the processor.
#include <cstdint>
#include <memory>

#include "gradflow/ops/nn/conv_engine.h"

#ifndef GRADFLOW_HAS_ONEDNN

namespace gradflow {

int64_t OneDnnBlockSize() { return 0; }
std::unique_ptr<BlockedConv> MakeBlockedConv() { return nullptr; }

}  // namespace gradflow

#else

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/nn/conv_onednn.h"
#include "gradflow/ops/nn/onednn.h"

namespace gradflow {
namespace {

using onednn::Desc;
using onednn::Tag;

// The number of multiplications of a task of a large image, and the minimum for a task.
constexpr double kTaskProducts = 16e6;
constexpr double kSmallTaskProducts = 2.5e6;
// Larger results are also divided. Both criteria divide the work into at most kFewTasks tasks.
constexpr double kSmallTaskBytes = 400e3;
constexpr double kFewTasks = 4;
// A run can be stopped only between tasks.
constexpr double kMaxTaskProducts = 16e9;

// The sizes and fused steps that determine the primitives.
struct BlockedConvKey {
  ConvGeometry geometry;
  bool input_blocked = false;
  bool bias = false;
  bool addend = false;
  StepOp relu = StepOp::kOther;

  friend bool operator==(const BlockedConvKey& a, const BlockedConvKey& b) {
    return a.geometry == b.geometry && a.input_blocked == b.input_blocked && a.bias == b.bias &&
           a.addend == b.addend && a.relu == b.relu;
  }
};

// Channels [begin, begin + size) of the output.
struct ChannelRange {
  int64_t begin = 0;
  int64_t size = 0;
  dnnl::primitive primitive;
  Desc input;
  Desc filter;
  Desc output;
  Desc scratch;
  // The range within the plain filter.
  Desc plain;
  // The position of the range in the packed filter, in floats.
  int64_t offset = 0;
  dnnl::primitive pack;
};

struct BlockedPlan {
  BlockedConvKey form;
  // False if oneDNN has no fast code.
  bool usable = false;
  std::vector<ChannelRange> ranges;
  // The number of images of a task.
  int64_t images = 1;
  // The number of channels per block in the input of the primitives.
  int64_t input_block = 0;
  int64_t packed_floats = 0;
  int64_t scratch_floats = 0;
};

class BlockedConvPlanner {
 public:
  explicit BlockedConvPlanner(const BlockedConvKey& form) : form_(form), g_(form.geometry) {}

  std::shared_ptr<const BlockedPlan> Make() {
    auto plan = std::make_shared<BlockedPlan>();
    plan->form = form_;
    if (!FitsInt()) return plan;
    const OneOpenMpThread one_thread;
    try {
      plan->usable = SetRanges(plan.get());
    } catch (const dnnl::error&) {
      // oneDNN has no code for this form.
    }
    if (!plan->usable) plan->ranges.clear();
    return plan;
  }

 private:
  int64_t block() const { return OneDnnBlockSize(); }
  bool depthwise() const { return g_.groups > 1; }

  bool FitsInt() const {
    constexpr double kMax = std::numeric_limits<int32_t>::max();
    for (size_t s = 0; s < kConvSpatial; ++s) {
      // The range of input positions, including the padding on both sides.
      const double reach = static_cast<double>(g_.in[s]) +
                           static_cast<double>(g_.out[s]) * static_cast<double>(g_.stride[s]) +
                           static_cast<double>(g_.filter[s]) * static_cast<double>(g_.dilation[s]);
      if (reach > kMax / 2) return false;
    }
    const double filter = static_cast<double>(g_.taps()) * Padded(g_.out_depth) *
                          (depthwise() ? 1 : Padded(g_.in_depth));
    return std::max(ImageElements(), filter) < kMax / 4;
  }

  double Padded(int64_t depth) const {
    return static_cast<double>(NumBlocks(depth, block()) * block());
  }
  // Returns the number of elements of an image of the input or the output, whichever is larger.
  double ImageElements() const {
    return std::max(static_cast<double>(g_.in_volume()) * Padded(g_.in_depth),
                    static_cast<double>(g_.out_volume()) * Padded(g_.out_depth));
  }

  bool SetRanges(BlockedPlan* plan) const {
    const double batch = static_cast<double>(g_.batch);
    const double products = g_.products() / batch;
    const double bytes = 4.0 * static_cast<double>(g_.out_volume() * g_.out_depth);
    const double small = std::max(products / kSmallTaskProducts, bytes / kSmallTaskBytes);
    double tasks = std::max(products / kTaskProducts, std::min(small, kFewTasks / batch));
    // Two threads share an even number of tasks equally.
    if (tasks > 1.2) tasks = 2 * std::ceil(tasks / 2 - 0.25);
    const int64_t blocks = NumBlocks(g_.out_depth, block());
    const int64_t parts = std::clamp<int64_t>(static_cast<int64_t>(tasks), 1, blocks);
    if (products > kMaxTaskProducts * static_cast<double>(parts)) return false;
    // Several images are computed together if both their inputs and their outputs are small.
    const double image = std::max(small, 4 * ImageElements() / kSmallTaskBytes);
    plan->images = std::clamp<int64_t>(static_cast<int64_t>(1 / image), 1, g_.batch);
    while (g_.batch % plan->images != 0) --plan->images;
    plan->input_block = block();
    for (int64_t i = 0; i < parts; ++i) {
      ChannelRange range;
      range.begin = blocks * i / parts * block();
      range.size = std::min(blocks * (i + 1) / parts * block(), g_.out_depth) - range.begin;
      if (!SetPrimitive(plan, &range)) return false;
      range.offset = plan->packed_floats;
      plan->packed_floats += onednn::Floats(range.filter);
      plan->scratch_floats = std::max(plan->scratch_floats, onednn::Floats(range.scratch));
      plan->ranges.push_back(std::move(range));
    }
    return true;
  }

  static Desc Images(int64_t images, int64_t depth, const ConvSizes& sizes, Tag tag) {
    return Desc({images, depth, sizes[1], sizes[2]}, onednn::kFloat, tag);
  }
  Tag BlockedTag() const { return block() == 16 ? Tag::nChw16c : Tag::nChw8c; }

  bool SetPrimitive(BlockedPlan* plan, ChannelRange* range) const {
    ConvGeometry part = g_;
    part.out_depth = range->size;
    if (depthwise()) part.groups = part.in_depth = range->size;
    // Photos have few channels. For these, oneDNN has code that reads planes, which are blocks of
    // one channel.
    const bool planes = !form_.input_blocked && !depthwise() && g_.in_depth < block();
    if (planes) plan->input_block = 1;
    const Desc input =
        Images(plan->images, part.in_depth, part.in, planes ? Tag::nchw : BlockedTag());
    const Desc output = Images(plan->images, part.out_depth, part.out, BlockedTag());
    const Desc bias = form_.bias ? Desc({part.out_depth}, onednn::kFloat, Tag::x) : Desc();
    dnnl::primitive_attr attr;
    onednn::SetModes(&attr);
    attr.set_post_ops(PostOps(output));
    const onednn::ConvDims dims(g_, part);
    const auto desc = onednn::Describe<dnnl::convolution_forward>(
        attr, dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, input,
        onednn::AnyFilter(g_, part), bias, output, dims.strides, dims.dilations, dims.before,
        dims.after);
    if (!absl::StrContains(desc.impl_info_str(), "jit")) return false;
    range->primitive = dnnl::convolution_forward(desc);
    range->input = input;
    range->filter = desc.weights_desc();
    range->output = output;
    range->scratch = desc.scratchpad_desc();
    range->plain = onednn::PlainFilter(g_, part);
    range->pack = dnnl::reorder(dnnl::reorder::primitive_desc(onednn::Engine(), range->plain,
                                                              onednn::Engine(), range->filter));
    return true;
  }

  // The addition is the first post-operation, as RunTask() expects.
  dnnl::post_ops PostOps(const Desc& output) const {
    dnnl::post_ops post_ops;
    if (form_.addend) post_ops.append_binary(dnnl::algorithm::binary_add, output);
    if (form_.relu == StepOp::kRelu) {
      onednn::AppendElementwise(dnnl::algorithm::eltwise_relu, 0, 0, &post_ops);
    } else if (form_.relu == StepOp::kRelu6) {
      onednn::AppendElementwise(dnnl::algorithm::eltwise_clip_v2, 0, 6, &post_ops);
    }
    return post_ops;
  }

  const BlockedConvKey& form_;
  const ConvGeometry& g_;
};

class OneDnnBlockedConv final : public BlockedConv {
 public:
  absl::Status Run(KernelContext& ctx, const ConvGeometry& geometry, const BlockedConvArgs& args,
                   const TensorShape& image, bool* done) override {
    const std::shared_ptr<const BlockedPlan> plan =
        FindPlan({geometry, args.input.blocked, args.bias != nullptr, args.addend.tensor != nullptr,
                  args.relu});
    *done = plan->usable;
    if (!plan->usable) return absl::OkStatus();
    const TensorShape shape = BlockedShape(image, OneDnnBlockSize());
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, args.output_blocked ? shape : image, &output));
    Tensor input;
    Tensor filter;
    Tensor addend;
    Tensor result = *output;
    GRADFLOW_RETURN_IF_ERROR(InBlocks(ctx, args.input, plan->input_block, &input));
    GRADFLOW_RETURN_IF_ERROR(InBlocks(ctx, args.addend, OneDnnBlockSize(), &addend));
    GRADFLOW_RETURN_IF_ERROR(PackedFilter(ctx, plan, *args.filter, &filter));
    if (!args.output_blocked) {
      GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_FLOAT, shape, &result));
    }
    const int64_t ranges = static_cast<int64_t>(plan->ranges.size());
    GRADFLOW_RETURN_IF_ERROR(onednn::ForEach(
        ctx, geometry.batch / plan->images * ranges, plan->scratch_floats,
        [&](int64_t i, float* scratch) {
          RunTask(*plan, i / ranges * plan->images, plan->ranges[static_cast<size_t>(i % ranges)],
                  {input, filter, args.bias, addend, &result}, scratch);
        }));
    if (args.output_blocked) return absl::OkStatus();
    // Releases the memory for reuse.
    input = Tensor();
    addend = Tensor();
    CopyFromBlocked(ctx.run(), result, output);
    return absl::OkStatus();
  }

 private:
  struct Tensors {
    const Tensor& input;
    const Tensor& filter;
    const float* bias;
    // Uninitialized if there is no addend.
    const Tensor& addend;
    Tensor* result;
  };

  std::shared_ptr<const BlockedPlan> FindPlan(const BlockedConvKey& form) {
    return plans_.FindOrMake([&](const BlockedPlan& plan) { return plan.form == form; },
                             [&] { return BlockedConvPlanner(form).Make(); });
  }

  // Sets *blocks to the image in blocked layout with `block` channels per block.
  static absl::Status InBlocks(KernelContext& ctx, const BlockedImage& image, int64_t block,
                               Tensor* blocks) {
    if (image.tensor == nullptr) return absl::OkStatus();
    if (image.blocked) {
      *blocks = *image.tensor;
      return absl::OkStatus();
    }
    GRADFLOW_RETURN_IF_ERROR(
        ctx.AllocateTemp(DT_FLOAT, BlockedShape(image.tensor->shape(), block), blocks));
    CopyToBlocked(ctx.run(), *image.tensor, blocks);
    return absl::OkStatus();
  }

  // Sets *packed to the filter in the layout that the primitives need.
  absl::Status PackedFilter(KernelContext& ctx, const std::shared_ptr<const BlockedPlan>& plan,
                            const Tensor& filter, Tensor* packed) {
    {
      MutexLock lock(&mutex_);
      if (packed_plan_ == plan) {
        *packed = packed_;
        return absl::OkStatus();
      }
    }
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_FLOAT, {plan->packed_floats}, packed));
    const float* const plain = static_cast<const float*>(filter.raw_data());
    float* const to = static_cast<float*>(packed->raw_data());
    GRADFLOW_RETURN_IF_ERROR(
        onednn::ForEach(ctx, static_cast<int64_t>(plan->ranges.size()), 0, [&](int64_t i, float*) {
          const ChannelRange& range = plan->ranges[static_cast<size_t>(i)];
          onednn::Execute(range.pack,
                          {{DNNL_ARG_FROM, onednn::Memory(range.plain, plain + range.begin)},
                           {DNNL_ARG_TO, onednn::Memory(range.filter, to + range.offset)}});
        }));
    if (ctx.ShouldStop()) return absl::OkStatus();
    MutexLock lock(&mutex_);
    packed_plan_ = plan;
    packed_ = *packed;
    return absl::OkStatus();
  }

  static int64_t Pixels(const Tensor& blocks) { return blocks.dim_size(2) * blocks.dim_size(3); }
  // Returns the index of the first element of channel `channel` of an image. REQUIRES: a block
  // begins at `channel`
  static int64_t IndexOf(const Tensor& blocks, int64_t image, int64_t channel) {
    const int64_t size = blocks.NumElements() / blocks.dim_size(0);
    return image * size + channel * Pixels(blocks);
  }
  static const float* At(const Tensor& blocks, int64_t image, int64_t channel) {
    return static_cast<const float*>(blocks.raw_data()) + IndexOf(blocks, image, channel);
  }

  static void RunTask(const BlockedPlan& plan, int64_t image, const ChannelRange& range,
                      const Tensors& tensors, float* scratch) {
    const ConvGeometry& g = plan.form.geometry;
    const bool depthwise = g.groups > 1;
    const float* const filter = static_cast<const float*>(tensors.filter.raw_data());
    std::unordered_map<int, dnnl::memory> memory = {
        {DNNL_ARG_SRC,
         onednn::Memory(range.input, At(tensors.input, image, depthwise ? range.begin : 0))},
        {DNNL_ARG_WEIGHTS, onednn::Memory(range.filter, filter + range.offset)},
        {DNNL_ARG_DST, onednn::Memory(range.output, At(*tensors.result, image, range.begin))},
        {DNNL_ARG_SCRATCHPAD, onednn::Memory(range.scratch, scratch)}};
    if (plan.form.bias) {
      const Desc bias({range.size}, onednn::kFloat, Tag::x);
      memory.emplace(DNNL_ARG_BIAS, onednn::Memory(bias, tensors.bias + range.begin));
    }
    if (plan.form.addend) {
      memory.emplace(DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1,
                     onednn::Memory(range.output, At(tensors.addend, image, range.begin)));
    }
    onednn::Execute(range.primitive, memory);
    // An infinite input times the padding of the filter gives NaN in the unused channels of the
    // last block. A ReLU turns this NaN into 0, so the channels need to be cleared only without a
    // ReLU.
    Tensor& result = *tensors.result;
    const int64_t block = result.dim_size(4);
    const int64_t rest = g.out_depth % block;
    if (rest == 0 || range.begin + range.size < g.out_depth || plan.form.relu != StepOp::kOther) {
      return;
    }
    float* const elements = static_cast<float*>(result.raw_data());
    for (int64_t i = image; i < image + plan.images; ++i) {
      float* const last = elements + IndexOf(result, i, g.out_depth - rest);
      for (int64_t p = 0; p < Pixels(result); ++p) {
        std::fill(last + p * block + rest, last + (p + 1) * block, 0.0f);
      }
    }
  }

  onednn::RecentPlans<BlockedPlan> plans_;
  Mutex mutex_;
  // The plan that `packed_` belongs to. Null if there is no packed filter.
  std::shared_ptr<const BlockedPlan> packed_plan_ ABSL_GUARDED_BY(mutex_);
  Tensor packed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

int64_t OneDnnBlockSize() {
#if defined(__x86_64__)
  static const int64_t block = [] {
    const auto has = [](dnnl::cpu_isa isa) {
      const auto bits = static_cast<unsigned>(isa);
      return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & bits) == bits;
    };
    return has(dnnl::cpu_isa::avx512_core) ? 16 : has(dnnl::cpu_isa::avx2) ? 8 : 0;
  }();
  return block;
#else
  // On other processors, oneDNN claims to support all x86 instruction sets.
  return 0;
#endif
}

std::unique_ptr<BlockedConv> MakeBlockedConv() {
  if (OneDnnBlockSize() == 0) return nullptr;
  return std::make_unique<OneDnnBlockedConv>();
}

}  // namespace gradflow

#endif  // GRADFLOW_HAS_ONEDNN
