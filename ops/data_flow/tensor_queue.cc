#include "gradflow/ops/data_flow/tensor_queue.h"

#include <algorithm>
#include <limits>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gradflow/core/resource_handle.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/ops/common/element_copy.h"
#include "gradflow/ops/common/strided_copy.h"
#include "gradflow/proto/node_def.pb.h"

namespace gradflow {
namespace {

// Returns true if element a is dequeued after element b.
template <typename Element>
bool ComesAfter(const Element& a, const Element& b) {
  const int64_t x = a.tuple[0].template span<int64_t>()[0];
  const int64_t y = b.tuple[0].template span<int64_t>()[0];
  return x != y ? x > y : a.number > b.number;
}

Philox StreamOf(const TensorQueue::Spec& spec) {
  if (spec.kind != TensorQueue::Kind::kShuffle) return Philox();
  if (spec.seed != 0 || spec.seed2 != 0) {
    return Philox(static_cast<uint64_t>(spec.seed), 0, static_cast<uint64_t>(spec.seed2));
  }
  std::random_device device;
  return Philox(uint64_t{device()} << 32 | device(), 0, uint64_t{device()} << 32 | device());
}

// Copies `from` to the first places of each dimension of block `at` of `to`.
void CopyBlock(const Tensor& from, Tensor* to, int64_t at) {
  if (from.NumElements() == 0) return;
  const int64_t size = to->NumElements() / to->dim_size(0);
  if (from.NumElements() == size) return CopyElements(from, 0, size, to, at * size);
  // A block of another size has dimensions. Elements along the last dimension stay together.
  const int last = from.dims() - 1;
  const int64_t run = from.dim_size(last);
  for (int64_t r = 0; r < from.NumElements() / run; ++r) {
    int64_t rest = r;
    int64_t place = at * size;
    int64_t stride = to->dim_size(last + 1);
    for (int d = last - 1; d >= 0; --d) {
      place += rest % from.dim_size(d) * stride;
      rest /= from.dim_size(d);
      stride *= to->dim_size(d + 1);
    }
    CopyElements(from, r * run, run, to, place);
  }
}

// Returns the memory of the shapes that a tensor does not hold inside.
template <typename Element>
int64_t ShapeBytesOf(const Element& element) {
  constexpr int kInline = 4;
  int64_t bytes = 0;
  for (const Tensor& tensor : element.tuple) {
    if (tensor.dims() > kInline) bytes += tensor.dims() * static_cast<int64_t>(sizeof(int64_t));
  }
  return bytes;
}

// The number of elements between two checks for a stop of the run.
constexpr int64_t kElementsPerCheck = 1024;

}  // namespace

bool operator==(const TensorQueue::Spec& a, const TensorQueue::Spec& b) {
  const auto same_shapes = [](const PartialTensorShape& x, const PartialTensorShape& y) {
    return x.IsIdenticalTo(y);
  };
  return a.kind == b.kind && a.dtypes == b.dtypes && a.capacity == b.capacity &&
         a.min_after_dequeue == b.min_after_dequeue && a.memory_limit == b.memory_limit &&
         a.seed == b.seed && a.seed2 == b.seed2 &&
         std::equal(a.shapes.begin(), a.shapes.end(), b.shapes.begin(), b.shapes.end(),
                    same_shapes);
}

absl::StatusOr<std::shared_ptr<TensorQueue>> TensorQueue::Make(
    Spec spec, std::string name, const std::shared_ptr<Allocator>& allocator) {
  if (spec.dtypes.empty()) {
    return errors::InvalidArgument("the elements of a queue must have at least one component");
  }
  for (const DataType dtype : spec.dtypes) {
    if (DataTypeCanBeTensor(dtype) || dtype == DT_RESOURCE) continue;
    return errors::InvalidArgument("a queue cannot have components of type ",
                                   DataTypeString(dtype));
  }
  if (spec.shapes.size() != spec.dtypes.size() &&
      (!spec.shapes.empty() || spec.kind == Kind::kPadding)) {
    return errors::InvalidArgument("shapes must have ", spec.dtypes.size(),
                                   " elements, one for each component, but has ",
                                   spec.shapes.size());
  }
  for (const PartialTensorShape& shape : spec.shapes) {
    if (spec.kind == Kind::kPadding ? !shape.unknown_rank() : shape.IsFullyDefined()) continue;
    return errors::InvalidArgument("the shapes of the components must ",
                                   spec.kind == Kind::kPadding ? "have a rank" : "be fully defined",
                                   ", but one is ", shape.DebugString());
  }
  if (spec.kind == Kind::kPriority &&
      (spec.dtypes[0] != DT_INT64 || (!spec.shapes.empty() && spec.shapes[0].dims() != 0))) {
    return errors::InvalidArgument("the priority, component 0, must be a scalar of type int64");
  }
  if (spec.capacity < 0) spec.capacity = std::numeric_limits<int32_t>::max();
  if (spec.min_after_dequeue < 0 ||
      (spec.kind == Kind::kShuffle && spec.min_after_dequeue >= spec.capacity)) {
    return errors::InvalidArgument("min_after_dequeue must be at least 0 and less than the ",
                                   "capacity, ", spec.capacity, ", but is ",
                                   spec.min_after_dequeue);
  }
  // The constructor is private.
  return std::shared_ptr<TensorQueue>(new TensorQueue(std::move(spec), std::move(name), allocator));
}

TensorQueue::TensorQueue(Spec spec, std::string name, const std::shared_ptr<Allocator>& allocator)
    : spec_(std::move(spec)),
      name_(std::move(name)),
      allocator_(allocator),
      reservation_(allocator_.get()),
      random_(StreamOf(spec_)) {}

std::string TensorQueue::Name() const {
  return absl::StrCat("queue '", errors::Printable(name_), "'");
}

std::string TensorQueue::DebugString() const {
  return absl::StrCat("queue of ", size(), " elements with ", spec_.dtypes.size(), " components");
}

int64_t TensorQueue::size() const {
  MutexLock lock(&mutex_);
  return static_cast<int64_t>(elements_.size()) - NumFound();
}

bool TensorQueue::is_closed() const {
  MutexLock lock(&mutex_);
  return is_closed_;
}

// ---- Checks ----

absl::Status TensorQueue::CheckTuple(const Tuple& tuple, bool is_batch) const {
  if (tuple.size() != spec_.dtypes.size()) {
    return errors::InvalidArgument(Name(), " has elements of ", spec_.dtypes.size(),
                                   " components, but there are ", tuple.size());
  }
  for (size_t i = 0; i < tuple.size(); ++i) {
    const Tensor& tensor = tuple[i];
    if (tensor.dtype() != spec_.dtypes[i]) {
      return errors::InvalidArgument("component ", i, " must be of type ",
                                     DataTypeString(spec_.dtypes[i]), ", but is ",
                                     DataTypeString(tensor.dtype()));
    }
    if (is_batch && tensor.dims() == 0) {
      return errors::InvalidArgument("component ", i, " must not be a scalar");
    }
    TensorShape shape = tensor.shape();
    if (is_batch) {
      if (tensor.dim_size(0) != tuple[0].dim_size(0)) {
        return errors::InvalidArgument("all components must have ", tuple[0].dim_size(0),
                                       " rows, but component ", i, " has ", tensor.dim_size(0));
      }
      shape.RemoveDim(0);
    }
    const bool is_priority = spec_.kind == Kind::kPriority && i == 0;
    const PartialTensorShape expected = is_priority            ? PartialTensorShape(TensorShape())
                                        : spec_.shapes.empty() ? PartialTensorShape()
                                                               : spec_.shapes[i];
    if (!expected.IsCompatibleWith(shape)) {
      return errors::InvalidArgument(is_batch ? "the rows of component " : "component ", i,
                                     " must have shape ", expected.DebugString(), ", but ",
                                     is_batch ? "have shape " : "has shape ", shape.DebugString());
    }
  }
  return absl::OkStatus();
}

absl::Status TensorQueue::CheckOutputs(const KernelContext& ctx) const {
  bool same = ctx.num_outputs() == static_cast<int>(spec_.dtypes.size());
  for (int i = 0; i < ctx.num_outputs() && same; ++i) {
    same = ctx.expected_output_dtype(i) == spec_.dtypes[static_cast<size_t>(i)];
  }
  if (same) return absl::OkStatus();
  return errors::InvalidArgument(
      "component_types must be the types of ", Name(), ", ",
      absl::StrJoin(spec_.dtypes, ", ", [](std::string* out, DataType dtype) {
        absl::StrAppend(out, DataTypeString(dtype));
      }));
}

// ---- Attempts ----

void TensorQueue::Enqueue(KernelContext& ctx, AsyncDone done, int first, bool many) {
  auto attempt = std::make_shared<Attempt>(Action::kEnqueue, ctx, done);
  for (int i = first; i < ctx.num_inputs(); ++i) attempt->tuple.push_back(ctx.input(i));
  attempt->is_batch = many;
  if (absl::Status status = CheckTuple(attempt->tuple, many); !status.ok()) {
    done(std::move(status));
    return;
  }
  attempt->count = many ? attempt->tuple[0].dim_size(0) : 1;
  if (attempt->count == 0) {
    done(absl::OkStatus());
    return;
  }
  Start(std::move(attempt));
}

void TensorQueue::Dequeue(KernelContext& ctx, AsyncDone done) {
  if (absl::Status status = CheckOutputs(ctx); !status.ok()) {
    done(std::move(status));
    return;
  }
  Start(std::make_shared<Attempt>(Action::kDequeue, ctx, std::move(done)));
}

void TensorQueue::DequeueMany(KernelContext& ctx, AsyncDone done, int64_t count,
                              bool allows_fewer) {
  absl::Status status = CheckOutputs(ctx);
  if (status.ok() && spec_.shapes.empty()) {
    status = errors::InvalidArgument(Name(), " must have shapes for its components, because ",
                                     "several elements are dequeued at once");
  }
  if (status.ok() && count < 0) {
    status = errors::InvalidArgument("n must not be negative, but is ", count);
  }
  auto attempt = std::make_shared<Attempt>(Action::kDequeue, ctx, done);
  attempt->is_batch = true;
  attempt->allows_fewer = allows_fewer;
  attempt->count = count;
  if (status.ok() && count > 0) {
    Start(std::move(attempt));
    return;
  }
  done(status.ok() ? SetOutputs(*attempt) : std::move(status));
}

void TensorQueue::Close(KernelContext& ctx, AsyncDone done, bool cancels_enqueues) {
  if (!cancels_enqueues) {
    Start(std::make_shared<Attempt>(Action::kClose, ctx, std::move(done)));
    return;
  }
  Attempts cancelled;
  {
    MutexLock lock(&mutex_);
    is_closed_ = true;
    for (const std::shared_ptr<Attempt>& attempt : producers_) attempt->is_waiting = false;
    cancelled.swap(producers_);
  }
  for (const std::shared_ptr<Attempt>& attempt : cancelled) {
    attempt->status = absl::CancelledError(
        absl::StrCat("the enqueue was cancelled, because ", Name(), " is closed"));
    End(*attempt);
  }
  Flush();
  done(absl::OkStatus());
}

void TensorQueue::Start(std::shared_ptr<Attempt> attempt) {
  {
    MutexLock lock(&mutex_);
    Attempts& list = ListOf(*attempt);
    attempt->place = list.insert(list.end(), attempt);
    attempt->is_waiting = true;
  }
  Flush();
  StopToken* const stop = attempt->ctx->run().stop;
  {
    MutexLock lock(&mutex_);
    if (!attempt->is_waiting || stop == nullptr) return;
  }
  const StopToken::CallbackId id =
      stop->AddCallback([queue = shared_from_this(), attempt] { queue->GiveUp(attempt); });
  // The run may have been stopped before.
  if (id == 0) return GiveUp(attempt);
  {
    MutexLock lock(&mutex_);
    if (attempt->is_waiting) {
      attempt->stop_callback = id;
      return;
    }
  }
  // The attempt has ended in the meantime.
  stop->RemoveCallback(id);
}

void TensorQueue::GiveUp(const std::shared_ptr<Attempt>& attempt) {
  {
    MutexLock lock(&mutex_);
    if (!attempt->is_waiting) return;
    RemoveLocked(attempt.get());
    // The callback that calls this needs no removal.
    attempt->stop_callback = 0;
  }
  attempt->status = StoppedError();
  End(*attempt);
  // Other attempts may have waited for this one.
  Flush();
}

void TensorQueue::Flush() {
  for (bool changed = true; changed;) {
    changed = false;
    Attempts ended;
    {
      MutexLock lock(&mutex_);
      TryAll(&ended);
    }
    for (const std::shared_ptr<Attempt>& attempt : ended) changed |= !End(*attempt);
  }
}

bool TensorQueue::End(Attempt& attempt) {
  // No other thread uses an attempt that is in no list, except for a callback, which sees that the
  // attempt does not wait.
  StopToken::CallbackId callback = 0;
  {
    MutexLock lock(&mutex_);
    callback = std::exchange(attempt.stop_callback, 0);
  }
  if (callback != 0) attempt.ctx->run().stop->RemoveCallback(callback);
  const bool has_elements = !attempt.elements.empty();
  if (has_elements && attempt.status.ok()) attempt.status = SetOutputs(attempt);
  const bool failed = !attempt.status.ok();
  if ((attempt.done(attempt.status) && !failed) || !has_elements) return true;
  MutexLock lock(&mutex_);
  for (auto element = attempt.elements.rbegin(); element != attempt.elements.rend(); ++element) {
    AddBack(std::move(*element));
  }
  return false;
}

absl::Status TensorQueue::SetOutputs(Attempt& attempt) const {
  KernelContext& ctx = *attempt.ctx;
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    if (attempt.is_batch) {
      GRADFLOW_RETURN_IF_ERROR(StackComponents(ctx, attempt.elements, i));
    } else {
      ctx.set_output(i, attempt.elements[0].tuple[static_cast<size_t>(i)]);
    }
  }
  return absl::OkStatus();
}

