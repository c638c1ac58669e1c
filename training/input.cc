#include "gradflow/training/input.h"

#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/mutex.h"
#include "gradflow/core/out_parameter.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/split_mix64.h"
#include "gradflow/core/status.h"
#include "gradflow/core/tsan.h"
#include "gradflow/io/file.h"
#include "gradflow/io/idx.h"
#include "gradflow/io/npy.h"
#include "gradflow/training/image_files.h"

namespace gradflow {
namespace training {
namespace {

using Order = std::vector<int64_t>;

// A source of examples by number. Shared by tasks.
class ExampleSource {
 public:
  virtual ~ExampleSource() = default;
  virtual int64_t size() const = 0;
  // Returns a batch of the examples `rows`.
  virtual absl::StatusOr<std::vector<Tensor>> Gather(absl::Span<const int64_t> rows) const = 0;
};

// Rows of arrays.
class ArrayRows final : public ExampleSource {
 public:
  explicit ArrayRows(std::vector<Tensor> arrays) : arrays_(std::move(arrays)) {}
  int64_t size() const override { return arrays_[0].dim_size(0); }

  absl::StatusOr<std::vector<Tensor>> Gather(absl::Span<const int64_t> rows) const override {
    std::vector<Tensor> batch;
    for (const Tensor& array : arrays_) {
      TensorShape shape = array.shape();
      shape.set_dim(0, static_cast<int64_t>(rows.size()));
      GRADFLOW_ASSIGN_OR_RETURN(Tensor part, Tensor::Allocate(array.dtype(), shape));
      const size_t bytes = array.tensor_data().size() / size();
      auto* to = static_cast<char*>(part.raw_data());
      const char* const from = array.tensor_data().data();
      for (size_t i = 0; i < rows.size() && bytes > 0; ++i, to += bytes) {
        std::memcpy(to, from + rows[i] * bytes, bytes);
      }
      batch.push_back(std::move(part));
    }
    return batch;
  }

 private:
  const std::vector<Tensor> arrays_;
};

// Image files, decoded in parallel.
class Images final : public ExampleSource {
 public:
  Images(const ImageFiles& files, const ImageOptions& options, const ImageShape& shape)
      : paths_(files.paths), labels_(files.labels), options_(options), shape_(shape) {}
  int64_t size() const override { return static_cast<int64_t>(paths_.size()); }

  absl::StatusOr<std::vector<Tensor>> Gather(absl::Span<const int64_t> rows) const override {
    const auto count = static_cast<int64_t>(rows.size());
    GRADFLOW_ASSIGN_OR_RETURN(
        const TensorShape shape,
        TensorShape::Make({count, shape_.rows, shape_.columns, shape_.channels}));
    GRADFLOW_ASSIGN_OR_RETURN(Tensor pixels, Tensor::Allocate(DT_UINT8, shape));
    GRADFLOW_ASSIGN_OR_RETURN(Tensor labels, Tensor::Allocate(DT_INT64, TensorShape({count})));
    std::vector<absl::Status> statuses(count);
    auto* const to = static_cast<uint8_t*>(pixels.raw_data());
    ParallelFor(RunContext(), count, /*block_size=*/1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        labels.flat<int64_t>()(i) = labels_[rows[i]];
        statuses[i] = CallSafely([&] {
          return ReadImage(paths_[rows[i]], options_, shape_, to + i * shape_.elements());
        });
      }
    });
    for (const absl::Status& status : statuses) GRADFLOW_RETURN_IF_ERROR(status);
    return std::vector<Tensor>{std::move(pixels), std::move(labels)};
  }

 private:
  const std::vector<std::string> paths_;
  const std::vector<int64_t> labels_;
  const ImageOptions options_;
  const ImageShape shape_;
};

// The batches of examples and the orders of epochs. Shared by tasks.
class Source {
 public:
  Source(std::unique_ptr<const ExampleSource> examples, const BatchesOptions& options)
      : examples_(std::move(examples)),
        options_(options),
        rows_(examples_->size()),
        batches_(options.drop_remainder ? rows_ / options.batch_size
                                        : (rows_ - 1) / options.batch_size + 1) {}

