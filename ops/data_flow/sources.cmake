# Data flow.
gradflow_op_family(dynamic_stitch)
