// Convolutions by oneDNN of images in channel blocks.
//
// A convolution is divided into tasks by its sizes alone: images, and ranges of the output's
// blocks. The bits of results do not depend on the number of threads. They do depend on the
// instructions of the processor.
#include <cstdint>
#include <memory>

#include "gradflow/ops/nn/conv_engine.h"

#ifndef GRADFLOW_HAS_ONEDNN

namespace gradflow {

int64_t OneDnnChannelBlock() { return 0; }
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

// The multiplications of a task of a large image, and the minimum of a task.
constexpr double kTaskProducts = 16e6;
constexpr double kSmallTaskProducts = 2.5e6;
// A result of more bytes is divided, too. Both divide the work into at most kFewTasks tasks.
constexpr double kSmallTaskBytes = 400e3;
constexpr double kFewTasks = 4;
// A run can be stopped between tasks only.
constexpr double kMaxTaskProducts = 16e9;

// The sizes and steps that determine the primitives.
struct Form {
  ConvGeometry geometry;
  bool input_in_blocks = false;
  bool bias = false;
  bool addend = false;
  StepOp rectifier = StepOp::kOther;

  friend bool operator==(const Form& a, const Form& b) {
    return a.geometry == b.geometry && a.input_in_blocks == b.input_in_blocks && a.bias == b.bias &&
           a.addend == b.addend && a.rectifier == b.rectifier;
  }
};

// Channels [begin, begin + size) of the output.
struct Range {
  int64_t begin = 0;
  int64_t size = 0;
  dnnl::primitive primitive;
  Desc input;
  Desc filter;
  Desc output;
  Desc scratch;
  // The range of the plain filter.
  Desc plain;
  // The position of the range in the packed filter, in floats.
  int64_t offset = 0;
  dnnl::primitive pack;
};

struct BlockedPlan {
  Form form;
  // False if there is no fast code.
  bool usable = false;
  std::vector<Range> ranges;
  // The images of a task.
  int64_t images = 1;
  // The channels of a block of the input that the primitives read.
  int64_t input_block = 0;
  int64_t packed_floats = 0;
  int64_t scratch_floats = 0;
};

class PlanMaker {
 public:
  explicit PlanMaker(const Form& form) : form_(form), g_(form.geometry) {}

  std::shared_ptr<const BlockedPlan> Make() {
    auto plan = std::make_shared<BlockedPlan>();
    plan->form = form_;
    if (!FitsInt()) return plan;
    const OneOpenMpThread one_thread;
    try {
      plan->usable = SetRanges(plan.get());
    } catch (const dnnl::error&) {
      // There is no code.
    }
    if (!plan->usable) plan->ranges.clear();
    return plan;
  }

 private:
  int64_t block() const { return OneDnnChannelBlock(); }
  bool depthwise() const { return g_.groups > 1; }