  int64_t rows() const { return rows_; }
  int64_t batches() const { return batches_; }

  absl::StatusOr<std::vector<Tensor>> Batch(int64_t number) {
    const int64_t begin = number % batches_ * options_.batch_size;
    const int64_t count = std::min(options_.batch_size, rows_ - begin);
    if (options_.shuffle) {
      const std::shared_ptr<const Order> order = OrderOf(number / batches_);
      return examples_->Gather(absl::MakeConstSpan(*order).subspan(begin, count));
    }
    Order rows(count);
    std::iota(rows.begin(), rows.end(), begin);
    return examples_->Gather(rows);
  }

 private:
  // Returns the order of an epoch. Keeps the orders of two epochs, because batches of both are
  // prepared around the end of an epoch.
  std::shared_ptr<const Order> OrderOf(int64_t epoch) {
    MutexLock lock(&mutex_);
    for (const auto& [of, order] : orders_) {
      if (of == epoch) return order;
    }
    auto order = std::make_shared<Order>(rows_);
    std::iota(order->begin(), order->end(), int64_t{0});
    SplitMix64 random(SplitMix64::Mix(options_.seed) +
                      SplitMix64::Mix(~static_cast<uint64_t>(epoch)));
    for (int64_t i = rows_ - 1; i > 0; --i) std::swap((*order)[i], (*order)[random.Below(i + 1)]);
    if (orders_.size() == 2) orders_.pop_front();
    orders_.emplace_back(epoch, order);
    return order;
  }

  const std::unique_ptr<const ExampleSource> examples_;
  const BatchesOptions options_;
  const int64_t rows_;
  const int64_t batches_;
  Mutex mutex_;
  std::deque<std::pair<int64_t, std::shared_ptr<const Order>>> orders_ ABSL_GUARDED_BY(mutex_);
};

// A batch in preparation. The thread that claims it fills it.
struct Slot {
  explicit Slot(int64_t n) : number(n) {}
  void FillOnce(Source* source) {
    if (claimed.exchange(true)) return;
    absl::StatusOr<std::vector<Tensor>> made = absl::InternalError("");
    const absl::Status status = CallSafely([&] {
      made = source->Batch(number);
      return absl::OkStatus();
    });
    if (!status.ok()) made = status;
    MutexLock lock(&mutex);
    batch = std::move(made);
    done = true;
    changed.Notify();
  }
  // Waits until the batch is ready, and takes it. REQUIRES: FillOnce() has been called
  absl::StatusOr<std::vector<Tensor>> Take() {
    MutexLock lock(&mutex);
    while (!done) changed.Wait(&mutex);
    return std::move(batch);
  }

  const int64_t number;
  std::atomic<bool> claimed{false};
  Mutex mutex;
  CondVar changed;
  bool done ABSL_GUARDED_BY(mutex) = false;
  absl::StatusOr<std::vector<Tensor>> batch ABSL_GUARDED_BY(mutex) = absl::InternalError("");
};

// A batch to prepare. A task owns it, with all objects that the task uses. It is allocated on the
// heap because ThreadSanitizer does not see how oneTBB reuses task objects.
struct Preparation {
  std::shared_ptr<Source> source;
  std::shared_ptr<Slot> slot;
  // Takes ownership of `preparation`.
  static void Run(Preparation* preparation) {
    TsanAcquire(preparation);
    const std::unique_ptr<Preparation> owned(preparation);
    owned->slot->FillOnce(owned->source.get());
  }
};

}  // namespace

struct Batches::Impl {
  Impl(std::unique_ptr<const ExampleSource> examples, const BatchesOptions& o, int threads)
      : options(o),
        source(std::make_shared<Source>(std::move(examples), o)),
        arena(threads, /*reserved_for_masters=*/0) {}

