// KeyIndex: a hash table from keys to rows.
//
// A slot has the key itself, or the hash of a string, and the row. Equal hashes lead to a slot or
// to one of the next slots. A search therefore usually loads one cache line, which the caller can
// prefetch.
//
// Thread safety: const methods may be called from several threads at a time.
#ifndef GRADFLOW_OPS_LOOKUP_KEY_INDEX_H_
#define GRADFLOW_OPS_LOOKUP_KEY_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace gradflow {

class KeyIndex {
 public:
  // The random key of the hash functions. It prevents chosen keys from colliding.
  struct Secret {
    uint64_t words[2];
  };

  explicit KeyIndex(const Secret& secret) : secret_(secret) {}

  // Return the hash of a key: the folded product with a secret factor for integers, and SipHash for
  // strings. absl::Hash is not enough: strings that make one factor of its products zero have the
  // same hash for every seed.
  uint64_t HashOf(int64_t key) const;
  uint64_t HashOf(absl::string_view key) const;

  // The number of keys.
  int64_t size() const { return size_; }

  // Begin to load what Find() needs: the slot, and the string in the slot. PrefetchString() waits
  // for the slot.
  void PrefetchSlot(uint64_t hash) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[hash >> shift_]);
  }
  void PrefetchString(uint64_t hash) const;
  // Return the row of a key, or -1. All keys of an index must have the same type.
  int64_t Find(int64_t key, uint64_t hash) const;
  int64_t Find(absl::string_view key, uint64_t hash) const;

  // Makes room for `more` new keys.
  void Reserve(int64_t more);
  // Add a key. REQUIRES: the key is not in the index, row >= 0, and no other key has the row
  void Insert(int64_t key, uint64_t hash, int64_t row);
  void Insert(absl::string_view key, uint64_t hash, int64_t row);
  // Remove a key. Return its row, or -1 if it is not in the index.
  int64_t Remove(int64_t key, uint64_t hash);
  int64_t Remove(absl::string_view key, uint64_t hash);

  // Calls fn(key, row) for each key, in any order.
  template <typename Fn>
  void ForEachInt(Fn&& fn) const {
    for (const Slot& slot : slots_) {
      if (slot.place != 0) fn(static_cast<int64_t>(slot.word), slot.row());
    }
  }
  template <typename Fn>
  void ForEachString(Fn&& fn) const {
    for (const Slot& slot : slots_) {
      if (slot.place != 0) fn(absl::string_view(strings_[slot.place - 1]), slot.row());
    }
  }

  // Returns the memory of the index, without the memory that strings have outside of their objects,
  // while it makes room for `more` new keys.
  double Bytes(int64_t more, bool has_strings) const;

 private:
  struct Slot {
    int64_t row() const { return static_cast<int64_t>(place) - 1; }

    // The key, or the hash of a string.
    uint64_t word = 0;
    // The row and 1; 0 if the slot is free.
    uint64_t place = 0;
  };

  static size_t CapacityFor(size_t keys);
  size_t Next(size_t slot) const { return (slot + 1) & (slots_.size() - 1); }
  // The hash of the key in a slot.
  uint64_t HashOf(const Slot& slot) const;
  // Returns the slot of a key, or the free slot that ends the search. `equals(slot)` compares the
  // keys. REQUIRES: there are slots
  template <typename Equals>
  size_t Search(uint64_t hash, const Equals& equals) const {
    size_t at = hash >> shift_;
    while (slots_[at].place != 0 && !equals(slots_[at])) at = Next(at);
    return at;
  }
  size_t SlotOf(int64_t key, uint64_t hash) const;
  size_t SlotOf(absl::string_view key, uint64_t hash) const;
  void InsertWord(uint64_t word, uint64_t hash, int64_t row);
  // Removes the key of a slot, and returns its row.
  int64_t Free(size_t at);

  Secret secret_;
  // The number of slots is 0 or a power of 2, and the slot of a hash is its highest bits.
  std::vector<Slot> slots_;
  int shift_ = 64;
  int64_t size_ = 0;
  // The string of each row.
  std::vector<std::string> strings_;
};

}  // namespace gradflow

#endif  // GRADFLOW_OPS_LOOKUP_KEY_INDEX_H_
