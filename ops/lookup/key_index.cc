#include "gradflow/ops/lookup/key_index.h"

#include <highwayhash/sip_hash.h>

#include <algorithm>

#include "absl/numeric/bits.h"
#include "absl/numeric/int128.h"

namespace gradflow {

uint64_t KeyIndex::HashOf(int64_t key) const {
  const absl::uint128 product =
      absl::uint128(static_cast<uint64_t>(key) ^ secret_.words[0]) * (secret_.words[1] | 1);
  return absl::Uint128High64(product) ^ absl::Uint128Low64(product);
}

uint64_t KeyIndex::HashOf(absl::string_view key) const {
  const highwayhash::HH_U64 sip_key[2] = {secret_.words[0], secret_.words[1]};
  return highwayhash::SipHash13(sip_key, key.data(), key.size());
}

uint64_t KeyIndex::HashOf(const Slot& slot) const {
  // Only strings are stored by row.
  return strings_.empty() ? HashOf(static_cast<int64_t>(slot.word)) : slot.word;
}

size_t KeyIndex::SlotOf(int64_t key, uint64_t hash) const {
  return Search(hash, [key](const Slot& slot) { return slot.word == static_cast<uint64_t>(key); });
}

size_t KeyIndex::SlotOf(absl::string_view key, uint64_t hash) const {
  return Search(
      hash, [&](const Slot& slot) { return slot.word == hash && strings_[slot.place - 1] == key; });
}

void KeyIndex::PrefetchString(uint64_t hash) const {
  if (slots_.empty()) return;
  const Slot& slot = slots_[Search(hash, [hash](const Slot& s) { return s.word == hash; })];
  if (slot.place != 0) __builtin_prefetch(&strings_[slot.place - 1]);
}

int64_t KeyIndex::Find(int64_t key, uint64_t hash) const {
  return slots_.empty() ? -1 : slots_[SlotOf(key, hash)].row();
}

int64_t KeyIndex::Find(absl::string_view key, uint64_t hash) const {
  return slots_.empty() ? -1 : slots_[SlotOf(key, hash)].row();
}

size_t KeyIndex::CapacityFor(size_t keys) {
  // At most 3/4 of the slots are used.
  return absl::bit_ceil(std::max<size_t>(8, keys + keys / 3 + 1));
}

double KeyIndex::Bytes(int64_t more, bool has_strings) const {
  const size_t needed = static_cast<size_t>(size_ + more);
  const size_t grown = more > 0 ? CapacityFor(needed) : 0;
  // Both arrays exist while the keys move.
  double slots = static_cast<double>(slots_.size());
  if (grown > slots_.size()) slots += static_cast<double>(grown);
  double strings = 0;
  if (has_strings) {
    strings = static_cast<double>(strings_.capacity());
    if (needed > strings_.capacity()) {
      strings += std::max(static_cast<double>(needed), 2 * strings);
    }
  }
  return slots * sizeof(Slot) + strings * sizeof(std::string);
}

void KeyIndex::Reserve(int64_t more) {
  const size_t capacity = CapacityFor(static_cast<size_t>(size_ + more));
  if (more == 0 || capacity <= slots_.size()) return;
  std::vector<Slot> before(capacity);
  before.swap(slots_);
  shift_ = 64 - absl::countr_zero(capacity);
  for (const Slot& slot : before) {
    if (slot.place == 0) continue;
    slots_[Search(HashOf(slot), [](const Slot&) { return false; })] = slot;
  }
}

void KeyIndex::InsertWord(uint64_t word, uint64_t hash, int64_t row) {
  Reserve(1);
  Slot& slot = slots_[Search(hash, [](const Slot&) { return false; })];
  slot = {word, static_cast<uint64_t>(row) + 1};
  ++size_;
}

void KeyIndex::Insert(int64_t key, uint64_t hash, int64_t row) {
  InsertWord(static_cast<uint64_t>(key), hash, row);
}

void KeyIndex::Insert(absl::string_view key, uint64_t hash, int64_t row) {
  const auto place = static_cast<size_t>(row);
  if (place >= strings_.size()) strings_.resize(place + 1);
  strings_[place].assign(key.data(), key.size());
  InsertWord(hash, hash, row);
}

int64_t KeyIndex::Free(size_t at) {
  const int64_t row = slots_[at].row();
  // Later keys move to the free slot, unless a search for them begins behind it.
  size_t free = at;
  for (size_t next = Next(at); slots_[next].place != 0; next = Next(next)) {
    const size_t first = HashOf(slots_[next]) >> shift_;
    const size_t mask = slots_.size() - 1;
    if (((next - first) & mask) < ((next - free) & mask)) continue;
    slots_[free] = slots_[next];
    free = next;
  }
  slots_[free] = {};
  --size_;
  return row;
}

int64_t KeyIndex::Remove(int64_t key, uint64_t hash) {
  if (Find(key, hash) < 0) return -1;
  return Free(SlotOf(key, hash));
}

int64_t KeyIndex::Remove(absl::string_view key, uint64_t hash) {
  if (Find(key, hash) < 0) return -1;
  const int64_t row = Free(SlotOf(key, hash));
  std::string().swap(strings_[static_cast<size_t>(row)]);
  return row;
}

}  // namespace gradflow