  // Starts to prepare batch `number`, which must follow the batches in `slots`.
  void Start(int64_t number) {
    slots.push_back(std::make_shared<Slot>(number));
    auto preparation = std::make_unique<Preparation>();
    preparation->source = source;
    preparation->slot = slots.back();
    TsanRelease(preparation.get());
    arena.enqueue([task = preparation.get()]() GRADFLOW_NO_TSAN { Preparation::Run(task); });
    (void)preparation.release();
  }

  const BatchesOptions options;
  const std::shared_ptr<Source> source;
  int64_t position = 0;
  // Consecutive batches, from `position` on.
  std::deque<std::shared_ptr<Slot>> slots;
  // Arrays get an arena of one thread, so that preparation takes at most one thread from a session.
  tbb::task_arena arena;
};

Batches::Batches(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Batches::~Batches() {
  // Marks all batches as claimed: tasks that have not begun will do nothing, and running tasks own
  // the objects that they use.
  for (const auto& slot : impl_->slots) slot->claimed = true;
}

namespace {

absl::Status CheckOptions(const BatchesOptions& options) {
  if (options.batch_size >= 1 && options.epochs >= 0 && options.prefetch >= 0) {
    return absl::OkStatus();
  }
  return errors::InvalidArgument(
      "expected batch_size of 1 or more, and epochs and prefetch of 0 or more, found "
      "batch_size ",
      options.batch_size, ", epochs ", options.epochs, ", prefetch ", options.prefetch);
}

absl::Status CheckRows(int64_t rows, const BatchesOptions& options) {
  if (rows > 0 && (!options.drop_remainder || rows >= options.batch_size)) return absl::OkStatus();
  return errors::InvalidArgument("there is no batch of ", options.batch_size, " examples: found ",
                                 rows);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Batches>> Batches::Make(std::vector<Tensor> arrays,
                                                       const BatchesOptions& options) {
  GRADFLOW_RETURN_IF_ERROR(CheckOptions(options));
  if (arrays.empty()) return errors::InvalidArgument("batches need an array");
  for (size_t i = 0; i < arrays.size(); ++i) {
    const Tensor& array = arrays[i];
    if (!array.IsInitialized() || !DataTypeIsPlainBytes(array.dtype()) || array.dims() == 0) {
      return errors::InvalidArgument("expected rows of plain bytes, but array ", i, " has type ",
                                     DataTypeString(array.dtype()), " and shape ",
                                     array.shape().DebugString());
    }
    if (array.dim_size(0) != arrays[0].dim_size(0)) {
      return errors::InvalidArgument("expected arrays of the same number of rows, but array 0 has ",
                                     arrays[0].dim_size(0), " and array ", i, " has ",
                                     array.dim_size(0));
    }
  }
  GRADFLOW_RETURN_IF_ERROR(CheckRows(arrays[0].dim_size(0), options));
  auto rows = std::make_unique<const ArrayRows>(std::move(arrays));
  return std::unique_ptr<Batches>(
      new Batches(std::make_unique<Impl>(std::move(rows), options, /*threads=*/1)));
}

absl::StatusOr<std::unique_ptr<Batches>> Batches::OpenImages(const ImageFiles& files,
                                                             const ImageOptions& images,
                                                             const BatchesOptions& options) {
  GRADFLOW_RETURN_IF_ERROR(CheckOptions(options));
  if (images.channels != 1 && images.channels != 3) {
    return errors::InvalidArgument("expected 1 or 3 channels, found ", images.channels);
  }
  if (images.height < 0 || images.width < 0 || (images.height == 0) != (images.width == 0) ||
      MultiplyWithoutOverflow(images.height, images.width) < 0 ||
      images.height * images.width > images.max_pixels) {
    return errors::InvalidArgument("expected a size of 1 to ", images.max_pixels,
                                   " pixels, or of 0 x 0, found ", images.height, " x ",
                                   images.width);
  }
  if (files.labels.size() != files.paths.size()) {
    return errors::InvalidArgument("expected a label for each of ", files.paths.size(),
                                   " files, found ", files.labels.size());
  }
  GRADFLOW_RETURN_IF_ERROR(CheckRows(static_cast<int64_t>(files.paths.size()), options));
  ImageShape shape;
  // May decode the first file.
  GRADFLOW_RETURN_IF_ERROR(CallSafely([&] {
    GRADFLOW_ASSIGN_OR_RETURN(shape, ShapeOfExamples(files.paths[0], images));
    return absl::OkStatus();
  }));
  // One thread for each oneTBB worker. The thread that calls Next() also decodes.
  const int threads = std::max(1, tbb::this_task_arena::max_concurrency() - 1);
  return std::unique_ptr<Batches>(new Batches(std::make_unique<Impl>(
      std::make_unique<const Images>(files, images, shape), options, threads)));
}

absl::StatusOr<std::unique_ptr<Batches>> Batches::Open(const std::vector<std::string>& paths,
                                                       const BatchesOptions& options) {
  std::vector<Tensor> arrays;
  for (const std::string& path : paths) {
    GRADFLOW_ASSIGN_OR_RETURN(Tensor array, ReadArray(path));
    arrays.push_back(std::move(array));
  }
  return Make(std::move(arrays), options);
}

absl::Status Batches::Next(std::vector<Tensor>* batch) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(batch, "Batches::Next", "batch"));
  Impl& impl = *impl_;
  // Divides, because the product may overflow.
  const auto is_end = [&](int64_t number) {
    return (impl.options.epochs > 0 && number / batches_per_epoch() >= impl.options.epochs) ||
           number == std::numeric_limits<int64_t>::max();
  };
  if (is_end(impl.position)) {
    return absl::OutOfRangeError(
        absl::StrCat("the last of ", impl.options.epochs, " epochs has ended"));
  }
  if (impl.slots.empty()) impl.slots.push_back(std::make_shared<Slot>(impl.position));
  const std::shared_ptr<Slot> slot = impl.slots.front();
  // Starts the following batches first, so that they are prepared in parallel with this batch.
  while (impl.slots.size() <= static_cast<size_t>(impl.options.prefetch)) {
    const int64_t number = impl.slots.back()->number + 1;
    if (is_end(number)) break;
    impl.Start(number);
  }
  slot->FillOnce(impl.source.get());
  absl::StatusOr<std::vector<Tensor>> made = slot->Take();
  if (!made.ok()) {
    // The next call retries the batch.
    for (const auto& other : impl.slots) other->claimed = true;
    impl.slots.clear();
    return made.status();
  }
  *batch = *std::move(made);
  impl.slots.pop_front();
  ++impl.position;
  return absl::OkStatus();
}

const BatchesOptions& Batches::options() const { return impl_->options; }
int64_t Batches::num_examples() const { return impl_->source->rows(); }
int64_t Batches::batches_per_epoch() const { return impl_->source->batches(); }
int64_t Batches::position() const { return impl_->position; }

absl::Status Batches::Seek(int64_t position) {
  if (position < 0) {
    return errors::InvalidArgument("expected a position of 0 or more, found ", position);
  }
  for (const auto& slot : impl_->slots) slot->claimed = true;
  impl_->slots.clear();
  impl_->position = position;
  return absl::OkStatus();
}

absl::StatusOr<Tensor> ReadArray(const std::string& path) {
  const auto is_npy = [&]() -> absl::StatusOr<bool> {
    constexpr absl::string_view kMagic = "\x93NUMPY";
    size_t size = 0;
    GRADFLOW_ASSIGN_OR_RETURN(const internal::FileDescriptor file, internal::OpenFile(path, &size));
    char start[kMagic.size()];
    if (size < sizeof(start)) return false;
    GRADFLOW_RETURN_IF_ERROR(internal::ReadAt(file.get(), 0, start, sizeof(start)));
    return absl::string_view(start, sizeof(start)) == kMagic;
  };
  const absl::StatusOr<bool> npy = is_npy();
  if (!npy.ok()) return errors::Prefix(absl::StrCat("'", path, "': "), npy.status());
  return *npy ? ReadNpy(path) : ReadIdx(path);
}

}  // namespace training
}  // namespace gradflow
