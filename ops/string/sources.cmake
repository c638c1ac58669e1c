# Strings.
gradflow_op_family(regex PACKAGES RE2 USES string_loop)
gradflow_op_family(string_hash ALONE PACKAGES HASHES USES string_loop)
gradflow_op_family(string_join USES string_loop)
gradflow_op_family(string_map PACKAGES ICU USES string_loop)
gradflow_op_family(string_ngrams USES string_loop)
gradflow_op_family(string_number USES string_loop)
gradflow_op_family(string_split USES string_loop)
gradflow_op_family(substr USES string_loop)
gradflow_op_family(unicode ALONE PACKAGES ICU USES string_loop)

gradflow_op_helper(string_loop)
