// Candidate samplers, which draw classes for losses that look at some classes only, and
// ComputeAccidentalHits. The draws for a seed equal TensorFlow's.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/memory_reservation.h"
#include "gradflow/core/mutex.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/ops/common/text_file.h"
#include "gradflow/ops/random/distributions.h"
#include "gradflow/ops/random/streams.h"
#include "gradflow/proto/node_def.pb.h"

namespace gradflow::candidate_sampler {
namespace {

// ---- Distributions of classes ----

// Returns an integer in [0, n). Rejects the first remainders, as TensorFlow does.
template <typename U, typename Next>
U UniformInteger(U n, const Next& next) {
  if ((n & (n - 1)) == 0) return next() & (n - 1);
  const U first = std::numeric_limits<U>::max() % n + 1;
  U bits = next();
  while (bits < first) bits = next();
  return bits % n;
}

uint64_t Next64(PhiloxReader* reader) {
  const uint64_t low = reader->Next();
  return uint64_t{reader->Next()} << 32 | low;
}

// A distribution of the classes [0, range).
class Distribution {
 public:
  virtual ~Distribution() = default;
  virtual int64_t Sample(PhiloxReader* reader) const = 0;
  virtual float Probability(int64_t value) const = 0;
  // Returns the number of classes that may be drawn.
  virtual int64_t NumPossible(int64_t range) const { return range; }
  // Learns from the true classes of a call.
  virtual void Update(absl::Span<const int64_t> /*values*/) {}
};

class Uniform final : public Distribution {
 public:
  explicit Uniform(int64_t range) : range_(range), probability_(1.0 / static_cast<double>(range)) {}
  int64_t Sample(PhiloxReader* reader) const override {
    return static_cast<int64_t>(UniformInteger<uint64_t>(static_cast<uint64_t>(range_),
                                                         [reader] { return Next64(reader); }));
  }
  float Probability(int64_t) const override { return probability_; }

 private:
  const int64_t range_;
  const float probability_;
};

// A class is as probable as the difference of the logarithms of its neighbors.
class LogUniform final : public Distribution {
 public:
  explicit LogUniform(int64_t range)
      : range_(range), log_range_(std::log1p(static_cast<double>(range))) {}
  int64_t Sample(PhiloxReader* reader) const override {
    const uint32_t high = reader->Next();
    const double unit = UnitNumbers<double>::Make(high, reader->Next());
    return (static_cast<int64_t>(std::exp(unit * log_range_)) - 1) % range_;
  }
  float Probability(int64_t value) const override {
    const auto v = static_cast<double>(value);
    return static_cast<float>(std::log((v + 2.0) / (v + 1.0)) / log_range_);
  }

 private:
  const int64_t range_;
  const double log_range_;
};

// Each class has the weight 1 and the number of times that it was a true class.
class LearnedUnigram final : public Distribution {
 public:
  // `tree` has the sums of weights: element 1 is the root, and element i has the children 2 * i and
  // 2 * i + 1. The leaves begin at leaves().
  LearnedUnigram(Tensor tree, int64_t range)
      : tree_(std::move(tree)), sums_(tree_.span<int32_t>()) {
    std::fill(sums_.begin(), sums_.end(), 0);
    std::fill(sums_.begin() + leaves(), sums_.begin() + leaves() + range, 1);
    for (int64_t i = leaves() - 1; i > 0; --i) sums_[i] = sums_[2 * i] + sums_[2 * i + 1];
  }
  int64_t Sample(PhiloxReader* reader) const override {
    auto position = static_cast<int32_t>(UniformInteger<uint32_t>(
        static_cast<uint32_t>(sums_[1]), [reader] { return reader->Next(); }));
    int64_t i = 1;
    while (i < leaves()) {
      i *= 2;
      if (position < sums_[i]) continue;
      position -= sums_[i];
      ++i;
    }
    return i - leaves();
  }
  float Probability(int64_t value) const override {
    return static_cast<float>(sums_[leaves() + value]) / static_cast<float>(sums_[1]);
  }
  void Update(absl::Span<const int64_t> values) override {
    const int32_t room = std::numeric_limits<int32_t>::max() - sums_[1];
    for (const int64_t value : values.subspan(0, static_cast<size_t>(room))) {
      for (int64_t i = leaves() + value; i > 0; i /= 2) ++sums_[i];
    }
  }

 private:
  int64_t leaves() const { return static_cast<int64_t>(sums_.size()) / 2; }

