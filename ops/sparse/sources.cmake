# Sparse tensors.
gradflow_op_family(sparse_count USES ragged/ragged_splits sparse_inputs)
gradflow_op_family(sparse_cross ALONE PACKAGES HASHES USES ragged/ragged_splits sparse_inputs)
gradflow_op_family(sparse_math USES sparse_inputs)
gradflow_op_family(sparse_moves USES sparse_inputs)
gradflow_op_family(sparse_serialize USES common/tensor_message sparse_inputs)
gradflow_op_family(sparse_sets USES sparse_inputs)

gradflow_op_helper(sparse_inputs)
