// Convolutions with oneDNN of tensors whose last dimension is the depth.
//
// The sizes alone determine how a convolution is divided into tasks: into blocks of the filter's
// channels, of images, and of rows of an image. Each task is a separate convolution that oneDNN
// computes on the calling thread. Gradients of filters are computed for each block of images and
// added in a fixed tree. The bits of results therefore do not depend on the number of threads, but
// they depend on the instruction set of the processor.
#include "gradflow/ops/nn/conv_engine.h"

#ifndef GRADFLOW_HAS_ONEDNN

namespace gradflow {

std::unique_ptr<FastConv> MakeFastConv(ConvPass) { return nullptr; }

}  // namespace gradflow

#else

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/linalg/openmp.h"
#include "gradflow/ops/nn/conv_onednn.h"
#include "gradflow/ops/nn/onednn.h"

namespace gradflow {
namespace {

using onednn::Desc;
using onednn::Tag;

// ---- Sizes of tasks ----

// ConvByGemm computes convolutions with fewer multiplications, because creating a primitive would
// take longer than the convolution.
constexpr double kMinProducts = 32768;
// The number of multiplications of a task, and the maximum number of tasks.
constexpr double kTaskProducts = 8e6;
constexpr double kMaxTasks = 32;
// Work is divided into at least this many tasks, even if they are small, so that no thread is idle.
// A small task has about this many multiplications, or this many bytes of the result.
constexpr double kFewTasks = 4;
constexpr double kSmallTaskProducts = 2.5e6;
constexpr double kSmallTaskBytes = 400e3;
// A run can be stopped only between tasks. Very large tasks are therefore divided into more than
// kMaxTasks.
constexpr double kMaxTaskProducts = 1e9;
constexpr double kMaxTasksOfLarge = 1 << 14;
// Every task can read a filter that fits in the L2 cache at no cost. Larger filters are divided.
constexpr double kCachedFilterBytes = 512 << 10;
constexpr int64_t kMinChannels = 64;
// The minimum number of output positions of a partial gradient of the filter. With fewer positions,
// writing and adding the partial gradients would take most of the time. Partial gradients of small
// filters stay in a cache.
constexpr int64_t kPartialPositions = 4096;
constexpr int64_t kSmallPartialPositions = 1024;
// The gradient of a filter is divided into blocks of output channels if each position reads at
// least this many elements of the input. Each block copies its channels of the output's gradient.
// The constant is the number of multiplications per copied element.
constexpr int64_t kMinPatchElements = 1024;

// A part of a convolution along one spatial dimension.
struct ConvSlice {
  int64_t in_begin;
  int64_t in_size;
  int64_t out_begin;
  int64_t out_size;
  int64_t pad;
};

// Returns the slice with the output rows [begin, begin + size).
ConvSlice SliceOfOutput(const ConvGeometry& g, size_t axis, int64_t begin, int64_t size) {
  const int64_t first = begin * g.stride[axis] - g.pad[axis];
  const int64_t last =
      first + (size - 1) * g.stride[axis] + (g.filter[axis] - 1) * g.dilation[axis];
  const int64_t in_begin = std::clamp<int64_t>(first, 0, g.in[axis]);
  const int64_t in_end = std::clamp<int64_t>(last + 1, in_begin, g.in[axis]);
  return {in_begin, in_end - in_begin, begin, size, in_begin - first};
}

// Returns the slice with the input rows [begin, begin + size) and all windows that read them.
ConvSlice SliceOfInput(const ConvGeometry& g, size_t axis, int64_t begin, int64_t size) {
  const int64_t stride = g.stride[axis];
  const int64_t reach = begin + g.pad[axis] - (g.filter[axis] - 1) * g.dilation[axis];
  const int64_t out_begin = std::min(g.out[axis], reach <= 0 ? 0 : NumBlocks(reach, stride));
  const int64_t out_end =
      std::clamp((begin + size - 1 + g.pad[axis]) / stride + 1, out_begin, g.out[axis]);
  return {begin, size, out_begin, out_end - out_begin, begin + g.pad[axis] - out_begin * stride};
}

// ---- Plans ----

// A convolution that a primitive computes.
struct Piece {
  ConvGeometry geometry;
  dnnl::primitive primitive;
  Desc input;
  Desc filter;
  Desc output;
  Desc scratch;
};

// A range of channels of the filter: output channels, or input channels for the gradient of the
// input.
struct BlockSize {
  int64_t begin;
  int64_t size;
  // The plain filter, starting at its first channel.
  Desc plain;
  // The layout that the primitives need. `offset` is the position in the packed filter, in floats.
  Desc packed;
  int64_t offset = 0;
  dnnl::primitive pack;
};

struct Task {
  const Piece* piece;
  int64_t block;
  int64_t image;
  int64_t in_row;
  int64_t out_row;
};

struct ConvPlan {
  ConvGeometry geometry;
  // False if oneDNN has no fast code for the convolution.
  bool usable = false;
  // The first spatial dimension with more than one element. Slices divide this dimension; its
  // elements are called rows.
  size_t axis = 1;
  std::deque<Piece> pieces;
  std::vector<BlockSize> blocks;
  std::vector<Task> tasks;
  // The number of tasks of a block. The tasks of a block are consecutive.
  int64_t tasks_per_block = 0;
  // True if the filter is packed before the tasks run.
  bool packs = false;
  // The number of floats of the packed filter, and of a task's largest copy of channels and largest
  // scratch.
  int64_t packed_floats = 0;
  int64_t copy_floats = 0;
  int64_t scratch_floats = 0;
};

class OneDnnConvPlanner {
 public:
  OneDnnConvPlanner(ConvPass pass, const ConvGeometry& geometry) : pass_(pass), g_(geometry) {}