  Tensor tree_;
  const absl::Span<int32_t> sums_;
};

// Classes with given weights, by the alias method (Walker): a draw selects one of equally probable
// columns, which has up to two classes.
class FixedUnigram final : public Distribution {
 public:
  explicit FixedUnigram(std::vector<float> weights) : weights_(std::move(weights)) {
    const auto n = static_cast<int>(weights_.size());
    columns_.resize(n);
    std::vector<double> parts(n);
    std::vector<int> high;
    std::vector<int> low;
    double sum = 0;
    for (const float weight : weights_) {
      sum += double{weight};
      total_ += weight;
    }
    for (int i = 0; i < n; ++i) {
      parts[i] = double{weights_[i] * static_cast<float>(n)} / sum;
      (parts[i] < 1 ? low : high).push_back(i);
    }
    while (!high.empty() && !low.empty()) {
      const int l = low.back();
      low.pop_back();
      const int h = high.back();
      high.pop_back();
      columns_[l] = {static_cast<float>(parts[l]), h};
      parts[h] -= 1 - parts[l];
      (parts[h] < 1 ? low : high).push_back(h);
    }
    // Rounding leaves classes that fill their column.
    for (const int i : high) columns_[i] = {1, i};
    for (const int i : low) columns_[i] = {1, i};
  }
  int64_t Sample(PhiloxReader* reader) const override {
    const float unit = UnitNumbers<float>::Make(reader->Next());
    const auto i = UniformInteger<uint32_t>(static_cast<uint32_t>(columns_.size()),
                                            [reader] { return reader->Next(); });
    return unit < columns_[i].part ? static_cast<int64_t>(i) : columns_[i].other;
  }
  float Probability(int64_t value) const override { return weights_[value] / total_; }
  int64_t NumPossible(int64_t /*range*/) const override {
    return std::count_if(weights_.begin(), weights_.end(), [](float w) { return w > 0; });
  }

  // Returns the memory for a number of classes.
  static double Bytes(double classes) { return 64 * classes; }

 private:
  struct ColumnOfClasses {
    float part = 1;
    int other = 0;
  };

