// Compares the statistics of tensors in reports with references in long double.
#include "tools/view/tensor_stats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "gradflow/core/tensor.h"
#include "gradflow/core/types.h"

namespace gradflow::tools {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::IsNan;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

template <typename T>
Tensor Make(const std::vector<double>& values, TensorShape shape) {
  Tensor tensor(DataTypeToEnum<T>::value, shape);
  for (size_t i = 0; i < values.size(); ++i) tensor.flat<T>()[i] = static_cast<T>(values[i]);
  return tensor;
}
template <typename T>
Tensor Make(const std::vector<double>& values) {
  return Make<T>(values, {static_cast<int64_t>(values.size())});
}

// Expects the statistics of `values`. The tensor represents these values exactly.
void ExpectStats(const Tensor& tensor, const std::vector<double>& values) {
  const TensorStats stats = ComputeTensorStats(tensor);
  int64_t nan = 0, positive = 0, negative = 0, finite = 0;
  long double sum = 0;
  double min = kInfinity, max = -kInfinity;
  for (const double value : values) {
    nan += std::isnan(value);
    positive += value == kInfinity;
    negative += value == -kInfinity;
    if (!std::isfinite(value)) continue;
    ++finite;
    sum += value;
    min = std::min(min, value);
    max = std::max(max, value);
  }
  EXPECT_EQ(stats.num_nan, nan);
  EXPECT_EQ(stats.num_positive_infinity, positive);
  EXPECT_EQ(stats.num_negative_infinity, negative);
  ASSERT_EQ(stats.num_finite, finite);
  if (finite == 0) {
    EXPECT_TRUE(std::isnan(stats.min) && std::isnan(stats.max) && std::isnan(stats.mean) &&
                std::isnan(stats.stddev));
    EXPECT_THAT(stats.histogram, IsEmpty());
    return;
  }
  EXPECT_EQ(stats.min, min);
  EXPECT_EQ(stats.max, max);
  const long double mean = sum / finite;
  long double squares = 0;
  std::vector<int64_t> histogram(kHistogramBins);
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    squares += (value - mean) * (value - mean);
    const int bin = max > min ? static_cast<int>((value - min) / (max - min) * kHistogramBins) : 0;
    ++histogram[std::min(bin, kHistogramBins - 1)];
  }
  const double scale = std::max(std::fabs(min), std::fabs(max));
  EXPECT_NEAR(stats.mean, static_cast<double>(mean), 1e-12 * scale);
  EXPECT_NEAR(stats.stddev, static_cast<double>(std::sqrt(squares / finite)), 1e-12 * scale);
  EXPECT_EQ(stats.histogram, histogram);
}

TEST(TensorStats, SupportAllTypes) {
  const std::vector<double> small = {1, 2, 3, 5, 8, 13, 0, 7};
  ExpectStats(Make<float>(small), small);
  ExpectStats(Make<double>(small), small);
  ExpectStats(Make<half>(small), small);
  ExpectStats(Make<bfloat16>(small), small);
  ExpectStats(Make<int8_t>(small), small);
  ExpectStats(Make<uint8_t>(small), small);
  ExpectStats(Make<int16_t>(small), small);
  ExpectStats(Make<uint16_t>(small), small);
  ExpectStats(Make<int32_t>(small), small);
  ExpectStats(Make<uint32_t>(small), small);
  ExpectStats(Make<int64_t>(small), small);
  ExpectStats(Make<uint64_t>(small), small);
  ExpectStats(Make<bool>({0, 1, 1}), {0, 1, 1});
  Tensor complex(DT_COMPLEX64, {2});
  complex.flat<complex64>()[0] = {3, -4};
  complex.flat<complex64>()[1] = {0, 1};
  ExpectStats(complex, {5, 1});
  ExpectStats(Make<int32_t>({-5, 7}), {-5, 7});
  const Tensor text(tstring("text"));
  EXPECT_EQ(ComputeTensorStats(text).num_finite, 0);
}

TEST(TensorStats, CountSpecialValues) {
  ExpectStats(Make<float>({}), {});
  ExpectStats(Make<float>({3}), {3});
  ExpectStats(Make<float>({2, 2, 2}), {2, 2, 2});
  ExpectStats(Make<float>({kNotANumber}), {kNotANumber});
  ExpectStats(Make<float>({kInfinity, 1, -kInfinity, kNotANumber, kInfinity, -4}),
              {kInfinity, 1, -kInfinity, kNotANumber, kInfinity, -4});
  ExpectStats(Make<half>({kInfinity, 1, kNotANumber}), {kInfinity, 1, kNotANumber});
  // The range of the values exceeds the largest double.
  const TensorStats wide = ComputeTensorStats(Make<double>({-1.7e308, 1.7e308}));
  EXPECT_EQ(wide.min, -1.7e308);
  EXPECT_EQ(wide.histogram[0], 1);
  EXPECT_EQ(wide.histogram[kHistogramBins - 1], 1);
}