  // Returns an unusable plan if oneDNN has no fast code.
  std::shared_ptr<const ConvPlan> Make() {
    auto plan = std::make_shared<ConvPlan>();
    plan->geometry = g_;
    if (g_.products() < kMinProducts || !FitsInt()) return plan;
    const OneOpenMpThread one_thread;
    for (const Division division : {Division::kWanted, Division::kEqual, Division::kNone}) {
      if (division == Division::kEqual && !uneven_) continue;
      plan_ = ConvPlan();
      plan_.geometry = g_;
      try {
        if (TryMake(division)) {
          plan_.usable = true;
          // Tasks point to pieces. Moving the deque does not relocate them.
          *plan = std::move(plan_);
          return plan;
        }
      } catch (const dnnl::error&) {
        continue;
      }
    }
    return plan;
  }

 private:
  // Ways to divide the work, tried in this order: the wanted number of slices, whose numbers of
  // rows may differ by one; slices with equal numbers of rows; a single slice. All slices read one
  // packed filter. If slices differ, oneDNN may have no code for one of them that reads this
  // filter.
  enum class Division { kWanted, kEqual, kNone };

  bool FitsInt() const {
    constexpr double kMax = std::numeric_limits<int32_t>::max();
    for (size_t s = 0; s < kConvSpatial; ++s) {
      // The range of input positions, including the padding on both sides.
      const double reach = static_cast<double>(g_.in[s]) +
                           static_cast<double>(g_.out[s]) * static_cast<double>(g_.stride[s]) +
                           static_cast<double>(g_.filter[s]) * static_cast<double>(g_.dilation[s]);
      if (reach > kMax / 2) return false;
    }
    const double out = static_cast<double>(g_.out_volume()) * static_cast<double>(g_.out_depth);
    const double in = static_cast<double>(g_.in_volume()) * static_cast<double>(g_.in_depth);
    const double filter = FilterBytes() / 4;
    const double batch = static_cast<double>(g_.batch);
    return std::max({out * batch, in * batch, filter}) < kMax / 4;
  }

  double FilterBytes() const {
    return 4.0 * static_cast<double>(g_.taps()) * static_cast<double>(g_.group_in_depth()) *
           static_cast<double>(g_.out_depth);
  }