  const std::vector<float> weights_;
  float total_ = 0;
  std::vector<ColumnOfClasses> columns_;
};

// ---- Kernels ----

class SamplerKernel : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("num_true", &num_true_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("num_sampled", &num_sampled_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("unique", &unique_));
    return stream_.Init(construction);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(0, "true_classes", 2));
    const Tensor& input = ctx.input(0);
    if (input.dtype() != DT_INT64) {
      return errors::InvalidArgument("true_classes must be int64, but are ",
                                     DataTypeString(input.dtype()));
    }
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckShape(0, "true_classes", {input.dim_size(0), num_true_}));
    if (unique_ && num_sampled_ > range()) {
      return errors::InvalidArgument("num_sampled must be at most ", range(),
                                     ", the number of classes, if candidates are unique, but is ",
                                     num_sampled_);
    }
    const auto true_classes = input.span<int64_t>();
    for (const int64_t value : true_classes) {
      if (value < 0 || value >= range()) {
        return errors::InvalidArgument("true_classes must be in [0, ", range(), "), but have ",
                                       value);
      }
    }
    Tensor* candidates = nullptr;
    Tensor* true_counts = nullptr;
    Tensor* counts = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {num_sampled_}, &candidates));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(1, input.shape(), &true_counts));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(2, {num_sampled_}, &counts));
    // As many as TensorFlow.
    constexpr uint64_t kCountersPerCandidate = 2048 / 4;
    PhiloxReader reader(
        stream_.Reserve(kCountersPerCandidate * static_cast<uint64_t>(num_sampled_)));
    return Sample(ctx, true_classes, &reader, candidates->span<int64_t>(),
                  true_counts->span<float>(), counts->span<float>());
  }

 protected:
  int64_t num_sampled() const { return num_sampled_; }
  virtual int64_t range() const = 0;
  virtual absl::Status Sample(KernelContext& ctx, absl::Span<const int64_t> true_classes,
                              PhiloxReader* reader, absl::Span<int64_t> candidates,
                              absl::Span<float> true_counts, absl::Span<float> counts) const = 0;

  // Draws the candidates from `distribution`.
  absl::Status SampleFrom(KernelContext& ctx, const Distribution& distribution,
                          absl::Span<const int64_t> true_classes, PhiloxReader* reader,
                          absl::Span<int64_t> candidates, absl::Span<float> true_counts,
                          absl::Span<float> counts) const {
    constexpr int64_t kBetweenChecks = 4096;
    int64_t draws = num_sampled_;
    if (unique_) {
      if (const int64_t possible = distribution.NumPossible(range()); num_sampled_ > possible) {
        return errors::InvalidArgument("num_sampled must be at most ", possible,
                                       ", the number of classes with a weight, if candidates are "
                                       "unique, but is ",
                                       num_sampled_);
      }
      constexpr double kBytesPerCandidate = 40;
      MemoryReservation memory(ctx.allocator().get());
      GRADFLOW_RETURN_IF_ERROR(
          memory.Set(kBytesPerCandidate * static_cast<double>(num_sampled_), "candidates"));
      absl::flat_hash_set<int64_t> used;
      used.reserve(num_sampled_);
      draws = 0;
      for (int64_t k = 0; k < num_sampled_; ++draws) {
        if (draws % kBetweenChecks == 0 && ctx.ShouldStop()) return StoppedError();
        // Nearly impossible classes would need draws without end.
        const int64_t most = 100'000'000 + 64 * num_sampled_;
        if (draws == most) {
          return errors::ResourceExhausted("found only ", k, " of ", num_sampled_,
                                           " unique candidates in ", most, " draws");
        }
        const int64_t value = distribution.Sample(reader);
        if (used.insert(value).second) candidates[k++] = value;
      }
    } else {
      for (int64_t k = 0; k < num_sampled_; ++k) {
        if (k % kBetweenChecks == 0 && ctx.ShouldStop()) return StoppedError();
        candidates[k] = distribution.Sample(reader);
      }
    }
    // The probability of a class to be among the candidates is approximately 1 - (1 - p)^draws.
    const auto expected_count = [&](int64_t value) {
      const float p = distribution.Probability(value);
      if (draws == num_sampled_) return p * static_cast<float>(num_sampled_);
      return -std::expm1(static_cast<float>(draws) * std::log1p(-p));
    };
    for (size_t k = 0; k < candidates.size(); ++k) counts[k] = expected_count(candidates[k]);
    for (size_t k = 0; k < true_classes.size(); ++k) {
      true_counts[k] = expected_count(true_classes[k]);
    }
    return absl::OkStatus();
  }

 private:
  int64_t num_true_ = 1;
  int64_t num_sampled_ = 1;
  bool unique_ = false;
  StatefulStream stream_;
};

// A sampler with the attribute `range_max`.
class RangeKernel : public SamplerKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("range_max", &range_));
    return SamplerKernel::Init(construction);
  }

 protected:
  int64_t range() const override { return range_; }

 private:
  int64_t range_ = 1;
};

template <typename D>
class SimpleKernel final : public RangeKernel {
 protected:
  absl::Status Sample(KernelContext& ctx, absl::Span<const int64_t> true_classes,
                      PhiloxReader* reader, absl::Span<int64_t> candidates,
                      absl::Span<float> true_counts, absl::Span<float> counts) const override {
    return SampleFrom(ctx, D(range()), true_classes, reader, candidates, true_counts, counts);
  }
};

// A sampler whose distribution is made by the first run and then kept. Runs take turns.
class KeptKernel : public RangeKernel {
 protected:
  absl::Status Sample(KernelContext& ctx, absl::Span<const int64_t> true_classes,
                      PhiloxReader* reader, absl::Span<int64_t> candidates,
                      absl::Span<float> true_counts, absl::Span<float> counts) const override {
    MutexLock lock(&mutex_);
    if (distribution_ == nullptr) {
      GRADFLOW_ASSIGN_OR_RETURN(distribution_, Make(ctx));
    }
    GRADFLOW_RETURN_IF_ERROR(
        SampleFrom(ctx, *distribution_, true_classes, reader, candidates, true_counts, counts));
    distribution_->Update(true_classes);
    return absl::OkStatus();
  }

  virtual absl::StatusOr<std::unique_ptr<Distribution>> Make(const KernelContext& ctx) const = 0;

 private:
  mutable Mutex mutex_;
  mutable std::unique_ptr<Distribution> distribution_ ABSL_GUARDED_BY(mutex_);
};

