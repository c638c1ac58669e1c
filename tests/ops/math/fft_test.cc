#include <cmath>
#include <complex>
#include <cstdint>
#include <string>
#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

using Wide = std::complex<long double>;

// Numbers with a shape, for the reference.
struct Array {
  TensorShape shape;
  std::vector<Wide> values;
};

Array ArrayOf(const Tensor& x) {
  Array array = {x.shape(), {}};
  using Types = TypeList<float, double, complex64, complex128>;
  DispatchType(Types(), x.dtype(), [&](auto tag) {
    for (const auto v : x.span<typename decltype(tag)::type>()) array.values.emplace_back(v);
  });
  return array;
}

Tensor TensorOf(DataType dtype, const Array& array) {
  Tensor x(dtype, array.shape);
  using Types = TypeList<float, double, complex64, complex128>;
  DispatchType(Types(), dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (size_t i = 0; i < array.values.size(); ++i) {
      if constexpr (kIsComplex<T>) {
        x.flat<T>()(i) = T(array.values[i]);
      } else {
        x.flat<T>()(i) = static_cast<T>(array.values[i].real());
      }
    }
  });
  return x;
}

// Returns `x` with `axis` cut or padded with zeros to `length`.
Array Resized(const Array& x, int axis, int64_t length) {
  Array y = x;
  y.shape.set_dim(axis, length);
  y.values.assign(y.shape.num_elements(), 0);
  int64_t inner = 1;
  for (int d = axis + 1; d < x.shape.dims(); ++d) inner *= x.shape.dim_size(d);
  const int64_t n = x.shape.dim_size(axis);
  for (int64_t i = 0; i < static_cast<int64_t>(y.values.size()); ++i) {
    const int64_t k = i / inner % length;
    if (k < n) y.values[i] = x.values[(i / inner / length * n + k) * inner + i % inner];
  }
  return y;
}

// Computes the transform along an axis by its definition, in long double.
Array Transformed(const Array& x, int axis, bool inverse) {
  const int64_t n = x.shape.dim_size(axis);
  std::vector<Wide> roots(n);
  for (int64_t k = 0; k < n; ++k) {
    const long double angle = (inverse ? 2 : -2) * std::acos(-1.0L) * k / n;
    roots[k] = Wide(std::cos(angle), std::sin(angle));
  }
  int64_t inner = 1;
  for (int d = axis + 1; d < x.shape.dims(); ++d) inner *= x.shape.dim_size(d);
  Array y = x;
  for (int64_t i = 0; i < static_cast<int64_t>(y.values.size()); ++i) {
    const int64_t k = i / inner % n;
    const int64_t line = i / (inner * n) * inner * n + i % inner;
    Wide sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += x.values[line + j * inner] * roots[j * k % n];
    y.values[i] = inverse ? sum / static_cast<long double>(n) : sum;
  }
  return y;
}

// Fills the second half of an axis of length n with the conjugates of the first half, in reverse
// order. The other axes are already transformed back.
Array Symmetric(const Array& x, int axis, int64_t n) {
  Array y = Resized(x, axis, n);
  int64_t inner = 1;
  for (int d = axis + 1; d < x.shape.dims(); ++d) inner *= x.shape.dim_size(d);
  for (int64_t i = 0; i < static_cast<int64_t>(y.values.size()); ++i) {
    const int64_t k = i / inner % n;
    if (k > n / 2) y.values[i] = std::conj(y.values[i + (n - 2 * k) * inner]);
  }
  return y;
}

double Tolerance(DataType dtype, double scale) {
  return scale * (dtype == DT_FLOAT || dtype == DT_COMPLEX64 ? 1e-6 : 1e-14);
}

// Lengths with each factor, with several factors, primes that need Bluestein's algorithm, and
// multiples of such primes.
const int64_t kLengths[] = {1,   2,   3,   4,   5,   6,   7,   8,   9,   10,   11,   12,  13,  14,
                            15,  16,  17,  19,  22,  25,  26,  34,  49,  64,   97,   100, 121, 128,
                            143, 169, 210, 256, 257, 289, 360, 509, 512, 1000, 1009, 1155};