  bool FitsInt() const {
    constexpr double kMax = std::numeric_limits<int32_t>::max();
    for (size_t s = 0; s < kConvSpatial; ++s) {
      // Positions, with those of the padding before and behind the input.
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
  // Returns the elements of an image of the input or of the output, whichever has more.
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
    // An even number, which two threads share equally.
    if (tasks > 1.2) tasks = 2 * std::ceil(tasks / 2 - 0.25);
    const int64_t blocks = NumBlocks(g_.out_depth, block());
    const int64_t parts = std::clamp<int64_t>(static_cast<int64_t>(tasks), 1, blocks);
    if (products > kMaxTaskProducts * static_cast<double>(parts)) return false;
    // Small images, of input and output, are computed together.
    const double image = std::max(small, 4 * ImageElements() / kSmallTaskBytes);
    plan->images = std::clamp<int64_t>(static_cast<int64_t>(1 / image), 1, g_.batch);
    while (g_.batch % plan->images != 0) --plan->images;
    plan->input_block = block();
    for (int64_t i = 0; i < parts; ++i) {
      Range range;
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

  bool SetPrimitive(BlockedPlan* plan, Range* range) const {
    ConvGeometry part = g_;
    part.out_depth = range->size;
    if (depthwise()) part.groups = part.in_depth = range->size;
    // For the few channels of a photo, oneDNN has code that reads planes: blocks of one channel.
    const bool planes = !form_.input_in_blocks && !depthwise() && g_.in_depth < block();
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

  // The addition is the first operation, as RunTask() expects.
  dnnl::post_ops PostOps(const Desc& output) const {
    dnnl::post_ops post_ops;
    if (form_.addend) post_ops.append_binary(dnnl::algorithm::binary_add, output);
    if (form_.rectifier == StepOp::kRelu) {
      onednn::AppendElementwise(dnnl::algorithm::eltwise_relu, 0, 0, &post_ops);
    } else if (form_.rectifier == StepOp::kRelu6) {
      onednn::AppendElementwise(dnnl::algorithm::eltwise_clip_v2, 0, 6, &post_ops);
    }
    return post_ops;
  }

  const Form& form_;
  const ConvGeometry& g_;
};

class OneDnnBlockedConv final : public BlockedConv {
 public:
  absl::Status Run(KernelContext& ctx, const ConvGeometry& geometry, const BlockedConvArgs& args,
                   const TensorShape& image, bool* done) override {
    const std::shared_ptr<const BlockedPlan> plan =
        FindPlan({geometry, args.input.in_blocks, args.bias != nullptr,
                  args.addend.tensor != nullptr, args.rectifier});
    *done = plan->usable;
    if (!plan->usable) return absl::OkStatus();
    const TensorShape shape = ShapeInBlocks(image, OneDnnChannelBlock());
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, args.output_in_blocks ? shape : image, &output));
    Tensor input;
    Tensor filter;
    Tensor addend;
    Tensor result = *output;
    GRADFLOW_RETURN_IF_ERROR(InBlocks(ctx, args.input, plan->input_block, &input));
    GRADFLOW_RETURN_IF_ERROR(InBlocks(ctx, args.addend, OneDnnChannelBlock(), &addend));
    GRADFLOW_RETURN_IF_ERROR(PackedFilter(ctx, plan, *args.filter, &filter));
    if (!args.output_in_blocks) {
      GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_FLOAT, shape, &result));
    }
    const int64_t ranges = static_cast<int64_t>(plan->ranges.size());
    GRADFLOW_RETURN_IF_ERROR(onednn::ForEach(
        ctx, geometry.batch / plan->images * ranges, plan->scratch_floats,
        [&](int64_t i, float* scratch) {
          RunTask(*plan, i / ranges * plan->images, plan->ranges[static_cast<size_t>(i % ranges)],
                  {input, filter, args.bias, addend, &result}, scratch);
        }));
    if (args.output_in_blocks) return absl::OkStatus();
    // Their memory may be used again.
    input = Tensor();
    addend = Tensor();
    CopyFromBlocks(ctx.run(), result, output);
    return absl::OkStatus();
  }

 private:
  struct Tensors {
    const Tensor& input;
    const Tensor& filter;
    const float* bias;
    // Unset for none.
    const Tensor& addend;
    Tensor* result;
  };

  std::shared_ptr<const BlockedPlan> FindPlan(const Form& form) {
    return plans_.FindOrMake([&](const BlockedPlan& plan) { return plan.form == form; },
                             [&] { return PlanMaker(form).Make(); });
  }

  // Sets *blocks to the image in blocks of `block` channels.
  static absl::Status InBlocks(KernelContext& ctx, const BlockedImage& image, int64_t block,
                               Tensor* blocks) {
    if (image.tensor == nullptr) return absl::OkStatus();
    if (image.in_blocks) {
      *blocks = *image.tensor;
      return absl::OkStatus();
    }
    GRADFLOW_RETURN_IF_ERROR(
        ctx.AllocateTemp(DT_FLOAT, ShapeInBlocks(image.tensor->shape(), block), blocks));
    CopyToBlocks(ctx.run(), *image.tensor, blocks);
    return absl::OkStatus();
  }

  // Sets *packed to the filter as the primitives want it.
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
          const Range& range = plan->ranges[static_cast<size_t>(i)];
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
  // Returns the index of a channel of an image, the first of a block.
  static int64_t IndexOf(const Tensor& blocks, int64_t image, int64_t channel) {
    const int64_t size = blocks.NumElements() / blocks.dim_size(0);
    return image * size + channel * Pixels(blocks);
  }
  static const float* At(const Tensor& blocks, int64_t image, int64_t channel) {
    return static_cast<const float*>(blocks.raw_data()) + IndexOf(blocks, image, channel);
  }

  static void RunTask(const BlockedPlan& plan, int64_t image, const Range& range,
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
    // An infinite input times a filter's padding is NaN, of which a rectifier makes 0.
    Tensor& result = *tensors.result;
    const int64_t block = result.dim_size(4);
    const int64_t rest = g.out_depth % block;
    if (rest == 0 || range.begin + range.size < g.out_depth ||
        plan.form.rectifier != StepOp::kOther) {
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
  // The packed form of the filter, for a plan. Null without one.
  std::shared_ptr<const BlockedPlan> packed_plan_ ABSL_GUARDED_BY(mutex_);
  Tensor packed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

int64_t OneDnnChannelBlock() {
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
  // oneDNN reports every instruction set of x86 on other processors.
  return 0;
#endif
}

std::unique_ptr<BlockedConv> MakeBlockedConv() {
  if (OneDnnChannelBlock() == 0) return nullptr;
  return std::make_unique<OneDnnBlockedConv>();
}

}  // namespace gradflow

#endif  // GRADFLOW_HAS_ONEDNN