  bool TryMake(Division division) {
    const double wanted = division == Division::kNone ? 1 : WantedTasks();
    MakeBlocks(wanted);
    int64_t parts = static_cast<int64_t>(wanted / static_cast<double>(plan_.blocks.size()) + 0.999);
    if (pass_ == ConvPass::kFilterGradient) {
      parts = std::min(parts, Partials());
    }
    const int64_t image_parts = std::min(parts, g_.batch);
    const int64_t images = NumBlocks(g_.batch, image_parts);
    std::vector<ConvSlice> slices;
    FindAxis();
    MakeSlices(images == 1 ? NumBlocks(parts, g_.batch) : 1, division == Division::kEqual, &slices);
    // Tasks with few rows may be much larger than wanted, and a task cannot be stopped.
    const double tasks = static_cast<double>(plan_.blocks.size() * slices.size()) *
                         static_cast<double>(NumBlocks(g_.batch, images));
    if (g_.products() > 16 * kMaxTaskProducts * tasks) return false;
    for (size_t b = 0; b < plan_.blocks.size(); ++b) {
      for (int64_t image = 0; image < g_.batch; image += images) {
        for (const ConvSlice& slice : slices) {
          const Piece* const piece =
              FindPiece(&plan_.blocks[b], slice, std::min(images, g_.batch - image));
          if (piece == nullptr) return false;
          plan_.tasks.push_back(
              {piece, static_cast<int64_t>(b), image, slice.in_begin, slice.out_begin});
        }
      }
    }
    plan_.tasks_per_block = static_cast<int64_t>(plan_.tasks.size() / plan_.blocks.size());
    return FinishBlocks();
  }

  double WantedTasks() const {
    const bool forward = pass_ == ConvPass::kForward;
    const double bytes = 4.0 * static_cast<double>(g_.batch) *
                         static_cast<double>(forward ? g_.out_volume() * g_.out_depth
                                                     : g_.in_volume() * g_.in_depth);
    const double small = std::max(g_.products() / kSmallTaskProducts, bytes / kSmallTaskBytes);
    double tasks = std::max(g_.products() / kTaskProducts, std::min(small, kFewTasks));
    // Two threads share an even number of tasks equally.
    if (tasks > 1.2) tasks = 2 * std::ceil(tasks / 2 - 0.25);
    const double most = std::clamp(g_.products() / kMaxTaskProducts, kMaxTasks, kMaxTasksOfLarge);
    return std::clamp(tasks, 1.0, most);
  }

  // The maximum number of partial gradients of the filter that are worth their memory.
  int64_t Partials() const {
    const int64_t least =
        FilterBytes() > kCachedFilterBytes ? kPartialPositions : kSmallPartialPositions;
    return std::max<int64_t>(1, g_.batch * g_.out_volume() / least);
  }

  // Divides a large filter by channels.
  void MakeBlocks(double wanted) {
    const bool input = pass_ == ConvPass::kInputGradient;
    const int64_t channels = input ? g_.group_in_depth() : g_.group_out_depth();
    int64_t parts = 1;
    const bool filter = pass_ == ConvPass::kFilterGradient;
    if (g_.groups == 1 && channels >= 2 * kMinChannels &&
        (filter ? g_.taps() * g_.in_depth >= kMinPatchElements
                : FilterBytes() > kCachedFilterBytes)) {
      // The images already divide the work into Partials() parts.
      const double most = filter ? wanted / static_cast<double>(Partials()) : wanted;
      parts = std::clamp<int64_t>(static_cast<int64_t>(most), 1, channels / kMinChannels);
    }
    const int64_t size = parts == 1 ? channels : NumBlocks(NumBlocks(channels, parts), 16) * 16;
    for (int64_t begin = 0; begin < channels; begin += size) {
      BlockSize block;
      block.begin = begin;
      block.size = std::min(size, channels - begin);
      plan_.blocks.push_back(std::move(block));
    }
  }

  void FindAxis() {
    plan_.axis = kConvSpatial - 1;
    for (size_t s = 0; s < kConvSpatial; ++s) {
      if (g_.in[s] > 1 || g_.out[s] > 1 || g_.filter[s] > 1) {
        plan_.axis = s;
        return;
      }
    }
  }

  // Makes at most `parts` slices. If `equal` is true, all of them have the same number of rows.
  void MakeSlices(int64_t parts, bool equal, std::vector<ConvSlice>* slices) {
    const size_t axis = plan_.axis;
    const bool input = pass_ == ConvPass::kInputGradient;
    const int64_t rows = input ? g_.in[axis] : g_.out[axis];
    // Includes rows that no window reads, because images are consecutive in memory.
    const ConvSlice whole = {0, g_.in[axis], 0, g_.out[axis], g_.pad[axis]};
    if (parts == 1) {
      *slices = {whole};
      return;
    }
    // Slices of the input's gradient begin at multiples of the stride.
    const int64_t unit = input ? g_.stride[axis] : 1;
    const int64_t units = NumBlocks(rows, unit);
    int64_t count = std::min(parts, units);
    while (equal && units % count != 0) --count;
    uneven_ = units % count != 0;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t begin = units * i / count * unit;
      const int64_t size = std::min(rows, units * (i + 1) / count * unit) - begin;
      const ConvSlice slice =
          input ? SliceOfInput(g_, axis, begin, size) : SliceOfOutput(g_, axis, begin, size);
      if (slice.in_size == 0 || slice.out_size == 0 || slice.pad < 0) {
        // Rows that consist of padding only, or that no window reads, cannot be a separate
        // primitive.
        *slices = {whole};
        return;
      }
      slices->push_back(slice);
    }
  }

