// TensorQueue: a queue of tuples of tensors. It is a resource of the session.
//
// Calls that have to wait are attempts. Producers and consumers have a list of attempts each, which
// the queue tries in the order in which they came. No thread waits for an attempt: the thread that
// makes it possible ends it. An attempt that a stopped run has given up leaves no trace, except for
// the elements that an enqueue of several elements has added before.
//
//   1. An element is in the queue or belongs to one attempt that has ended. If the run of a dequeue
//      has ended in the meantime, the element goes back to its place.
//   2. Elements that the first waiting dequeue has found do not count against the capacity, so that
//      a dequeue of more elements than the capacity ends.
//   3. No callback runs, and no elements of tensors are copied, while the mutex is held.
//
// Thread safety: thread-safe.
#ifndef GRADFLOW_OPS_DATA_FLOW_TENSOR_QUEUE_H_
#define GRADFLOW_OPS_DATA_FLOW_TENSOR_QUEUE_H_

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gradflow/core/allocator.h"
#include "gradflow/core/memory_reservation.h"
#include "gradflow/core/mutex.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/resource_manager.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/core/types.h"
#include "gradflow/ops/random/philox.h"

namespace gradflow {

class TensorQueue final : public ResourceBase, public std::enable_shared_from_this<TensorQueue> {
 public:
  enum class Kind {
    kFifo,
    // Dequeues a random element.
    kShuffle,
    // First in, first out. Elements may differ in dimensions that the shapes leave open; a dequeue
    // of several elements pads them with zeros or empty strings.
    kPadding,
    // Dequeues the element whose first component, an int64, is smallest. Equal elements are
    // dequeued in their order.
    kPriority,
  };

  struct Spec {
    Kind kind = Kind::kFifo;
    DataTypeVector dtypes;
    // The shape of each component; empty if the components may have any shapes.
    std::vector<PartialTensorShape> shapes;
    // The largest number of elements; negative for any number.
    int64_t capacity = -1;
    // The elements that stay in a shuffled queue until it is closed.
    int64_t min_after_dequeue = 0;
    // The largest number of bytes of the elements; 0 for any number.
    int64_t memory_limit = 0;
    // The seeds of a shuffled queue. If both are 0, its order is different in each process.
    int64_t seed = 0;
    int64_t seed2 = 0;

    friend bool operator==(const Spec& a, const Spec& b);
  };

  // The components of an element.
  using Tuple = std::vector<Tensor>;

  // Returns INVALID_ARGUMENT if the spec is not valid. Errors name the queue `name`.
  static absl::StatusOr<std::shared_ptr<TensorQueue>> Make(
      Spec spec, std::string name, const std::shared_ptr<Allocator>& allocator);

  const Spec& spec() const { return spec_; }
  std::string DebugString() const override;
  // Returns the number of elements that no waiting dequeue has found.
  int64_t size() const;
  bool is_closed() const;

  // These end the run of a kernel, now or later. They return INVALID_ARGUMENT in the kernel's
  // status if types or shapes do not fit the queue.

  // Adds the inputs from input `first` on as an element, or their rows as elements. Fails with
  // CANCELLED if the queue is closed, and with RESOURCE_EXHAUSTED if the element alone exceeds the
  // memory limit.
  void Enqueue(KernelContext& ctx, AsyncDone done, int first, bool many);
  // Removes an element, and makes its components the outputs. Fails with OUT_OF_RANGE if the queue
  // is closed and empty.
  void Dequeue(KernelContext& ctx, AsyncDone done);
  // Removes `count` elements, and makes the stacked components the outputs. Fails with OUT_OF_RANGE
  // if the queue is closed and has fewer elements, unless `allows_fewer` and it has some.
  void DequeueMany(KernelContext& ctx, AsyncDone done, int64_t count, bool allows_fewer);
  // Closes the queue after the enqueues that wait, or cancels these.
  void Close(KernelContext& ctx, AsyncDone done, bool cancels_enqueues);

 private:
  struct Element {
    Tuple tuple;
    // The position in the order of all elements.
    uint64_t number = 0;
  };

  enum class Action { kEnqueue, kClose, kDequeue };

  // A call that waits.
  struct Attempt {
    Attempt(Action a, KernelContext& c, const AsyncDone& d) : action(a), ctx(&c), done(d) {}

    const Action action;
    // Lives as long as `done`.
    KernelContext* const ctx;
    const AsyncDone done;
    // An element, or a batch of elements, of an enqueue.
    Tuple tuple;
    bool is_batch = false;
    bool allows_fewer = false;
    // The number of elements to enqueue or to dequeue.
    int64_t count = 1;
    // The result. Belongs to the thread that has ended the attempt.
    absl::Status status;
    std::vector<Element> elements;