class LearnedKernel final : public KeptKernel {
 protected:
  absl::StatusOr<std::unique_ptr<Distribution>> Make(const KernelContext& ctx) const override {
    if (range() >= std::numeric_limits<int32_t>::max()) {
      return errors::InvalidArgument("range_max must be less than 2^31 - 1, but is ", range());
    }
    int64_t leaves = 1;
    while (leaves < range()) leaves *= 2;
    GRADFLOW_ASSIGN_OR_RETURN(Tensor tree,
                              Tensor::Allocate(ctx.allocator(), DT_INT32, {2 * leaves}));
    return std::make_unique<LearnedUnigram>(std::move(tree), range());
  }
};

class FixedKernel final : public KeptKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("vocab_file", &file_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("unigrams", &unigrams_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("distortion", &distortion_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("num_reserved_ids", &reserved_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("num_shards", &shards_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("shard", &shard_));
    if (file_.empty() == unigrams_.empty()) {
      return errors::InvalidArgument("expected either vocab_file or unigrams");
    }
    if (file_.find('\0') != std::string::npos) {
      return errors::InvalidArgument("vocab_file must be a path, but is '",
                                     errors::Printable(file_), "'");
    }
    return RangeKernel::Init(construction);
  }

 protected:
  absl::StatusOr<std::unique_ptr<Distribution>> Make(const KernelContext& ctx) const override {
    if (range() > std::numeric_limits<int32_t>::max()) {
      return errors::InvalidArgument("range_max must be less than 2^31, but is ", range());
    }
    memory_ = nullptr;
    allocator_ = ctx.allocator();
    memory_ = std::make_unique<MemoryReservation>(allocator_.get());
    GRADFLOW_RETURN_IF_ERROR(
        memory_->Set(FixedUnigram::Bytes(static_cast<double>(range())), "the weights of classes"));
    std::vector<float> weights;
    // The next class of all shards.
    int64_t id = 0;
    const auto add = [&](float weight) {
      if (id++ % shards_ != shard_) return absl::OkStatus();
      if (static_cast<int64_t>(weights.size()) == range()) return TooMany();
      if (!(weight >= 0 && weight <= std::numeric_limits<float>::max())) {
        return errors::InvalidArgument("the weight of class ", id - 1, " is ", weight,
                                       ", expected a finite number that is not negative");
      }
      weights.push_back(weight);
      return absl::OkStatus();
    };
    if (reserved_ > 0 && reserved_ / shards_ > range()) return TooMany();
    while (id < reserved_) {
      // Skips the classes of other shards.
      const int64_t first = id + (shard_ - id % shards_ + shards_) % shards_;
      id = std::min(first, reserved_);
      if (shard_ >= shards_) id = reserved_;
      if (id < reserved_) GRADFLOW_RETURN_IF_ERROR(add(0));
    }
    // As in TensorFlow, the next class has the number of reserved classes of this shard.
    id = static_cast<int64_t>(weights.size());
    for (const float weight : unigrams_) {
      GRADFLOW_RETURN_IF_ERROR(add(std::pow(weight, distortion_)));
    }
    if (!file_.empty()) {
      MemoryReservation file_memory(ctx.allocator().get());
      std::string text;
      absl::Status status = ReadTextFile(ctx, file_, &file_memory, &text);
      absl::string_view rest = text;
      while (status.ok() && !rest.empty()) {
        const absl::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(rest.size(), line.size() + 1));
        // The last column. It only counts in lines of this shard.
        const absl::string_view column = line.substr(line.rfind(',') + 1);
        float weight = 0;
        if (id % shards_ == shard_ && !absl::SimpleAtof(column, &weight)) {
          status = errors::InvalidArgument("'", errors::Printable(column),
                                           "' is not a weight of a class");
        } else {
          status = add(std::pow(weight, distortion_));
        }
      }
      if (!status.ok()) {
        return errors::Prefix(absl::StrCat("'", errors::Printable(file_), "': "), status);
      }
    }
    if (static_cast<int64_t>(weights.size()) != range()) {
      return errors::InvalidArgument("range_max is ", range(), ", but there are ", weights.size(),
                                     " weights");
    }
    auto distribution = std::make_unique<FixedUnigram>(std::move(weights));
    if (distribution->NumPossible(range()) == 0) {
      return errors::InvalidArgument("all weights are zero");
    }
    return distribution;
  }

 private:
  absl::Status TooMany() const {
    return errors::InvalidArgument("range_max is ", range(), ", but there are more weights");
  }

  std::string file_;
  std::vector<float> unigrams_;
  float distortion_ = 1;
  int64_t reserved_ = 0;
  int64_t shards_ = 1;
  int64_t shard_ = 0;
  // The charge of the distribution.
  mutable std::shared_ptr<Allocator> allocator_;
  mutable std::unique_ptr<MemoryReservation> memory_;
};

// Every class is a candidate.
class AllKernel final : public SamplerKernel {
 protected:
  int64_t range() const override { return num_sampled(); }
  absl::Status Sample(KernelContext& /*ctx*/, absl::Span<const int64_t> /*true_classes*/,
                      PhiloxReader* /*reader*/, absl::Span<int64_t> candidates,
                      absl::Span<float> true_counts, absl::Span<float> counts) const override {
    for (size_t k = 0; k < candidates.size(); ++k) candidates[k] = static_cast<int64_t>(k);
    std::fill(true_counts.begin(), true_counts.end(), 1.0f);
    std::fill(counts.begin(), counts.end(), 1.0f);
    return absl::OkStatus();
  }
};

// ---- ComputeAccidentalHits ----

class HitsKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("num_true", &num_true_));
    if (num_true_ >= 0) return absl::OkStatus();
    return errors::InvalidArgument("num_true must not be negative, but is ", num_true_);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(0, "true_classes", 2));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(1, "sampled_candidates"));
    if (ctx.input_dtype(0) != DT_INT64 || ctx.input_dtype(1) != DT_INT64) {
      return errors::InvalidArgument("true_classes and sampled_candidates must be int64");
    }
    const int64_t rows = ctx.input(0).dim_size(0);
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckShape(0, "true_classes", {rows, num_true_}));
    if (rows > std::numeric_limits<int32_t>::max()) {
      return errors::InvalidArgument("true_classes have ", rows, " rows, which exceed int32");
    }
    const auto true_classes = ctx.input(0).span<int64_t>();
    const auto candidates = ctx.input(1).span<int64_t>();
    constexpr double kBytesPerCandidate = 40;
    MemoryReservation memory(ctx.allocator().get());
    GRADFLOW_RETURN_IF_ERROR(
        memory.Set(kBytesPerCandidate * static_cast<double>(candidates.size()), "candidates"));
    // The last place of each candidate, as in TensorFlow.
    absl::flat_hash_map<int64_t, int64_t> places;
    places.reserve(candidates.size());
    for (size_t k = 0; k < candidates.size(); ++k) places[candidates[k]] = static_cast<int64_t>(k);
    const auto hits = std::count_if(true_classes.begin(), true_classes.end(), [&](int64_t value) {
      return places.find(value) != places.end();
    });
    Tensor* indices = nullptr;
    Tensor* ids = nullptr;
    Tensor* weights = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {hits}, &indices));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(1, {hits}, &ids));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(2, {hits}, &weights));
    int64_t at = 0;
    for (size_t k = 0; k < true_classes.size(); ++k) {
      const auto found = places.find(true_classes[k]);
      if (found == places.end()) continue;
      indices->span<int32_t>()[at] = static_cast<int32_t>(static_cast<int64_t>(k) / num_true_);
      ids->span<int64_t>()[at] = found->second;
      weights->span<float>()[at] = -std::numeric_limits<float>::max();
      ++at;
    }
    return absl::OkStatus();
  }

 private:
  int64_t num_true_ = 1;
};