TEST(TensorStats, CombineManyBlocks) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal(1000, 0.5);
  std::vector<double> values(200'001);
  for (double& value : values) value = static_cast<float>(normal(random));
  values[7] = kNotANumber;
  values[150'000] = kInfinity;
  ExpectStats(Make<double>(values), values);
  // Each block has special values.
  for (size_t i = 0; i + 3 < values.size(); i += 10'000) {
    values[i] = -kInfinity;
    values[i + 1] = kInfinity;
    values[i + 2] = kNotANumber;
  }
  ExpectStats(Make<double>(values), values);
}

TEST(TensorPicture, ShowsVectorsMatricesAndImages) {
  const auto picture = [](const Tensor& tensor) {
    return MakeTensorPicture(tensor, ComputeTensorStats(tensor));
  };
  const TensorPicture row = picture(Make<float>({0, 1, kNotANumber, 0.5}));
  EXPECT_EQ(row.rows, 1);
  EXPECT_EQ(row.columns, 4);
  EXPECT_THAT(row.levels, ElementsAre(0, 255, -1, 127));
  // Shows the first of two matrices.
  const TensorPicture matrix =
      picture(Make<int32_t>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {2, 2, 3}));
  EXPECT_EQ(matrix.rows, 2);
  EXPECT_EQ(matrix.columns, 3);
  EXPECT_THAT(matrix.levels, ElementsAre(0, 23, 46, 69, 92, 115));
  // Shows the first image of a batch.
  std::vector<double> pixels(2 * 2 * 3 * 3);
  std::iota(pixels.begin(), pixels.end(), 0);
  const TensorPicture image = picture(Make<uint8_t>(pixels, {2, 2, 3, 3}));
  EXPECT_EQ(image.channels, 3);
  EXPECT_EQ(image.rows, 2);
  EXPECT_EQ(image.columns, 3);
  EXPECT_EQ(image.levels.size(), 18u);
  EXPECT_EQ(image.levels[0], 0);
  EXPECT_EQ(image.levels[17], 17 * 255 / 35);
  // Equal values get the middle level.
  EXPECT_THAT(picture(Make<float>({3, 3})).levels, Each(128));
  // Shows every second element of a large matrix.
  std::vector<double> many(96 * 96);
  std::iota(many.begin(), many.end(), 0);
  const TensorPicture large = picture(Make<float>(many, {96, 96}));
  EXPECT_EQ(large.rows, 48);
  EXPECT_EQ(large.columns, 48);
  EXPECT_EQ(large.levels[48], static_cast<int>(192.0 / (96 * 96 - 1) * 255));
  for (const Tensor& none : {Tensor(3.0f), Make<float>({}), Tensor(tstring("x"))}) {
    EXPECT_THAT(picture(none).levels, IsEmpty());
  }
}

TEST(TensorCurve, ShowsVectors) {
  EXPECT_THAT(MakeTensorCurve(Make<float>({2, kNotANumber, -1, kInfinity})),
              ElementsAre(2, IsNan(), -1, IsNan()));
  EXPECT_THAT(MakeTensorCurve(Make<int32_t>({3, 4}, {1, 2, 1})), ElementsAre(3, 4));
  for (const Tensor& none : {Tensor(3.0f), Make<float>({}), Make<float>({7}), Tensor(tstring("x")),
                             Make<float>({1, 2, 3, 4}, {2, 2})}) {
    EXPECT_THAT(MakeTensorCurve(none), IsEmpty());
  }
  std::vector<double> values(kMaxCurve);
  std::iota(values.begin(), values.end(), 0);
  EXPECT_THAT(MakeTensorCurve(Make<double>(values)), ElementsAreArray(values));
  // A long curve keeps every peak: each of its 128 parts has the smallest and the largest value.
  values.assign(1001, 0);
  values[500] = 7;
  values[501] = -3;
  values[1000] = kNotANumber;
  std::fill_n(values.begin(), 8, kNotANumber);
  const std::vector<double> curve = MakeTensorCurve(Make<float>(values));
  ASSERT_EQ(curve.size(), kMaxCurve);
  EXPECT_THAT(curve[0], IsNan());
  EXPECT_THAT(curve[1], IsNan());
  EXPECT_EQ(curve[2], 0);
  EXPECT_EQ(curve.back(), 0);
  const auto peak = std::find(curve.begin(), curve.end(), 7);
  ASSERT_NE(peak, curve.end());
  EXPECT_EQ(peak[1], -3);
  EXPECT_EQ(std::count(curve.begin(), curve.end(), 0), kMaxCurve - 4);
}

