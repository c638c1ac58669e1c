# Ragged tensors.
gradflow_op_family(ragged_gather USES ragged_splits)
gradflow_op_family(ragged_range USES ragged_splits)
gradflow_op_family(ragged_to_dense USES ragged_splits)
gradflow_op_family(ragged_variant USES ragged_splits)

gradflow_op_helper(ragged_splits)
