// Tells whether the tests run under a sanitizer, which makes them several times slower.
#ifndef GRADFLOW_TESTS_TESTING_SANITIZERS_H_
#define GRADFLOW_TESTS_TESTING_SANITIZERS_H_

namespace gradflow::testing {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kHasAddressSanitizer = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool kHasAddressSanitizer = true;
#else
inline constexpr bool kHasAddressSanitizer = false;
#endif
#else
inline constexpr bool kHasAddressSanitizer = false;
#endif

}  // namespace gradflow::testing

#endif  // GRADFLOW_TESTS_TESTING_SANITIZERS_H_