absl::Status TensorQueue::StackComponents(KernelContext& ctx, const std::vector<Element>& elements,
                                          int i) const {
  const auto component = static_cast<size_t>(i);
  const PartialTensorShape& shape = spec_.shapes[component];
  DimVector dims = {static_cast<int64_t>(elements.size())};
  double bytes = 0;
  for (int d = 0; d < shape.dims(); ++d) {
    int64_t size = std::max<int64_t>(shape.dim_size(d), 0);
    for (const Element& element : elements) {
      size = std::max(size, element.tuple[component].dim_size(d));
    }
    dims.push_back(size);
  }
  for (const Element& element : elements) {
    const Tensor& tensor = element.tuple[component];
    if (tensor.dtype() == DT_STRING) bytes += static_cast<double>(tensor.StringBytes());
  }
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape all, TensorShape::Make(dims));
  ctx.ExpectStringBytes(bytes);
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(i, all, &output));
  if (!shape.IsFullyDefined() && DataTypeIsPlainBytes(output->dtype())) {
    SetZero(ctx.run(), output);
  }
  for (size_t k = 0; k < elements.size(); ++k) {
    if (k % kElementsPerCheck == kElementsPerCheck - 1 && ctx.ShouldStop()) return StoppedError();
    CopyBlock(elements[k].tuple[component], output, static_cast<int64_t>(k));
  }
  return absl::OkStatus();
}