TEST(FFT, RunsForEveryLength) {
  for (const int64_t n : kLengths) {
    SCOPED_TRACE(n);
    for (const DataType dtype : {DT_COMPLEX64, DT_COMPLEX128}) {
      const Tensor x = RandomTensor(dtype, {2, n}, -1, 1);
      const double atol = Tolerance(dtype, std::sqrt(static_cast<double>(n)));
      EXPECT_THAT(OpTester("FFT").Input(x).RunOne(),
                  TensorNear(TensorOf(dtype, Transformed(ArrayOf(x), 1, false)), atol, 0));
      EXPECT_THAT(OpTester("IFFT").Input(x).RunOne(),
                  TensorNear(TensorOf(dtype, Transformed(ArrayOf(x), 1, true)), atol, 0));
    }
  }
}

TEST(RFFT, RunsForEveryLength) {
  for (const int64_t n : kLengths) {
    SCOPED_TRACE(n);
    for (const DataType dtype : {DT_FLOAT, DT_DOUBLE}) {
      const DataType complex = dtype == DT_FLOAT ? DT_COMPLEX64 : DT_COMPLEX128;
      const double atol = Tolerance(dtype, std::sqrt(static_cast<double>(n)));
      const Tensor length = AsTensor<int32_t>({static_cast<int32_t>(n)});
      // Elements beyond the length are ignored.
      const Tensor x = RandomTensor(dtype, {2, n + 2}, -1, 1);
      const Array expected =
          Resized(Transformed(Resized(ArrayOf(x), 1, n), 1, false), 1, n / 2 + 1);
      EXPECT_THAT(OpTester("RFFT").Input(x).Input(length).Attr("Tcomplex", complex).RunOne(),
                  TensorNear(TensorOf(complex, expected), atol, 0));
      const Tensor y = RandomTensor(complex, {2, n / 2 + 2}, -1, 1);
      const Array real = Transformed(Symmetric(Resized(ArrayOf(y), 1, n / 2 + 1), 1, n), 1, true);
      EXPECT_THAT(OpTester("IRFFT").Input(y).Input(length).Attr("Treal", dtype).RunOne(),
                  TensorNear(TensorOf(dtype, real), atol, 0));
    }
  }
}

// Transforms `axes` to `lengths`. The input or the output may be real.
Array Reference(Array x, const std::vector<int>& axes, const std::vector<int64_t>& lengths,
                bool from_real, bool to_real, bool inverse) {
  const size_t last = axes.size() - 1;
  for (size_t i = 0; i < axes.size(); ++i) {
    x = Resized(x, axes[i], to_real && i == last ? lengths[i] / 2 + 1 : lengths[i]);
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    if (to_real && i == last) x = Symmetric(x, axes[i], lengths[i]);
    x = Transformed(x, axes[i], inverse);
  }
  if (from_real) x = Resized(x, axes[last], lengths[last] / 2 + 1);
  return x;
}

// The ops of two and three dimensions: complex, inverse, from real numbers, and to real numbers.
const char* const kOps[][4] = {{"FFT2D", "IFFT2D", "RFFT2D", "IRFFT2D"},
                               {"FFT3D", "IFFT3D", "RFFT3D", "IRFFT3D"}};

TEST(FFT, TransformsSeveralDimensions) {
  for (const int rank : {2, 3}) {
    const auto& ops = kOps[rank - 2];
    const TensorShape shape = rank == 2 ? TensorShape({3, 6, 10}) : TensorShape({2, 4, 3, 17});
    const std::vector<int> axes = rank == 2 ? std::vector<int>{1, 2} : std::vector<int>{1, 2, 3};
    std::vector<int64_t> lengths;
    for (const int axis : axes) lengths.push_back(shape.dim_size(axis));
    for (const bool wide : {false, true}) {
      SCOPED_TRACE(rank);
      const DataType real = wide ? DT_DOUBLE : DT_FLOAT;
      const DataType complex = wide ? DT_COMPLEX128 : DT_COMPLEX64;
      const double atol = Tolerance(real, 20);
      const Tensor z = RandomTensor(complex, shape, -1, 1);
      EXPECT_THAT(
          OpTester(ops[0]).Input(z).RunOne(),
          TensorNear(TensorOf(complex, Reference(ArrayOf(z), axes, lengths, false, false, false)),
                     atol, 0));
      EXPECT_THAT(
          OpTester(ops[1]).Input(z).RunOne(),
          TensorNear(TensorOf(complex, Reference(ArrayOf(z), axes, lengths, false, false, true)),
                     atol, 0));
      // Transforms all elements, and only the first elements along each axis.
      for (const int64_t less : {0, 1}) {
        std::vector<int64_t> shorter;
        std::vector<int32_t> values;
        for (const int64_t length : lengths) {
          shorter.push_back(length - less);
          values.push_back(static_cast<int32_t>(length - less));
        }
        const Tensor x = RandomTensor(real, shape, -1, 1);
        EXPECT_THAT(
            OpTester(ops[2])
                .Input(x)
                .Input(AsTensor<int32_t>(values))
                .Attr("Tcomplex", complex)
                .RunOne(),
            TensorNear(TensorOf(complex, Reference(ArrayOf(x), axes, shorter, true, false, false)),
                       atol, 0));
        EXPECT_THAT(
            OpTester(ops[3]).Input(z).Input(AsTensor<int32_t>(values)).Attr("Treal", real).RunOne(),
            TensorNear(TensorOf(real, Reference(ArrayOf(z), axes, shorter, false, true, true)),
                       atol, 0));
      }
    }
  }
}