// Sizes around the sizes of lanes, chunks and blocks, with an extreme value at each position.
TEST(TensorStats, SupportEachSize) {
  for (const int size : {1, 2, 7, 8, 9, 15, 16, 17, 25}) {
    for (int place = 0; place < size; ++place) {
      for (const double extreme : {-5.0, 9.0}) {
        std::vector<double> values(size);
        std::iota(values.begin(), values.end(), 1);
        for (double& value : values) value /= size;
        values[place] = extreme;
        SCOPED_TRACE(size);
        ExpectStats(Make<double>(values), values);
      }
    }
  }
  for (const int size : {511, 512, 513, 1025, 32767, 32768, 32769, 65537}) {
    std::vector<double> values(size);
    for (int i = 0; i < size; ++i) values[i] = i % 97;
    values.back() = 1000;
    values.front() = -1000;
    SCOPED_TRACE(size);
    ExpectStats(Make<double>(values), values);
  }
}

// A histogram step includes its lower edge. The last step includes both edges.
TEST(TensorStats, CountsValuesAtTheEdgesOfSteps) {
  std::vector<double> values(kHistogramBins + 1);
  std::iota(values.begin(), values.end(), -16);
  ExpectStats(Make<double>({0, 0.25, 0.5}), {0, 0.25, 0.5});
  std::vector<int64_t> expected(kHistogramBins, 1);
  expected.back() = 2;
  EXPECT_EQ(ComputeTensorStats(Make<int8_t>(values)).histogram, expected);
  for (double& value : values) value = std::nextafter(value, -100);
  values.push_back(-16 - 0.5);
  values.push_back(15.5);
  ExpectStats(Make<double>(values), values);
  const TensorStats equal = ComputeTensorStats(Make<double>(std::vector<double>(9, -3)));
  EXPECT_EQ(equal.histogram[0], 9);
  EXPECT_EQ(std::accumulate(equal.histogram.begin(), equal.histogram.end(), int64_t{0}), 9);
  EXPECT_EQ(equal.stddev, 0);
}

// The sum of these finite values overflows, and so does the sum of their squares.
TEST(TensorStats, HandleLargeNumbers) {
  constexpr double kMax = std::numeric_limits<double>::max();
  const TensorStats equal = ComputeTensorStats(Make<double>(std::vector<double>(20, kMax)));
  EXPECT_EQ(equal.min, kMax);
  EXPECT_EQ(equal.mean, kMax);
  EXPECT_EQ(equal.stddev, 0);
  EXPECT_EQ(equal.histogram[0], 20);
  EXPECT_EQ(ComputeTensorStats(Make<double>({kMax})).stddev, 0);
  std::vector<double> values(16, 1e140);
  values[3] = -1e140;
  values[15] = 1e149;
  ExpectStats(Make<double>(values), values);
}

TEST(TensorStats, HandleSmallNumbers) {
  for (const std::vector<double>& values :
       {std::vector<double>{1e-30}, {kNotANumber, 1e-30}, std::vector<double>(700, 1e-30)}) {
    const TensorStats stats = ComputeTensorStats(Make<double>(values));
    EXPECT_NEAR(stats.mean, 1e-30, 1e-40);
    EXPECT_LT(stats.stddev, 1e-44);
  }
}

TEST(TensorStats, HandlePartsWithoutFiniteValues) {
  std::vector<double> values(3 * 512, 2);
  std::fill_n(values.begin(), 512, kNotANumber);
  std::fill_n(values.begin() + 1024, 512, kInfinity);
  values[600] = 8;
  ExpectStats(Make<float>(values), values);
  std::fill_n(values.begin(), 1024, -kInfinity);
  ExpectStats(Make<float>(values), values);
}

// Returns the levels of a tensor whose elements equal their positions.
std::vector<int> LevelsAt(const std::vector<int>& positions, int size) {
  std::vector<int> levels;
  for (const int position : positions) {
    levels.push_back(static_cast<int>(double{1} * position / (size - 1) * 255));
  }
  return levels;
}