    // The members below are guarded by the mutex of the queue.

    // The number of elements that have been enqueued.
    int64_t num_enqueued = 0;
    // True while the attempt is in a list of the queue, at `place`.
    bool is_waiting = false;
    std::list<std::shared_ptr<Attempt>>::iterator place;
    // The callback for a stop of the run; 0 if there is none yet.
    int64_t stop_callback = 0;
  };
  using Attempts = std::list<std::shared_ptr<Attempt>>;

  TensorQueue(Spec spec, std::string name, const std::shared_ptr<Allocator>& allocator);

  // "queue 'q'"
  std::string Name() const;
  // Checks the components of an element, or of a batch of elements.
  absl::Status CheckTuple(const Tuple& tuple, bool is_batch) const;
  absl::Status CheckOutputs(const KernelContext& ctx) const;

  // Tries an attempt, and keeps it until it has ended or its run is stopped.
  void Start(std::shared_ptr<Attempt> attempt);
  // Ends an attempt that waits, because its run is stopped.
  void GiveUp(const std::shared_ptr<Attempt>& attempt);
  // Tries all attempts that wait, and ends those that succeed or fail.
  void Flush();
  // Ends an attempt that is no longer in a list. Returns false if its elements went back.
  bool End(Attempt& attempt);
  absl::Status SetOutputs(Attempt& attempt) const;
  // Makes output `i` the stacked components `i` of the elements.
  absl::Status StackComponents(KernelContext& ctx, const std::vector<Element>& elements,
                               int i) const;

  Attempts& ListOf(const Attempt& attempt) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return attempt.action == Action::kDequeue ? consumers_ : producers_;
  }
  void RemoveLocked(Attempt* attempt) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Moves the attempts that have ended to `ended`.
  void TryAll(Attempts* ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Tries the first attempts of a list. Returns true if the queue has changed.
  bool TryList(Attempts* list, Attempts* ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Return true if the attempt has ended.
  bool TryEnqueue(Attempt* attempt) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TryDequeue(Attempt* attempt) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the number of elements that may be dequeued.
  int64_t NumAvailable() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the number of elements that the first waiting dequeue has found.
  int64_t NumFound() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Charges the memory of one more element, without the elements of its tensors.
  absl::Status Reserve(const Element& element) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the bytes of an element; 0 if there is no memory limit.
  int64_t BytesOf(const Element& element) const;
  // Returns true if an element of this size fits.
  bool HasRoom(int64_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Add(Element element) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns an element to its place.
  void AddBack(Element element) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Element Take() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Spec spec_;
  const std::string name_;
  const std::shared_ptr<Allocator> allocator_;
  mutable Mutex mutex_;
  // A heap if the queue has priorities.
  std::deque<Element> elements_ ABSL_GUARDED_BY(mutex_);
  MemoryReservation reservation_ ABSL_GUARDED_BY(mutex_);
  // The number of elements, and the bytes of their shapes, whose memory is charged.
  int64_t num_reserved_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t shape_bytes_reserved_ ABSL_GUARDED_BY(mutex_) = 0;
  // The bytes of the shapes of the elements outside of the tensors.
  int64_t shape_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // The bytes of the elements, if there is a memory limit.
  int64_t num_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t next_number_ ABSL_GUARDED_BY(mutex_) = 0;
  PhiloxReader random_ ABSL_GUARDED_BY(mutex_);
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
  Attempts producers_ ABSL_GUARDED_BY(mutex_);
  Attempts consumers_ ABSL_GUARDED_BY(mutex_);
};

// The queue that a node names by its attributes `container` and `shared_name`, or by its own name.
class NamedQueue {
 public:
  // Returns INVALID_ARGUMENT if an attribute or the spec is not valid.
  absl::Status Init(const KernelConstruction& construction, TensorQueue::Spec spec);
  // Returns the queue of the session, and makes it if it does not exist. Returns INVALID_ARGUMENT
  // if it has another spec.
  absl::StatusOr<std::shared_ptr<TensorQueue>> Get(const KernelContext& ctx) const;
  // Returns the handle of the queue.
  const Tensor& handle() const { return handle_; }

 private:
  TensorQueue::Spec spec_;
  std::string container_;
  std::string name_;
  Tensor handle_;
};

}  // namespace gradflow

#endif  // GRADFLOW_OPS_DATA_FLOW_TENSOR_QUEUE_H_
