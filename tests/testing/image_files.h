// Makes image files that take much memory to decode, for tests.
#ifndef GRADFLOW_TESTS_TESTING_IMAGE_FILES_H_
#define GRADFLOW_TESTS_TESTING_IMAGE_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

namespace gradflow {
namespace testing {

// Returns a lossless WebP image without its signature and size. All pixels are black. It has
// `groups` groups of prefix codes, at most 65536. If `cache_bits` is not 0, it has a color cache of
// `cache_bits` bits. REQUIRES: columns / 4 * rows / 4 >= groups
std::string LosslessWebPData(int columns, int rows, int groups, int cache_bits);
// Returns a VP8L chunk with these data.
std::string LosslessWebPChunk(int columns, int rows, const std::string& data);
// Returns a WebP file with these chunks.
std::string WebPFile(const std::vector<std::string>& chunks);
// Returns a chunk of a WebP file with a given tag.
std::string WebPChunk(const std::string& tag, const std::string& content);
// Returns a VP8X chunk. In `flags`, 2 means an animation and 16 means alpha.
std::string WebPHeaderChunk(int columns, int rows, int flags);
// Returns an ANMF chunk: a frame at the upper left corner.
std::string WebPFrameChunk(int columns, int rows, const std::string& chunks);

// Returns a chunk of a PNG file, with its length and checksum.
std::string PngChunk(const std::string& type, const std::string& content);

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTS_TESTING_IMAGE_FILES_H_