// ---- Under the mutex ----

void TensorQueue::RemoveLocked(Attempt* attempt) {
  attempt->is_waiting = false;
  ListOf(*attempt).erase(attempt->place);
}

void TensorQueue::TryAll(Attempts* ended) {
  bool changed = true;
  while (changed) {
    changed = TryList(&producers_, ended);
    changed |= TryList(&consumers_, ended);
  }
}

bool TensorQueue::TryList(Attempts* list, Attempts* ended) {
  bool changed = false;
  while (!list->empty()) {
    Attempt& attempt = *list->front();
    const int64_t before = attempt.num_enqueued;
    bool has_ended = false;
    if (attempt.action == Action::kClose) {
      if (is_closed_) {
        attempt.status = absl::CancelledError(absl::StrCat(Name(), " is already closed"));
      }
      is_closed_ = true;
      has_ended = true;
    } else {
      has_ended = attempt.action == Action::kEnqueue ? TryEnqueue(&attempt) : TryDequeue(&attempt);
    }
    changed |= has_ended || attempt.num_enqueued != before;
    if (!has_ended) break;
    attempt.is_waiting = false;
    ended->splice(ended->end(), *list, list->begin());
  }
  return changed;
}

bool TensorQueue::TryEnqueue(Attempt* attempt) {
  if (is_closed_) {
    attempt->status = absl::CancelledError(absl::StrCat(Name(), " is closed"));
    return true;
  }
  while (true) {
    if (attempt->num_enqueued % kElementsPerCheck == kElementsPerCheck - 1 &&
        attempt->ctx->ShouldStop()) {
      attempt->status = StoppedError();
      return true;
    }
    Element element;
    if (attempt->is_batch) {
      element.tuple.reserve(attempt->tuple.size());
      for (const Tensor& rows : attempt->tuple) {
        element.tuple.push_back(rows.SubSlice(attempt->num_enqueued));
      }
    } else {
      element.tuple = attempt->tuple;
    }
    const int64_t bytes = BytesOf(element);
    if (spec_.memory_limit > 0 && bytes > spec_.memory_limit) {
      attempt->status = errors::ResourceExhausted("the element has ", bytes, " bytes, but ", Name(),
                                                  " has a limit of ", spec_.memory_limit);
      return true;
    }
    if (!HasRoom(bytes)) return false;
    attempt->status = Reserve(element);
    if (!attempt->status.ok()) return true;
    element.number = next_number_++;
    Add(std::move(element));
    if (++attempt->num_enqueued == attempt->count) return true;
  }
}

