// Generated from the definitions of the ops. Do not edit.
// clang-format off
#ifndef TESTS_DATA_GOLDEN_STANDARD_OPS_H_
#define TESTS_DATA_GOLDEN_STANDARD_OPS_H_

#include "tests/data/golden/toy_ops.h"
#include "gradflow/graph/const_op.h"

#endif  // TESTS_DATA_GOLDEN_STANDARD_OPS_H_