// Any axes in any order, cut and padded.
TEST(FFTND, TransformsAnyAxes) {
  struct Case {
    std::vector<int32_t> axes;
    std::vector<int32_t> lengths;
  };
  const Case cases[] = {{{0, 2}, {3, 5}},
                        {{2, 0}, {5, 3}},
                        {{-1}, {5}},
                        {{1}, {4}},
                        {{0, 2}, {2, 7}},
                        {{2, 1}, {3, 6}},
                        {{1, 0, 2}, {4, 3, 5}},
                        {{0, 1, 2}, {1, 1, 1}},
                        {{1, 0}, {2, 6}}};
  const TensorShape shape = {3, 4, 5};
  for (const Case& c : cases) {
    std::vector<int> axes;
    for (const int32_t axis : c.axes) axes.push_back(axis < 0 ? axis + 3 : axis);
    const std::vector<int64_t> lengths(c.lengths.begin(), c.lengths.end());
    SCOPED_TRACE(AsTensor<int32_t>(c.axes).DebugString(3));
    const Tensor z = RandomTensor(DT_COMPLEX128, shape, -1, 1);
    const Tensor x = RandomTensor(DT_DOUBLE, shape, -1, 1);
    const auto run = [&](const char* op, const Tensor& in) {
      OpTester tester(op);
      tester.Input(in).Input(AsTensor<int32_t>(c.lengths)).Input(AsTensor<int32_t>(c.axes));
      tester.Attr("Tcomplex", DT_COMPLEX128);
      if (std::string(op).find('R') != std::string::npos) tester.Attr("Treal", DT_DOUBLE);
      return tester.RunOne();
    };
    const auto expect = [&](bool from_real, bool to_real, bool inverse) {
      return TensorNear(TensorOf(to_real ? DT_DOUBLE : DT_COMPLEX128,
                                 Reference(ArrayOf(from_real ? x : z), axes, lengths, from_real,
                                           to_real, inverse)),
                        1e-13, 0);
    };
    EXPECT_THAT(run("FFTND", z), expect(false, false, false));
    EXPECT_THAT(run("IFFTND", z), expect(false, false, true));
    EXPECT_THAT(run("RFFTND", x), expect(true, false, false));
    EXPECT_THAT(run("IRFFTND", z), expect(false, true, true));
  }
}

TEST(FFT, IsInvertedByIFFT) {
  for (const int64_t n : {4096, 65536, 100003}) {
    SCOPED_TRACE(n);
    const Tensor x = RandomTensor(DT_COMPLEX128, {n}, -1, 1);
    const auto y = OpTester("FFT").Input(x).RunOne();
    GRADFLOW_ASSERT_OK(y.status());
    EXPECT_THAT(OpTester("IFFT").Input(*y).RunOne(), TensorNear(x, 1e-13, 0));
  }
}

TEST(FFT, IsExactForUnits) {
  // All angles are multiples of a right angle.
  EXPECT_THAT(
      OpTester("FFT").Input(AsTensor<complex128>({{0, 0}, {1, 0}, {0, 0}, {0, 0}})).RunOne(),
      TensorNear(AsTensor<complex128>({{1, 0}, {0, -1}, {-1, 0}, {0, 1}}), 0, 0));
}

TEST(FFT, HasTheSameBitsOnAnyNumberOfThreads) {
  OpTester tester("FFT2D");
  tester.Input(RandomTensor(DT_COMPLEX64, {40, 60, 77}, -1, 1));
  GRADFLOW_EXPECT_OK(tester.RunEverywhere());
}