TEST(TensorPicture, TakesElementsInEqualSteps) {
  const auto picture = [](const TensorShape& shape) {
    std::vector<double> values(shape.num_elements());
    std::iota(values.begin(), values.end(), 0);
    const Tensor tensor = Make<double>(values, shape);
    return MakeTensorPicture(tensor, ComputeTensorStats(tensor));
  };
  // Pairs of (rows, columns). A picture of 48 rows shows the rows i * size / 48.
  for (const auto& [rows, columns] : std::vector<std::pair<int, int>>{
           {1, 3}, {3, 1}, {48, 2}, {49, 2}, {2, 48}, {2, 49}, {95, 97}, {2, 100}}) {
    std::vector<int> positions;
    for (int r = 0; r < std::min(rows, 48); ++r) {
      for (int c = 0; c < std::min(columns, 48); ++c) {
        positions.push_back(r * std::max(rows, 48) / 48 * columns + c * std::max(columns, 48) / 48);
      }
    }
    const TensorPicture actual = picture({rows, columns});
    EXPECT_EQ(actual.rows, std::min(rows, 48));
    EXPECT_EQ(actual.columns, std::min(columns, 48));
    EXPECT_EQ(actual.channels, 1);
    EXPECT_EQ(actual.levels, LevelsAt(positions, rows * columns)) << rows << " x " << columns;
  }
  const TensorPicture row = picture({60});
  EXPECT_EQ(row.rows, 1);
  EXPECT_EQ(row.columns, 48);
  // Images have 4 dimensions and 1, 3 or 4 channels.
  struct Image {
    TensorShape shape;
    int rows, columns, channels;
  };
  for (const Image& image : std::vector<Image>{{{2, 5, 3, 1}, 5, 3, 1},
                                               {{2, 5, 3, 3}, 5, 3, 3},
                                               {{2, 5, 3, 4}, 5, 3, 4},
                                               {{2, 5, 3, 2}, 3, 2, 1},
                                               {{2, 5, 3, 5}, 3, 5, 1},
                                               {{5, 3, 3}, 3, 3, 1},
                                               {{1, 2, 5, 3, 3}, 3, 3, 1}}) {
    const TensorPicture actual = picture(image.shape);
    EXPECT_EQ(actual.rows, image.rows) << image.shape.DebugString();
    EXPECT_EQ(actual.columns, image.columns) << image.shape.DebugString();
    EXPECT_EQ(actual.channels, image.channels) << image.shape.DebugString();
    std::vector<int> positions(image.rows * image.columns * image.channels);
    std::iota(positions.begin(), positions.end(), 0);
    EXPECT_EQ(actual.levels, LevelsAt(positions, static_cast<int>(image.shape.num_elements())))
        << image.shape.DebugString();
  }
  const auto levels = [](const std::vector<double>& values) {
    const Tensor tensor = Make<double>(values);
    return MakeTensorPicture(tensor, ComputeTensorStats(tensor)).levels;
  };
  EXPECT_THAT(levels({-1.7e308, 0, kInfinity, 1.7e308}), ElementsAre(0, 127, -1, 255));
  EXPECT_THAT(levels({-6, -2, -4, -3}), ElementsAre(0, 255, 127, 191));
  EXPECT_THAT(levels({-kInfinity, kNotANumber}), ElementsAre(-1, -1));
}

TEST(TensorCurve, HasAllElementsOfUpTo256) {
  std::vector<double> values(kMaxCurve, 3);
  values[0] = kNotANumber;
  const std::vector<double> curve = MakeTensorCurve(Make<double>(values));
  ASSERT_EQ(curve.size(), kMaxCurve);
  EXPECT_THAT(curve[0], IsNan());
  EXPECT_EQ(curve[1], 3);
}

// The elements of a long vector are divided into parts. The first parts may have one more element.
TEST(TensorCurve, HasTheExtremesOfEachPartInTheirOrder) {
  for (const int size : {257, 300, 511, 512, 1001}) {
    std::vector<double> values(size);
    for (int i = 0; i < size; ++i) values[i] = (i * 37) % 101;
    values[5] = kNotANumber;
    std::vector<double> expected;
    for (int part = 0, begin = 0; part < 128; ++part) {
      const int end = begin + size / 128 + (part < size % 128 ? 1 : 0);
      int low = -1, high = -1;
      for (int i = begin; i < end; ++i) {
        if (std::isnan(values[i])) continue;
        if (low < 0 || values[i] < values[low]) low = i;
        if (high < 0 || values[i] > values[high]) high = i;
      }
      expected.push_back(values[std::min(low, high)]);
      expected.push_back(values[std::max(low, high)]);
      begin = end;
    }
    EXPECT_THAT(MakeTensorCurve(Make<double>(values)), ElementsAreArray(expected)) << size;
  }
}

}  // namespace
}  // namespace gradflow::tools
