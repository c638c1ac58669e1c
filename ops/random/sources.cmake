# Random numbers.
gradflow_op_family(binomial USES parameters streams)
gradflow_op_family(multinomial USES philox_simd streams)
gradflow_op_family(poisson USES parameters streams)
gradflow_op_family(random_fill USES common/elementary_simd philox_simd streams)
gradflow_op_family(random_gamma USES philox_simd streams)
gradflow_op_family(random_key USES streams)
gradflow_op_family(random_shuffle USES philox_simd streams)
gradflow_op_family(truncated_normal USES parameters streams)

gradflow_op_helper(parameters USES philox_simd)
gradflow_op_helper(philox_simd SIMD)
gradflow_op_helper(streams USES philox_simd)