TEST(FFT, TakesEmptyTensors) {
  EXPECT_THAT(OpTester("FFT").Input(Tensor(DT_COMPLEX64, {2, 0})).RunOne(),
              TensorEq(Tensor(DT_COMPLEX64, {2, 0})));
  EXPECT_THAT(
      OpTester("RFFT").Input(Tensor(DT_FLOAT, {0, 4})).Input(AsTensor<int32_t>({4})).RunOne(),
      TensorEq(Tensor(DT_COMPLEX64, {0, 3})));
  // The result is zero, because the input is padded with zeros.
  EXPECT_THAT(OpTester("RFFT").Input(Tensor(DT_FLOAT, {0})).Input(AsTensor<int32_t>({4})).RunOne(),
              TensorEq(AsTensor<complex64>({{0, 0}, {0, 0}, {0, 0}})));
  EXPECT_THAT(OpTester("FFTND")
                  .Input(AsTensor<complex64>({{1, 2}}))
                  .Input(Tensor(DT_INT32, {0}))
                  .Input(Tensor(DT_INT32, {0}))
                  .RunOne(),
              TensorEq(AsTensor<complex64>({{1, 2}})));
}

TEST(FFT, KeepsNan) {
  const auto y = OpTester("FFT").Input(AsTensor<complex64>({{1, 0}, {kNan, 0}})).RunOne();
  GRADFLOW_ASSERT_OK(y.status());
  EXPECT_TRUE(std::isnan(y->flat<complex64>()(0).real()));
}

TEST(FFT, RejectsInvalidInputs) {
  const auto real = [](const char* op, const Tensor& x, const std::vector<int32_t>& lengths) {
    return OpTester(op).Input(x).Input(AsTensor<int32_t>(lengths));
  };
  const Tensor x(DT_FLOAT, {4, 4});
  const Tensor z(DT_COMPLEX64, {4, 3});
  ExpectErrors({
      {"scalar", OpTester("FFT").Input(AsScalar<complex64>({1, 0})),
       "Shape must be at least rank 1 but is rank 0: input has shape []"},
      {"rank", OpTester("IFFT3D").Input(z),
       "Shape must be at least rank 3 but is rank 2: input has shape [4,3]"},
      {"rank of real numbers", real("RFFT3D", x, {1, 1, 1}),
       "Shape must be at least rank 3 but is rank 2: input has shape [4,4]"},
      {"lengths", real("RFFT2D", x, {4}),
       "Dimension must be 2 but is 1: dimension 0 of fft_length"},
      {"negative", real("RFFT", x, {-1}), "fft_length[0] is -1, expected at least"},
      {"axis",
       OpTester("FFTND").Input(z).Input(AsTensor<int32_t>({1})).Input(AsTensor<int32_t>({2})),
       "axes 2 is out of range [-2, 2)"},
      {"axis twice",
       OpTester("FFTND")
           .Input(z)
           .Input(AsTensor<int32_t>({1, 1}))
           .Input(AsTensor<int32_t>({0, -2})),
       "axes names axis 0 twice"},
      {"axes",
       OpTester("RFFTND").Input(x).Input(AsTensor<int32_t>({1, 1})).Input(AsTensor<int32_t>({0})),
       "axes"},
  });
  EXPECT_THAT(real("RFFT", x, {0}).Run(),
              StatusIs(kInvalidArgument, HasSubstr("fft_length[0] is 0, expected at least 1")));
  EXPECT_THAT(real("RFFT", x, {6}).Run(),
              StatusIs(kInvalidArgument,
                       HasSubstr("dimension 1 of input must be 6 at least, by fft_length, but")));
  EXPECT_THAT(real("IRFFT2D", z, {4, 6}).Run(),
              StatusIs(kInvalidArgument, HasSubstr("dimension 1 of input must be 4 at least")));
  EXPECT_THAT(
      real("RFFT", x, {4}).Attr("Tcomplex", DT_COMPLEX128).MakeKernel(),
      StatusIs(kInvalidArgument, HasSubstr("Treal and Tcomplex must have the same precision, "
                                           "but are float and complex128")));
  EXPECT_THAT(OpTester("FFT").Attr("Tcomplex", DT_COMPLEX128).RunOn({z}),
              StatusIs(kInvalidArgument, HasSubstr("input must be of type complex128")));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