  const Piece* FindPiece(BlockSize* block, const ConvSlice& slice, int64_t images) {
    ConvGeometry g = g_;
    g.batch = images;
    g.in[plan_.axis] = slice.in_size;
    g.out[plan_.axis] = slice.out_size;
    g.pad[plan_.axis] = slice.pad;
    if (g_.groups == 1) {
      (pass_ == ConvPass::kInputGradient ? g.in_depth : g.out_depth) = block->size;
    }
    for (const Piece& piece : plan_.pieces) {
      const ConvGeometry& p = piece.geometry;
      if (p.batch == g.batch && p.in == g.in && p.out == g.out && p.pad == g.pad &&
          p.in_depth == g.in_depth && p.out_depth == g.out_depth) {
        block->packed = piece.filter;
        return &piece;
      }
    }
    // All pieces of a block read the same packed filter.
    Desc filter = block->packed;
    if (filter.get_size() == 0) {
      for (const Piece& piece : plan_.pieces) {
        if (piece.geometry.in_depth == g.in_depth && piece.geometry.out_depth == g.out_depth) {
          filter = piece.filter;
        }
      }
    }
    plan_.pieces.emplace_back();
    Piece* const piece = &plan_.pieces.back();
    piece->geometry = g;
    if (!MakePrimitive(filter, piece)) return nullptr;
    block->packed = piece->filter;
    return piece;
  }

  Desc Images(int64_t batch, int64_t depth, const ConvSizes& sizes) const {
    dnnl::memory::dims dims = {batch, depth};
    for (const int64_t size : onednn::Spatial(g_, sizes)) dims.push_back(size);
    return Desc(dims, onednn::kFloat, dims.size() == 4 ? Tag::nhwc : Tag::ndhwc);
  }

  // Sets the primitive of a piece and its descriptors. If `filter` is not empty, the primitive must
  // read this layout. Returns false if oneDNN has no fast code.
  bool MakePrimitive(const Desc& filter, Piece* piece) const {
    const ConvGeometry& g = piece->geometry;
    piece->input = Images(g.batch, g.in_depth, g.in);
    piece->output = Images(g.batch, g.out_depth, g.out);
    Desc weights = filter;
    if (filter.get_size() == 0) {
      // Code for blocked layouts wastes most of its work on a few channels.
      const bool plain = pass_ == ConvPass::kInputGradient && g.groups == 1 && g.in_depth <= 4;
      weights = plain ? onednn::PlainFilter(g_, g) : onednn::AnyFilter(g_, g);
    }
    const onednn::ConvDims dims(g_, g);
    dnnl::primitive_attr attr;
    onednn::SetModes(&attr);
    constexpr auto kDirect = dnnl::algorithm::convolution_direct;
    const bool forward = pass_ == ConvPass::kForward;
    // Gradients need the description of the forward convolution as a hint.
    const auto hint = onednn::Describe<dnnl::convolution_forward>(
        attr, forward ? dnnl::prop_kind::forward_inference : dnnl::prop_kind::forward_training,
        kDirect, piece->input, weights, piece->output, dims.strides, dims.dilations, dims.before,
        dims.after);
    if (forward) {
      return SetPrimitive<dnnl::convolution_forward>(hint, hint.weights_desc(), piece);
    }
    if (pass_ == ConvPass::kInputGradient) {
      const auto desc = onednn::DescribeGradient<dnnl::convolution_backward_data>(
          attr, hint, kDirect, piece->input, weights, piece->output, dims.strides, dims.dilations,
          dims.before, dims.after);
      return SetPrimitive<dnnl::convolution_backward_data>(desc, desc.weights_desc(), piece);
    }
    const auto desc = onednn::DescribeGradient<dnnl::convolution_backward_weights>(
        attr, hint, kDirect, piece->input, weights, piece->output, dims.strides, dims.dilations,
        dims.before, dims.after);
    return SetPrimitive<dnnl::convolution_backward_weights>(desc, desc.diff_weights_desc(), piece);
  }