// ---- Shapes ----

absl::Status SamplerShape(ShapeContext& c) {
  int64_t num_sampled = 0;
  int64_t num_true = 0;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("num_sampled", &num_sampled));
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("num_true", &num_true));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 2));
  c.set_output(0, PartialTensorShape({num_sampled}));
  c.set_output(1, PartialTensorShape({c.Dim(0, 0), num_true}));
  c.set_output(2, PartialTensorShape({num_sampled}));
  return absl::OkStatus();
}

absl::Status HitsShape(ShapeContext& c) {
  int64_t num_true = 0;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("num_true", &num_true));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 2));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 1));
  GRADFLOW_RETURN_IF_ERROR(CheckDim(c, 0, 1, num_true));
  for (int i = 0; i < 3; ++i) c.set_output(i, PartialTensorShape({-1}));
  return absl::OkStatus();
}

struct SamplerOp {
  const char* name;
  const char* summary;
  KernelFactory factory;
};

void RegisterSampler(Registry& registry, const SamplerOp& sampler) {
  const absl::string_view name = sampler.name;
  const bool is_fixed = absl::StartsWith(name, "Fixed");
  std::string doc = absl::StrCat(
      "Draws candidates for the classes of a loss", sampler.summary,
      ".\n\n"
      "true_classes: The classes of each row, of shape [rows, num_true].\n"
      "sampled_candidates: The candidates.\n"
      "true_expected_count: How often each of `true_classes` is expected among the candidates.\n"
      "sampled_expected_count: How often each candidate is expected among the candidates.\n"
      "num_true: The number of classes of a row.\n"
      "num_sampled: The number of candidates.\n"
      "unique: If true, each class is drawn at most once.\n");
  {
    // Registers the op before its kernel.
    Registry::OpRegistrar op = registry.Op(name);
    op.Group("candidate_sampling_ops")
        .Input("true_classes: int64")
        .Output("sampled_candidates: int64")
        .Output("true_expected_count: float")
        .Output("sampled_expected_count: float")
        .Attr("num_true: int >= 1")
        .Attr("num_sampled: int >= 1")
        .Attr("unique: bool");
    if (name != "AllCandidateSampler") {
      op.Attr("range_max: int >= 1");
      absl::StrAppend(&doc, "range_max: The number of classes.\n");
    }
    if (is_fixed) {
      op.Attr("vocab_file: string = ''")
          .Attr("distortion: float = 1.0")
          .Attr("num_reserved_ids: int = 0")
          .Attr("num_shards: int >= 1 = 1")
          .Attr("shard: int >= 0 = 0")
          .Attr("unigrams: list(float) = []");
      absl::StrAppend(&doc,
                      "vocab_file: A file whose lines end with the weights of the classes, after "
                      "a comma.\n"
                      "distortion: The power to which weights are raised.\n"
                      "num_reserved_ids: The number of classes before the others, of weight 0.\n"
                      "num_shards: The number of ops that share the classes.\n"
                      "shard: The number of this op. It has every `num_shards`-th class.\n"
                      "unigrams: The weights of the classes, if there is no `vocab_file`.\n");
    }
    op.Attr("seed: int = 0").Attr("seed2: int = 0").Stateful().Shape(SamplerShape);
    if (name != "UniformCandidateSampler" && name != "LogUniformCandidateSampler") {
      // TensorFlow's C++ API has no class of this op.
      op.HandWritten();
    }
    absl::StrAppend(&doc,
                    "seed: A seed. If it and `seed2` are 0, the seed is random.\n"
                    "seed2: A second seed.");
    op.Doc(doc);
  }
  registry.Kernel(name, sampler.factory);
}

}  // namespace

