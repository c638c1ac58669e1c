#include "tensorflow/core/lib/histogram/histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow {
namespace histogram {
namespace {

constexpr double kLargest = std::numeric_limits<double>::max();

std::vector<double> DefaultLimits() {
  std::vector<double> limits = {0};
  for (double limit = 1e-12; limit < 1e20; limit *= 1.1) limits.push_back(limit);
  limits.push_back(kLargest);
  const std::vector<double> positive(limits.begin() + 1, limits.end());
  for (const double limit : positive) limits.push_back(-limit);
  std::sort(limits.begin(), limits.end());
  return limits;
}

}  // namespace

Histogram::Histogram() : limits_(DefaultLimits()) { Clear(); }

Histogram::Histogram(gtl::ArraySlice<double> custom_bucket_limits)
    : limits_(custom_bucket_limits.begin(), custom_bucket_limits.end()) {
  CHECK(!limits_.empty() && std::is_sorted(limits_.begin(), limits_.end()))
      << "the limits of a histogram must increase";
  Clear();
}

void Histogram::Clear() {
  min_ = limits_.back();
  max_ = -kLargest;
  num_ = sum_ = sum_squares_ = 0;
  buckets_.assign(limits_.size(), 0);
}

bool Histogram::DecodeFromProto(const HistogramProto& proto) {
  if (proto.bucket_size() != proto.bucket_limit_size() || proto.bucket_size() == 0) return false;
  const auto& limits = proto.bucket_limit();
  // Rejects unsorted limits and NaN.
  for (int i = 0; i < proto.bucket_size(); ++i) {
    if (!(i == 0 ? limits[i] == limits[i] : limits[i - 1] < limits[i])) return false;
  }
  limits_.assign(limits.begin(), limits.end());
  buckets_.assign(proto.bucket().begin(), proto.bucket().end());
  min_ = proto.min();
  max_ = proto.max();
  num_ = proto.num();
  sum_ = proto.sum();
  sum_squares_ = proto.sum_squares();
  return true;
}

void Histogram::EncodeToProto(HistogramProto* proto, bool preserve_zero_buckets) const {
  proto->Clear();
  proto->set_min(min_);
  proto->set_max(max_);
  proto->set_num(num_);
  proto->set_sum(sum_);
  proto->set_sum_squares(sum_squares_);
  for (size_t i = 0; i < buckets_.size(); ++i) {
    // The last of consecutive empty buckets uses the left edge of the next bucket.
    const bool in_run = buckets_[i] <= 0 && i + 1 < buckets_.size() && buckets_[i + 1] <= 0;
    if (in_run && !preserve_zero_buckets) continue;
    proto->add_bucket_limit(limits_[i]);
    proto->add_bucket(buckets_[i]);
  }
  if (proto->bucket_size() == 0) {
    proto->add_bucket_limit(kLargest);
    proto->add_bucket(0);
  }
}

void Histogram::Add(double value) {
  const auto above = std::upper_bound(limits_.begin(), limits_.end(), value);
  // Numbers above the last limit count in the last bucket.
  const auto bucket =
      std::min<ptrdiff_t>(above - limits_.begin(), static_cast<ptrdiff_t>(limits_.size()) - 1);
  buckets_[static_cast<size_t>(bucket)] += 1;
  min_ = std::min(min_, value);
  max_ = std::max(max_, value);
  num_ += 1;
  sum_ += value;
  sum_squares_ += value * value;
}

double Histogram::Percentile(double p) const {
  if (num_ == 0) return 0;
  const double threshold = num_ * (p / 100);
  double below = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    const double end = below + buckets_[i];
    if (end >= threshold && end > below) {
      const double left = std::max(i == 0 || below == 0 ? min_ : limits_[i - 1], min_);
      const double right = std::min(limits_[i], max_);
      return left + (threshold - below) / (end - below) * (right - left);
    }
    below = end;
  }
  return max_;
}

double Histogram::Average() const { return num_ == 0 ? 0 : sum_ / num_; }

double Histogram::StandardDeviation() const {
  if (num_ == 0) return 0;
  return std::sqrt(std::max(0.0, (sum_squares_ * num_ - sum_ * sum_) / (num_ * num_)));
}

std::string Histogram::ToString() const {
  std::string text = absl::StrFormat("Count: %.0f  Average: %.4f  StdDev: %.2f\n", num_, Average(),
                                     StandardDeviation());
  absl::StrAppendFormat(&text, "Min: %.4f  Median: %.4f  Max: %.4f\n", num_ == 0 ? 0.0 : min_,
                        Median(), num_ == 0 ? 0.0 : max_);
  absl::StrAppend(&text, std::string(54, '-'), "\n");
  double sum = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    if (buckets_[i] <= 0 || num_ <= 0) continue;
    sum += buckets_[i];
    absl::StrAppendFormat(&text, "[ %10.2g, %10.2g ) %7.0f %7.3f%% %7.3f%% ",
                          i == 0 ? -kLargest : limits_[i - 1], limits_[i], buckets_[i],
                          100 * buckets_[i] / num_, 100 * sum / num_);
    // Prints a mark for each 5%. The buckets of a message may hold more numbers than it counts.
    const double marks = std::round(20 * std::min(1.0, buckets_[i] / num_));
    absl::StrAppend(&text, std::string(static_cast<size_t>(marks), '#'), "\n");
  }
  return text;
}

}  // namespace histogram
}  // namespace tensorflow