  template <typename Primitive, typename PrimitiveDesc>
  bool SetPrimitive(const PrimitiveDesc& desc, const Desc& filter, Piece* piece) const {
    const absl::string_view name = desc.impl_info_str();
    if (absl::StrContains(name, "ref")) return false;
    // GEMM is slow for groups with a single channel, because their matrices have a single column.
    if (absl::StrContains(name, "gemm") && g_.groups > 1 && g_.group_in_depth() == 1) return false;
    piece->filter = filter;
    piece->scratch = desc.scratchpad_desc();
    piece->primitive = Primitive(desc);
    return true;
  }

  // Sets the members of plan_ that tasks need in addition to their primitives.
  bool FinishBlocks() {
    for (BlockSize& block : plan_.blocks) {
      ConvGeometry g = g_;
      if (g_.groups == 1) {
        (pass_ == ConvPass::kInputGradient ? g.in_depth : g.out_depth) = block.size;
      }
      block.plain = onednn::PlainFilter(g_, g);
      if (block.plain == block.packed) continue;
      plan_.packs = true;
    }
    for (BlockSize& block : plan_.blocks) {
      block.offset = plan_.packed_floats;
      plan_.packed_floats += onednn::Floats(block.packed);
      const bool gradient = pass_ == ConvPass::kFilterGradient;
      block.pack = dnnl::reorder(
          dnnl::reorder::primitive_desc(onednn::Engine(), gradient ? block.packed : block.plain,
                                        onednn::Engine(), gradient ? block.plain : block.packed));
    }
    for (const Piece& piece : plan_.pieces) {
      plan_.scratch_floats = std::max(plan_.scratch_floats, onednn::Floats(piece.scratch));
      if (plan_.blocks.size() == 1) continue;
      plan_.copy_floats =
          std::max(plan_.copy_floats,
                   onednn::Floats(pass_ == ConvPass::kInputGradient ? piece.input : piece.output));
    }
    return true;
  }

  const ConvPass pass_;
  const ConvGeometry& g_;
  ConvPlan plan_;
  // True if the slices of plan_ have different sizes.
  bool uneven_ = false;
};

// Copies `rows` rows of n floats between matrices.
void CopyRows(const float* from, int64_t from_stride, int64_t rows, int64_t n, float* to,
              int64_t to_stride) {
  for (int64_t i = 0; i < rows; ++i) {
    std::memcpy(to + i * to_stride, from + i * from_stride, static_cast<size_t>(n) * sizeof(float));
  }
}

// ---- Runs ----

class OneDnnConv final : public FastConv {
 public:
  explicit OneDnnConv(ConvPass pass) : pass_(pass) {}

  absl::Status Run(KernelContext& ctx, const ConvGeometry& geometry, const ConvTensors& tensors,
                   bool* done) override {
    const std::shared_ptr<const ConvPlan> plan = FindPlan(geometry);
    *done = plan->usable;
    if (!plan->usable) return absl::OkStatus();
    if (pass_ == ConvPass::kFilterGradient) return RunFilterGradient(ctx, *plan, tensors);
    Tensor packed;
    GRADFLOW_RETURN_IF_ERROR(PackedFilter(ctx, plan, tensors, &packed));
    const float* const filter = static_cast<const float*>(packed.raw_data());
    return ForTasks(ctx, *plan, [&](const Task& task, float* copy, float* scratch) {
      RunTask(*plan, task, tensors, filter, copy, scratch);
    });
  }

 private:
  std::shared_ptr<const ConvPlan> FindPlan(const ConvGeometry& g) {
    return plans_.FindOrMake([&](const ConvPlan& plan) { return plan.geometry == g; },
                             [&] { return OneDnnConvPlanner(pass_, g).Make(); });
  }

  // Calls fn(task, copy, scratch) concurrently for all tasks.
  template <typename F>
  absl::Status ForTasks(KernelContext& ctx, const ConvPlan& plan, const F& fn) const {
    const int64_t num_tasks = static_cast<int64_t>(plan.tasks.size());
    return onednn::ForEach(
        ctx, num_tasks, plan.copy_floats + plan.scratch_floats, [&](int64_t i, float* buffer) {
          fn(plan.tasks[static_cast<size_t>(i)], buffer, buffer + plan.copy_floats);
        });
  }