bool TensorQueue::HasRoom(int64_t bytes) const {
  const int64_t found = NumFound();
  if (static_cast<int64_t>(elements_.size()) - found >= spec_.capacity) return false;
  return spec_.memory_limit <= 0 || bytes <= spec_.memory_limit - num_bytes_;
}

int64_t TensorQueue::BytesOf(const Element& element) const {
  // Reading the lengths of strings takes time.
  if (spec_.memory_limit <= 0) return 0;
  int64_t bytes = 0;
  for (const Tensor& tensor : element.tuple) bytes += static_cast<int64_t>(tensor.TotalBytes());
  return bytes;
}

bool TensorQueue::TryDequeue(Attempt* attempt) {
  const int64_t available = NumAvailable();
  int64_t count = attempt->count;
  if (available < count) {
    if (!is_closed_) return false;
    if (!attempt->allows_fewer || available == 0) {
      attempt->status = absl::OutOfRangeError(
          absl::StrCat(Name(), " is closed and has insufficient elements (requested ", count,
                       ", current size ", available, ")"));
      return true;
    }
    count = available;
  }
  attempt->elements.reserve(static_cast<size_t>(count));
  for (int64_t k = 0; k < count; ++k) attempt->elements.push_back(Take());
  return true;
}

int64_t TensorQueue::NumAvailable() const {
  const auto size = static_cast<int64_t>(elements_.size());
  return is_closed_ ? size : std::max<int64_t>(size - spec_.min_after_dequeue, 0);
}

