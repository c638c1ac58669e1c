# Files and checkpoints.
gradflow_op_family(checkpoint)
gradflow_op_family(file)
gradflow_op_family(immutable_const)
gradflow_op_family(sharded_filename)
