# Optimizers.
gradflow_op_family(optimizers USES common/elementary_simd)
