# Tables of keys and values.
gradflow_op_family(hash_table USES table)
gradflow_op_family(initialize_table USES table)
gradflow_op_family(lookup_table USES table)

gradflow_op_helper(table PACKAGES HASHES USES common/tensor_holder)
