# Control flow.
gradflow_op_family(no_op)