  // Sets *packed to the filter in the layout that the primitives need.
  absl::Status PackedFilter(KernelContext& ctx, const std::shared_ptr<const ConvPlan>& plan,
                            const ConvTensors& tensors, Tensor* packed) {
    if (!plan->packs) {
      *packed = tensors.b;
      return absl::OkStatus();
    }
    if (tensors.constant_filter) {
      MutexLock lock(&mutex_);
      if (packed_plan_ == plan && filter_.SharesBufferWith(tensors.b) &&
          filter_.raw_data() == tensors.b.raw_data()) {
        *packed = packed_;
        return absl::OkStatus();
      }
    }
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_FLOAT, {plan->packed_floats}, packed));
    const float* const plain = static_cast<const float*>(tensors.b.raw_data());
    float* const to = static_cast<float*>(packed->raw_data());
    GRADFLOW_RETURN_IF_ERROR(
        onednn::ForEach(ctx, static_cast<int64_t>(plan->blocks.size()), 0, [&](int64_t i, float*) {
          const BlockSize& block = plan->blocks[static_cast<size_t>(i)];
          onednn::Execute(
              block.pack,
              {{DNNL_ARG_FROM, onednn::Memory(block.plain, plain + FilterOffset(*plan, block))},
               {DNNL_ARG_TO, onednn::Memory(block.packed, to + block.offset)}});
        }));
    if (tensors.constant_filter && !ctx.ShouldStop()) {
      MutexLock lock(&mutex_);
      packed_plan_ = plan;
      filter_ = tensors.b;
      packed_ = *packed;
    }
    return absl::OkStatus();
  }

  // Returns the index of a block's first element in the plain filter.
  int64_t FilterOffset(const ConvPlan& plan, const BlockSize& block) const {
    return pass_ == ConvPass::kInputGradient ? block.begin * plan.geometry.out_depth : block.begin;
  }

  // Returns the first input (or output) position of a task.
  static int64_t InputPosition(const ConvPlan& plan, const Task& task) {
    const ConvGeometry& g = plan.geometry;
    return task.image * g.in_volume() + task.in_row * (g.in_volume() / g.in[plan.axis]);
  }
  static int64_t OutputPosition(const ConvPlan& plan, const Task& task) {
    const ConvGeometry& g = plan.geometry;
    return task.image * g.out_volume() + task.out_row * (g.out_volume() / g.out[plan.axis]);
  }

  // Runs a task of a convolution or of the gradient of its input.
  void RunTask(const ConvPlan& plan, const Task& task, const ConvTensors& tensors,
               const float* packed, float* copy, float* scratch) const {
    const ConvGeometry& g = plan.geometry;
    const Piece& piece = *task.piece;
    const BlockSize& block = plan.blocks[static_cast<size_t>(task.block)];
    const bool forward = pass_ == ConvPass::kForward;
    const int64_t in = InputPosition(plan, task);
    const int64_t out = OutputPosition(plan, task);
    const float* const from = static_cast<const float*>(tensors.a.raw_data()) +
                              (forward ? in * g.in_depth : out * g.out_depth);
    float* const to = static_cast<float*>(tensors.out->raw_data()) +
                      (forward ? out * g.out_depth : in * g.in_depth);
    const float* const filter = packed + (plan.packs ? block.offset : FilterOffset(plan, block));
    float* const result = plan.blocks.size() == 1 ? to : copy;
    onednn::Execute(piece.primitive,
                    {{forward ? DNNL_ARG_SRC : DNNL_ARG_DIFF_DST,
                      onednn::Memory(forward ? piece.input : piece.output, from)},
                     {DNNL_ARG_WEIGHTS, onednn::Memory(piece.filter, filter)},
                     {forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_SRC,
                      onednn::Memory(forward ? piece.output : piece.input, result)},
                     {DNNL_ARG_SCRATCHPAD, onednn::Memory(piece.scratch, scratch)}});
    const ConvGeometry& p = piece.geometry;
    const int64_t rows = p.batch * (forward ? p.out_volume() : p.in_volume());
    if (tensors.steps != nullptr) {
      // With a single block, the result has all channels, but block.size has only the channels of a
      // group.
      const int64_t channels = result == to ? g.out_depth : block.size;
      tensors.steps->Apply({result, channels, out, rows, block.begin, channels});
    }
    if (result == to) return;
    CopyRows(copy, block.size, rows, block.size, to + block.begin,
             forward ? g.out_depth : g.in_depth);
  }

  // Each task of a block computes a partial gradient. The partial gradients are then added.
  absl::Status RunFilterGradient(KernelContext& ctx, const ConvPlan& plan,
                                 const ConvTensors& tensors) const {
    const ConvGeometry& g = plan.geometry;
    const int64_t partials = plan.tasks_per_block;
    const bool direct = !plan.packs && partials == 1;
    Tensor sums;
    if (!direct) {
      GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_FLOAT, {partials, plan.packed_floats}, &sums));
    }
    const float* const x = static_cast<const float*>(tensors.a.raw_data());
    const float* const dy = static_cast<const float*>(tensors.b.raw_data());
    float* const out = static_cast<float*>(tensors.out->raw_data());
    float* const sum = static_cast<float*>(sums.raw_data());
    GRADFLOW_RETURN_IF_ERROR(
        ForTasks(ctx, plan, [&](const Task& task, float* copy, float* scratch) {
          const Piece& piece = *task.piece;
          const BlockSize& block = plan.blocks[static_cast<size_t>(task.block)];
          const float* gradient = dy + OutputPosition(plan, task) * g.out_depth;
          if (plan.blocks.size() > 1) {
            CopyRows(gradient + block.begin, g.out_depth,
                     piece.geometry.batch * piece.geometry.out_volume(), block.size, copy,
                     block.size);
            gradient = copy;
          }
          const int64_t partial = (&task - plan.tasks.data()) % partials;
          float* const to =
              direct ? out + block.begin : sum + partial * plan.packed_floats + block.offset;
          onednn::Execute(
              piece.primitive,
              {{DNNL_ARG_SRC,
                onednn::Memory(piece.input, x + InputPosition(plan, task) * g.in_depth)},
               {DNNL_ARG_DIFF_DST, onednn::Memory(piece.output, gradient)},
               {DNNL_ARG_DIFF_WEIGHTS, onednn::Memory(piece.filter, to)},
               {DNNL_ARG_SCRATCHPAD, onednn::Memory(piece.scratch, scratch)}});
        }));
    if (direct) return absl::OkStatus();
    AddUp(ctx, partials, plan.packed_floats, sum);
    return onednn::ForEach(
        ctx, static_cast<int64_t>(plan.blocks.size()), 0, [&](int64_t i, float*) {
          const BlockSize& block = plan.blocks[static_cast<size_t>(i)];
          onednn::Execute(block.pack,
                          {{DNNL_ARG_FROM, onednn::Memory(block.packed, sum + block.offset)},
                           {DNNL_ARG_TO, onednn::Memory(block.plain, out + block.begin)}});
        });
  }

  // Adds sums[partials][size] into the first partial gradient, in a fixed tree.
  static void AddUp(const KernelContext& ctx, int64_t partials, int64_t size, float* sums) {
    if (partials == 1) return;
    const double nanoseconds = 0.5 * static_cast<double>(partials);
    ParallelFor(ctx, size, BlockSizeForCost(nanoseconds), [&](int64_t begin, int64_t end) {
      for (int64_t step = 1; step < partials; step *= 2) {
        for (int64_t p = 0; p + step < partials; p += 2 * step) {
          float* const to = sums + p * size;
          const float* const from = sums + (p + step) * size;
          for (int64_t i = begin; i < end; ++i) to[i] += from[i];
        }
      }
    });
  }

  const ConvPass pass_;
  onednn::RecentPlans<ConvPlan> plans_;
  Mutex mutex_;
  // The plan that `packed_` belongs to. Null if there is no packed constant filter.
  std::shared_ptr<const ConvPlan> packed_plan_ ABSL_GUARDED_BY(mutex_);
  Tensor filter_ ABSL_GUARDED_BY(mutex_);
  Tensor packed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<FastConv> MakeFastConv(ConvPass pass) { return std::make_unique<OneDnnConv>(pass); }

}  // namespace gradflow

#endif  // GRADFLOW_HAS_ONEDNN