int64_t TensorQueue::NumFound() const {
  return consumers_.empty() ? 0 : std::min(NumAvailable(), consumers_.front()->count);
}

absl::Status TensorQueue::Reserve(const Element& element) {
  const auto size = static_cast<int64_t>(elements_.size());
  const int64_t shape_bytes = shape_bytes_ + ShapeBytesOf(element);
  if (size < num_reserved_ && shape_bytes <= shape_bytes_reserved_) return absl::OkStatus();
  const int64_t capacity = size < num_reserved_ ? num_reserved_ : std::max<int64_t>(8, 2 * size);
  const int64_t shape_capacity =
      shape_bytes <= shape_bytes_reserved_ ? shape_bytes_reserved_ : 2 * shape_bytes;
  const auto element_bytes =
      static_cast<double>(sizeof(Element) + spec_.dtypes.size() * sizeof(Tensor));
  GRADFLOW_RETURN_IF_ERROR(reservation_.Set(
      static_cast<double>(capacity) * element_bytes + static_cast<double>(shape_capacity),
      "a queue of tensors"));
  num_reserved_ = capacity;
  shape_bytes_reserved_ = shape_capacity;
  return absl::OkStatus();
}

void TensorQueue::Add(Element element) {
  num_bytes_ += BytesOf(element);
  shape_bytes_ += ShapeBytesOf(element);
  elements_.push_back(std::move(element));
  if (spec_.kind == Kind::kPriority) {
    std::push_heap(elements_.begin(), elements_.end(), ComesAfter<Element>);
  }
}

