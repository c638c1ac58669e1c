#include "gradflow/runtime/session/published.h"

namespace gradflow::internal {

static_assert(2 * kNumShards <= 32, "Version::awaited has a bit for each counter");

// All operations on the counters, on has_replaced_ and on the newest version are sequentially
// consistent. A reader that took a version before it was replaced has incremented its counter
// before that, so a later look at the counter finds the reader there until it has left. Of a reader
// that leaves and a thread that replaces, at least one sees what the other has done.

void ReaderCounts::DeleteLater(std::unique_ptr<Version> version) const {
  {
    MutexLock lock(&mutex_);
    version->awaited = UINT32_MAX >> (32 - 2 * kNumShards);
    version->next = replaced_;
    replaced_ = version.release();
    has_replaced_.store(true, std::memory_order_seq_cst);
  }
  DeleteUnused();
}

void ReaderCounts::DeleteUnused() const {
  Version* unused = nullptr;
  {
    MutexLock lock(&mutex_);
    uint32_t at_zero = 0;
    // True if the counters that new readers do not use are zero.
    bool others_at_zero = true;
    const int current = current_.load(std::memory_order_relaxed);
    for (int i = 0; i < 2 * kNumShards; ++i) {
      const bool zero = shards_[i / 2].readers[i % 2].load(std::memory_order_seq_cst) == 0;
      if (zero) at_zero |= uint32_t{1} << i;
      if (i % 2 != current) others_at_zero = others_at_zero && zero;
    }
    for (Version** link = &replaced_; *link != nullptr;) {
      Version* const version = *link;
      version->awaited &= ~at_zero;
      if (version->awaited == 0) {
        *link = version->next;
        version->next = unused;
        unused = version;
      } else {
        link = &version->next;
      }
    }
    if (replaced_ == nullptr) {
      has_replaced_.store(false, std::memory_order_seq_cst);
    } else if (others_at_zero) {
      current_.store(1 - current, std::memory_order_relaxed);
    }
  }
  Delete(unused);
}

void ReaderCounts::Delete(Version* list) {
  while (list != nullptr) delete std::exchange(list, list->next);
}

}  // namespace gradflow::internal
