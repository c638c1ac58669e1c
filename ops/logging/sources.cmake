# Printing, assertions, summaries.
gradflow_op_family(check_numerics)
gradflow_op_family(print)
gradflow_op_family(summary)