void TensorQueue::AddBack(Element element) {
  const bool is_ordered = spec_.kind == Kind::kFifo || spec_.kind == Kind::kPadding;
  if (!is_ordered) return Add(std::move(element));
  num_bytes_ += BytesOf(element);
  shape_bytes_ += ShapeBytesOf(element);
  // Elements of other consumers may have gone back before.
  const auto place = std::find_if(elements_.begin(), elements_.end(),
                                  [&](const Element& e) { return e.number > element.number; });
  elements_.insert(place, std::move(element));
}

TensorQueue::Element TensorQueue::Take() {
  if (spec_.kind == Kind::kPriority) {
    std::pop_heap(elements_.begin(), elements_.end(), ComesAfter<Element>);
  } else if (spec_.kind == Kind::kShuffle) {
    std::swap(elements_[random_.Next() % elements_.size()], elements_.back());
  }
  const bool at_end = spec_.kind == Kind::kPriority || spec_.kind == Kind::kShuffle;
  Element element = std::move(at_end ? elements_.back() : elements_.front());
  if (at_end) {
    elements_.pop_back();
  } else {
    elements_.pop_front();
  }
  num_bytes_ -= BytesOf(element);
  shape_bytes_ -= ShapeBytesOf(element);
  return element;
}

// ---- NamedQueue ----

absl::Status NamedQueue::Init(const KernelConstruction& construction, TensorQueue::Spec spec) {
  GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("container", &container_));
  GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("shared_name", &name_));
  if (absl::StartsWith(container_, kReservedContainers)) {
    return errors::InvalidArgument("container '", errors::Printable(container_), "' is reserved");
  }
  if (name_.empty()) name_ = construction.def().name();
  handle_ = Tensor(ResourceHandle(container_, name_));
  // Checks and completes the spec.
  GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<TensorQueue> queue,
                            TensorQueue::Make(std::move(spec), name_, SystemAllocator()));
  spec_ = queue->spec();
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<TensorQueue>> NamedQueue::Get(const KernelContext& ctx) const {
  if (ctx.resource_manager() == nullptr) {
    return errors::FailedPrecondition("queues need a session");
  }
  GRADFLOW_ASSIGN_OR_RETURN(
      const std::shared_ptr<TensorQueue> queue,
      ctx.resource_manager()->LookupOrCreate<TensorQueue>(
          container_, name_, [&] { return TensorQueue::Make(spec_, name_, ctx.allocator()); }));
  TensorQueue::Spec expected = spec_;
  if (spec_.seed == 0 && spec_.seed2 == 0) {
    // The node leaves the seeds to the node that made the queue.
    expected.seed = queue->spec().seed;
    expected.seed2 = queue->spec().seed2;
  }
  if (queue->spec() == expected) return queue;
  return errors::InvalidArgument("the queue of this name has another kind, capacity, or other ",
                                 "components: ", queue->DebugString());
}

}  // namespace gradflow