void Register(Registry& registry) {
  const SamplerOp samplers[] = {
      {"UniformCandidateSampler", ": all classes are equally probable",
       MakeKernel<SimpleKernel<Uniform>>},
      {"LogUniformCandidateSampler",
       ": class k has the probability log((k + 2) / (k + 1)) / log(n + 1)",
       MakeKernel<SimpleKernel<LogUniform>>},
      {"LearnedUnigramCandidateSampler",
       ": classes are as probable as they were among\n`true_classes` of earlier runs",
       MakeKernel<LearnedKernel>},
      {"ThreadUnsafeUnigramCandidateSampler",
       ": classes are as probable as they were among\n`true_classes` of earlier runs",
       MakeKernel<LearnedKernel>},
      {"FixedUnigramCandidateSampler", ": classes have given weights", MakeKernel<FixedKernel>},
      {"AllCandidateSampler", ": every class is a candidate", MakeKernel<AllKernel>},
  };
  for (const SamplerOp& sampler : samplers) RegisterSampler(registry, sampler);
  registry.Op("ComputeAccidentalHits")
      .Group("candidate_sampling_ops")
      .Input("true_classes: int64")
      .Input("sampled_candidates: int64")
      .Output("indices: int32")
      .Output("ids: int64")
      .Output("weights: float")
      .Attr("num_true: int")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .Shape(HitsShape)
      .Doc(R"(Finds true classes that are among the candidates.

true_classes: The classes of each row, of shape [rows, num_true].
sampled_candidates: The candidates, a vector.
indices: The row of each class that is a candidate.
ids: The place of each of these classes among the candidates.
weights: The lowest float for each of these classes. Added to logits, it removes the candidate.
num_true: The number of classes of a row.
seed: Not used.
seed2: Not used.)");
  registry.Kernel("ComputeAccidentalHits", MakeKernel<HitsKernel>);
}

}  // namespace gradflow::candidate_sampler
