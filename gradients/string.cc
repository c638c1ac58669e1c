// Gradients of the ops of ops/string: strings have no gradient.
#include "gradflow/gradients/gradient_registry.h"

namespace gradflow {

namespace gradients::string {

void Register(GradientRegistry& registry) {
  for (const char* const op : {"AsString",
                               "DecodeBase64",
                               "EncodeBase64",
                               "ReduceJoin",
                               "RegexFullMatch",
                               "RegexReplace",
                               "StaticRegexFullMatch",
                               "StaticRegexReplace",
                               "StringFormat",
                               "StringJoin",
                               "StringLength",
                               "StringLower",
                               "StringNGrams",
                               "StringSplit",
                               "StringSplitV2",
                               "StringStrip",
                               "StringToHashBucket",
                               "StringToHashBucketFast",
                               "StringToHashBucketStrong",
                               "StringToNumber",
                               "StringUpper",
                               "Substr",
                               "UnicodeDecode",
                               "UnicodeDecodeWithOffsets",
                               "UnicodeEncode",
                               "UnicodeScript",
                               "UnicodeTranscode",
                               "UnsortedSegmentJoin"}) {
    registry.RegisterNoGradient(op);
  }
}

}  // namespace gradients::string

}  // namespace gradflow
